package scripted

import (
	"slices"
	"strings"
	"testing"

	"deckhand/internal/llm"
)

// The tour takes its steps in order, one per result, and ends with words.
func TestTour(t *testing.T) {
	r := request("show me a demo.")
	r.Tools = []llm.Tool{{Name: "execute_bash"}, {Name: "str_replace_editor"}}
	for n := range steps {
		text, call, on := tour(r)
		if !on || call == nil || text != steps[n].text {
			t.Fatalf("step %d: %q %v", n, text, on)
		}
		if n == 1 && !strings.Contains(string(call.Args), `"path":"/somewhere/deckhand-demo/total.sh"`) {
			t.Errorf("it edits %s", call.Args)
		}
		r.Messages = append(r.Messages, llm.Message{Role: llm.Assistant, Calls: []llm.Call{*call}}, llm.Message{Role: llm.ToolResult, Text: "sample repository: /somewhere/deckhand-demo\nfailed"})
	}
	if text, call, on := tour(r); !on || call != nil || !strings.HasPrefix(text, "[scripted demo model] Done") {
		t.Errorf("it ends with %q, %v", text, call)
	}
	refused := r
	refused.Messages = append(slices.Clone(r.Messages[:2]), llm.Message{Role: llm.ToolResult, Text: "The user rejected this call: not here"})
	if text, call, on := tour(refused); !on || call != nil || text != tourRejected {
		t.Errorf("after a rejection: %q, %v", text, call)
	}
	failed := r
	failed.Messages = append(slices.Clone(r.Messages[:2]), llm.Message{Role: llm.ToolResult, Text: "mkdir: cannot create directory"})
	if text, call, on := tour(failed); !on || call != nil || text != tourFailed {
		t.Errorf("after the first step failed: %q, %v", text, call)
	}
	r.Messages = append(r.Messages, llm.Message{Role: llm.User, Text: "thanks"})
	if _, _, on := tour(r); on {
		t.Error("it goes on after another message")
	}
	if _, _, on := tour(request(Tour)); on {
		t.Error("it begins without tools")
	}
}

package openai

import (
	"encoding/json"
	"fmt"
	"testing"

	"deckhand/internal/llm"
)

// A request that continues another is written as if it were the first.
func TestWritten(t *testing.T) {
	t.Parallel()
	const png = "data:image/png;base64,iVBORw0KGgo="
	history := []llm.Message{
		{Role: llm.User, Text: "Look at \"this\"", Images: []string{png}},
		{Role: llm.Assistant, Text: "I do", Calls: []llm.Call{{ID: "a", Name: "bash", Args: json.RawMessage(`{"command":"ls"}`)}, {ID: "b", Name: "browse"}, {ID: "c", Name: "browse"}}},
		{Role: llm.ToolResult, Call: "a", Name: "bash", Text: "x\ny"},
		{Role: llm.ToolResult, Call: "b", Name: "browse", Text: "a page", Images: []string{png}},
		{Role: llm.ToolResult, Call: "c", Name: "browse", Text: "another"},
		{Role: llm.Assistant, Text: "Done", Raw: json.RawMessage(`{"from":"openai-chat","model":"m","fields":{"reasoning":"hm"}}`)},
		{Role: llm.Assistant},
		{Role: llm.User, Text: "More"},
	}
	tools := []llm.Tool{{Name: "bash", Description: "Runs a command."}, {Name: "browse", Description: "Opens a page."}}
	chats := func(name string) func(llm.Request) []byte {
		return Chat(llm.Config{}, name, Options{}).(*chat).body
	}
	responses := func(thinks bool) func(llm.Request) []byte {
		return Responses(llm.Config{}, "m", Options{Thinks: thinks}).(*response).body
	}
	w := &llm.Written{}
	same := func(what string, body func(llm.Request) []byte, r llm.Request) {
		t.Helper()
		want := string(body(r))
		r.Written = w
		for range 2 {
			if got := string(body(r)); got != want {
				t.Errorf("%s:\n%s\nwant\n%s", what, got, want)
			}
		}
	}
	for name, body := range map[string]func(llm.Request) []byte{"chat": chats("m"), "responses": responses(true)} {
		for n := range len(history) {
			same(fmt.Sprint(name, n), body, llm.Request{System: "Work.", Tools: tools, Messages: history[:n+1], MaxOutput: int64(n)})
		}
		all := llm.Request{System: "Work.", Tools: tools, Messages: history}
		same(name+" without tools", body, llm.Request{System: "Work.", Messages: history})
		same(name+" with tools", body, all)
		same(name+" with a tool less", body, llm.Request{System: "Work.", Tools: tools[1:], Messages: history})
		same(name+" with another system prompt", body, llm.Request{System: "Rest.", Tools: tools, Messages: history})
		same(name+" with less", body, llm.Request{System: "Rest.", Tools: tools, Messages: history[:3]})
		same(name+" for another model", chats("other"), all)
		same(name+" for a model that does not think", responses(false), all)
		same(name, body, all)
		fewer := append([]llm.Message(nil), history...)
		fewer[0].Images = nil
		same(name+" fitted", body, llm.Request{System: "Work.", Tools: tools, Messages: fewer, Fitted: "/blind"})
	}
	// What was written before is not written again: a change of it does not show.
	r := llm.Request{Messages: history[:3], Written: &llm.Written{}}
	first := string(chats("m")(r))
	changed := append([]llm.Message(nil), history[:3]...)
	changed[0].Text = "Look away"
	r.Messages = changed
	if got := string(chats("m")(r)); got != first {
		t.Errorf("written again: %s", got)
	}
}

package cli

import (
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/conversation"
	"deckhand/internal/session"
	"deckhand/internal/terminal"
)

// An edited call with high risk needs the word yes, and an unchanged call is not approved.
func TestEditedCallNeedsApproval(t *testing.T) {
	t.Setenv("VISUAL", "")
	t.Setenv("EDITOR", "")
	for typed, want := range map[string]bool{`{"command": "rm  x"}`: false, "": false, "{\"command\":\"rm y\"}\ny": false, "{\"command\":\"rm y\"}\nyes": true} {
		var out strings.Builder
		at := newTalk(TalkOptions{}, LocalServer{}, &Output{Stdout: &out, Stderr: &out})
		at.in, at.call = newLines(strings.NewReader(typed+"\n")), session.ToolCalled{ToolCall: session.ToolCall{Name: "shell", Args: []byte(`{"command":"rm  x"}`)}}
		var d conversation.Decision
		again, _ := at.choose(terminal.Question{Risk: session.RiskHigh}, "e", &d)
		if again == want || d.Approve != want || (d.Args != nil) != want {
			t.Errorf("%q: again %v, %+v", typed, again, d)
		}
	}
}

// The same for an attached terminal.
func TestAttachedEditNeedsApproval(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	a := &attached{Display: terminal.New(terminal.Options{Out: &out}), in: &terminal.Input{}, server: &remote{Client: client.New("http://127.0.0.1:1", "")}}
	a.question = api.Approval{CallID: "c", Tool: "shell", Arguments: []byte(`{"command":"rm x"}`), Risk: int(session.RiskHigh)}
	a.mode = anAnswer
	for _, line := range []string{"e", `{"command":"rm x"}`, "e", `{"command":"rm y"}`} {
		a.line(t.Context(), line)
	}
	if a.mode != aYes || out.String() != "" {
		t.Fatalf("mode %d; shown %q", a.mode, out.String())
	}
	if a.line(t.Context(), "y"); a.mode != anAnswer || strings.Contains(out.String(), "decision not sent") {
		t.Errorf("y approved the edited call: %q", out.String())
	}
	for _, line := range []string{"e", `{"command":"rm y"}`, "yes"} {
		a.line(t.Context(), line)
	}
	if !strings.Contains(out.String(), "decision not sent") { // there is no server
		t.Errorf("yes did not approve the edited call: %q", out.String())
	}
}

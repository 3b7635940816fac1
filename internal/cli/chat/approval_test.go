package chat

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/cli/prompt"
	"deckhand/internal/session"
	"deckhand/internal/terminal"
	_ "deckhand/internal/tool/toolbox" // lists the tools
)

// asked returns a conversation with a call that needs approval.
func asked(risk session.Risk, out *strings.Builder) *conversation {
	s := &conversation{id: "1", Display: terminal.New(terminal.Options{Out: out, OnStatus: func(string) {}})}
	s.question = api.Approval{CallID: "c", Tool: "execute_bash", Arguments: json.RawMessage(`{"command":"rm -rf\tx"}`), Risk: int(risk)}
	return s
}

// An edited call with high risk needs the word yes, and an unchanged call is not approved.
func TestEditedCallNeedsApproval(t *testing.T) {
	t.Parallel()
	for _, risk := range []session.Risk{session.RiskLow, session.RiskHigh} {
		var out strings.Builder
		d := &drawn{conversation: asked(risk, &out), ctx: t.Context(), entry: anAnswer, input: prompt.New(false)}
		edit := func(typed string) bool {
			d.answer("e")
			if typed != "unchanged" {
				d.set(typed)
			}
			return d.enter() != nil
		}
		for _, typed := range []string{"unchanged", ""} {
			if edit(typed) || d.entry != anAnswer {
				t.Errorf("%v: %q was taken for an approval", risk, typed)
			}
		}
		if sent := edit("rm -rf y"); risk != session.RiskHigh {
			if !sent {
				t.Error("the edited call was not sent")
			}
			continue
		} else if sent || d.entry != aYes {
			t.Error("the edited call was sent without yes")
		}
		d.set("y")
		if d.enter() != nil || d.entry != anAnswer {
			t.Error("y approved the edited call")
		}
		edit("rm -rf y")
		d.set("yes")
		if d.enter() == nil || d.entry != aMessage {
			t.Error("yes did not approve the edited call")
		}
	}
}

// The same without a full terminal.
func TestEditedLineNeedsApproval(t *testing.T) {
	t.Parallel()
	for lines, want := range map[string]string{
		"e||e|rm -rf\tx|n no":     `"reject"`,
		"e|rm -rf y|y|n no":       `"reject"`,
		"e|rm -rf y|yes":          `"accept"`,
		"e|rm -rf y||e|rm z|yes|": `"rm z"`,
	} {
		var sent []string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				_ = json.NewEncoder(w).Encode(api.Approvals{Pending: []api.Approval{asked(session.RiskHigh, nil).question}})
				return
			}
			var d json.RawMessage
			_ = json.NewDecoder(r.Body).Decode(&d)
			sent = append(sent, string(d))
			_, _ = w.Write([]byte("{}"))
		}))
		defer server.Close()
		var out strings.Builder
		p := &plain{conversation: asked(session.RiskHigh, &out), in: make(chan string, 9), asks: true}
		p.Client = client.New(server.URL, "")
		for line := range strings.SplitSeq(lines, "|") {
			p.in <- line
		}
		if err := p.approve(t.Context()); err != nil || len(sent) != 1 || !strings.Contains(sent[0], want) {
			t.Errorf("%q: sent %q, %v; shown:\n%s", lines, sent, err, out.String())
		}
	}
}

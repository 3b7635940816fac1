package agent_test

import (
	"encoding/json"
	"strings"
	"testing"

	"deckhand/internal/agent"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/session"
)

// A call that its tool is wary of is rated high and asked about, though the
// person allowed all calls of that tool.
func TestWaryCallIsAskedAboutEveryTime(t *testing.T) {
	r, say := asking(t, calls(called("a", "say", `{"text":"one"}`)), calls(called("b", "say", `{"text":"two"}`)), calls(called("c", "say", `{"text":"elsewhere"}`)), done("ok"))
	say.spec.Wary = func(args json.RawMessage) string {
		if strings.Contains(string(args), "elsewhere") {
			return "It is elsewhere."
		}
		return ""
	}
	r.set(func(p *agent.Profile) { p.Analyzer = "rules" })
	r.start()
	id := r.create("go")
	r.awaiting(id)
	r.decide(id, session.ApprovalGiven{Approved: true, Always: "say"})
	r.until(id, "the third call", func(s session.State) bool { c, ok := s.Awaiting(); return ok && c.ID == "c" })
	asked, made := all[session.ApprovalAsked](r.rig, id), all[session.ToolCalled](r.rig, id)
	if len(asked) != 2 || asked[0].Pattern != "say" || asked[1].ID != "c" || asked[1].Reason != "It is elsewhere." || asked[1].Pattern != "" {
		t.Errorf("asked %+v", asked)
	}
	if made[1].Risk == session.RiskHigh || made[2].Risk != session.RiskHigh || len(say.calls()) != 2 {
		t.Errorf("%+v after %d", made, len(say.calls()))
	}
	r.decide(id, session.ApprovalGiven{Approved: true})
	r.until(id, "the end", finished)
}

// Whatever a summary leaves out, the conversation's pull requests stay in it.
func TestCondensingKeepsRequests(t *testing.T) {
	r := newCrowding(t, llmtest.Chat, 24, 6000, 1500)
	id := r.create("the task")
	const url = "https://github.com/octo/app/pull/12"
	for n, at := range []string{url, url + "3"} {
		_, err := r.sessions.Update(t.Context(), id, func(s session.State) ([]session.Payload, error) {
			return s.Opened(session.RequestOpened{Provider: "github", Repository: "octo/app", Number: n + 12, URL: at, Source: "fix", Target: "main"})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	r.start()
	r.until(id, "the end", finished)
	done := all[session.Condensed](r.rig, id)
	if len(done) < 2 {
		t.Fatalf("condensed %d times", len(done))
	}
	for _, c := range done {
		if strings.Count(c.Summary, url+" (fix into main)") != 1 || strings.Count(c.Summary, url+"3 (fix into main)") != 1 || !strings.HasPrefix(c.Summary, "SUMMARY") {
			t.Errorf("%s", c.Summary)
		}
	}
	if shown := texts(r.last()); !strings.Contains(shown, "- Pull request #12 of octo/app: "+url) {
		t.Errorf("the model was shown %.2000s", shown)
	}
}

package agent_test

import (
	"strings"
	"testing"

	"deckhand/internal/agent"
	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/session"
)

// After a restore to a point before a summary, the model sees the history as it was: nothing of what was undone, also not
// through the summary. An undo of the restore brings the summary back.
func TestSummaryOfUndoneTurn(t *testing.T) {
	for name, c := range map[string]struct{ asked, restarted bool }{
		"asked for": {true, false}, "asked for, restarted": {true, true}, "automatic": {false, false}, "automatic, restarted": {false, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newWired(t, llmtest.Chat, func(a llmtest.Asked) llmtest.Reply {
				last := a.Messages[len(a.Messages)-1]
				switch {
				case isSummary(a):
					return llmtest.Reply{Text: "SUMMARY of the plum plan"}
				case last.Role == llm.User && strings.Contains(last.Text, "plum"):
					return calls(called("c1", "say", `{"text":"plum"}`))
				}
				return done("answer to " + last.Text)
			})
			r.tools(newHand("say"))
			r.set(func(p *agent.Profile) { p.Condense = true })
			stop := r.start()
			again := func() {
				if c.restarted {
					stop()
					stop = r.start()
				}
			}
			id := r.create("task one")
			turn := func(n int) session.State {
				t.Helper()
				return r.until(id, "the end of a turn", func(s session.State) bool { return finished(s) && s.Turns == n && s.Compact == nil })
			}
			point := turn(1).Last
			if !c.asked {
				r.set(func(p *agent.Profile) { p.MaxMessages = 3 })
			}
			r.say(id, "the plum plan")
			turn(2)
			if c.asked {
				r.compact(id, "")
				r.until(id, "the summary", compacted)
			}
			r.set(func(p *agent.Profile) { p.MaxMessages = 0 })
			if got := all[session.Condensed](r.rig, id); len(got) == 0 || !strings.Contains(got[0].Summary, "plum") || got[0].From > point {
				t.Fatalf("condensed %+v", got)
			}
			restore := func(action session.RestoreAction) {
				t.Helper()
				again()
				r.update(id, func(s session.State) ([]session.Payload, error) {
					return s.Restore(session.Restored{Action: action, Point: point, Conversation: true})
				})
				again()
			}
			restore(session.RestorePoint)
			r.say(id, "task two")
			turn(3)
			if text := texts(r.last()); strings.Contains(text, "plum") || strings.Contains(text, "SUMMARY") ||
				!strings.HasPrefix(text, "user: task one") || !strings.Contains(text, "answer to task one") || !strings.Contains(text, "task two") {
				t.Errorf("after the restore, the model was shown %s", text)
			}
			restore(session.RestoreUndo)
			r.say(id, "task three")
			turn(4)
			if text := texts(r.last()); !strings.Contains(text, "SUMMARY of the plum plan") || strings.Contains(text, "task two") || !strings.Contains(text, "task three") {
				t.Errorf("after the undo, the model was shown %s", text)
			}
			restore(session.RestoreRedo)
			r.say(id, "task four")
			turn(5)
			if text := texts(r.last()); strings.Contains(text, "plum") || strings.Contains(text, "task three") || !strings.Contains(text, "task four") {
				t.Errorf("after the redo, the model was shown %s", text)
			}
		})
	}
}

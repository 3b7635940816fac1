package agent_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/session"
	"deckhand/internal/tool"
)

// compacting is a rig whose agent makes three calls per turn; summary responds to requests for a summary.
func compacting(t *testing.T, run func(n int), summary func(n int) llmtest.Reply) *wired {
	t.Helper()
	var summaries, ran atomic.Int32
	r := newWired(t, llmtest.Chat, func(a llmtest.Asked) llmtest.Reply {
		if isSummary(a) {
			return summary(int(summaries.Add(1)))
		}
		n := 0
		for _, m := range a.Messages {
			if m.Role == llm.User && !strings.Contains(m.Text, "replaced by this summary") {
				n = 0
			} else if m.Role == llm.Assistant {
				n++
			}
		}
		if n >= 3 {
			return done("ok")
		}
		return calls(called(fmt.Sprint("c", len(a.Messages)), "say", fmt.Sprintf(`{"text":"%d"}`, len(a.Messages))))
	})
	say := newHand("say")
	say.run = func(context.Context, tool.Call) (tool.Result, error) {
		run(int(ran.Add(1)))
		return tool.Result{Text: "said"}, nil
	}
	r.tools(say)
	return r
}

func (r *rig) compact(id session.ID, instructions string) session.State {
	r.t.Helper()
	return r.update(id, func(s session.State) ([]session.Payload, error) {
		return s.AskCompact(session.CompactAsked{Instructions: instructions})
	})
}

func compacted(st session.State) bool { return st.Compact == nil }

// Between turns, the history becomes a summary as soon as the user asks for it, and the conversation stays done.
func TestCompactBetweenTurns(t *testing.T) {
	r := compacting(t, func(int) {}, func(int) llmtest.Reply { return llmtest.Reply{Text: "SUMMARY"} })
	r.start()
	id := r.create("the task")
	r.until(id, "the end", finished)
	r.compact(id, "keep the names of files")
	st := r.until(id, "the summary", compacted)
	if got := all[session.Condensed](r.rig, id); len(got) != 1 || got[0].Summary != "SUMMARY" || !finished(st) || st.InTurn {
		t.Fatalf("condensed %+v, agent %s", got, st.Agent)
	}
	if asked := r.last(); !isSummary(asked) || !strings.Contains(asked.System, "keep the names of files") {
		t.Errorf("the model was told %q", asked.System)
	}
	r.say(id, "go on")
	r.until(id, "the next end", func(s session.State) bool { return finished(s) && s.Turns == 2 })
	for _, a := range r.asked() {
		if text := texts(a); strings.Contains(text, "go on") && (!strings.Contains(text, "SUMMARY") || !strings.HasPrefix(text, "user: the task") || strings.Contains(text, `"text":"1"`)) {
			t.Errorf("the model was shown %s", text)
		}
	}
}

// During a turn, the history is compacted after the call in progress, and the turn continues.
func TestCompactDuringATurn(t *testing.T) {
	ids := make(chan session.ID, 1)
	var r *wired
	r = compacting(t, func(n int) {
		if n == 2 {
			r.compact(<-ids, "")
		}
	}, func(int) llmtest.Reply { return llmtest.Reply{Text: "SUMMARY"} })
	r.start()
	id := r.create("the task")
	ids <- id
	st := r.until(id, "the end", finished)
	if got := all[session.Condensed](r.rig, id); len(got) != 1 || st.Compact != nil || st.Turns != 1 {
		t.Errorf("condensed %+v in %d turns", got, st.Turns)
	}
}

// If the model cannot give a summary, or there is nothing to summarise, the history stays and a notice says why.
func TestCompactThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		turns int
		why   string
	}{
		"the model fails": {1, "oops"},
		"too short":       {0, "nothing to compact"},
	} {
		t.Run(name, func(t *testing.T) {
			r := compacting(t, func(int) {}, func(int) llmtest.Reply { return llmtest.Reply{Status: 400, Message: "oops"} })
			r.start()
			id := r.create("")
			if c.turns > 0 {
				r.say(id, "the task")
				r.until(id, "the end", finished)
			}
			r.compact(id, "")
			st := r.until(id, "the notice", compacted)
			notes := all[session.Noted](r.rig, id)
			if len(all[session.Condensed](r.rig, id)) > 0 || len(notes) != 1 || !notes[0].Error || !strings.Contains(notes[0].Message, c.why) || st.Wants() {
				t.Errorf("notes %+v", notes)
			}
		})
	}
}

// A restart during the call for the summary neither loses the request nor condenses twice.
func TestCompactSurvivesARestart(t *testing.T) {
	asked, proceed := make(chan struct{}), make(chan struct{})
	r := compacting(t, func(int) {}, func(n int) llmtest.Reply {
		if n == 1 {
			close(asked)
			<-proceed
		}
		return llmtest.Reply{Text: "SUMMARY"}
	})
	stop := r.start()
	id := r.create("the task")
	r.until(id, "the end", finished)
	r.compact(id, "")
	<-asked
	go close(proceed)
	stop()
	r.start()
	r.until(id, "the summary", compacted)
	if got := all[session.Condensed](r.rig, id); len(got) != 1 {
		t.Errorf("condensed %+v", got)
	}
}

package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"deckhand/internal/agent"
	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/session"
	"deckhand/internal/tool"
)

// Each way of going round in circles: the model is told once, the second time
// the turn ends with the code for it, and a message makes a new beginning.
func TestCircles(t *testing.T) {
	say := func(n int, text string) llmtest.Reply {
		return calls(called(fmt.Sprint("c", n), "say", `{"text":"`+text+`"}`))
	}
	for name, test := range map[string]struct {
		reply func(n int) llmtest.Reply
		run   func(n int) tool.Result
		why   string
		asks  int // before the first word about it
	}{
		"same result":  {func(n int) llmtest.Reply { return say(n, "x") }, func(int) tool.Result { return tool.Result{Text: "same"} }, "four times", 4},
		"same failure": {func(n int) llmtest.Reply { return say(n, "x") }, func(n int) tool.Result { return tool.Failf("error %d", n) }, "failed three times", 3},
		"same bad exit": {func(n int) llmtest.Reply { return say(n, "x") }, func(n int) tool.Result {
			return tool.Result{Text: fmt.Sprint("took ", n), Details: json.RawMessage(`{"exit_code":2}`)}
		}, "failed three times", 3},
		"back and forth": {func(n int) llmtest.Reply { return say(n, fmt.Sprint(n%2)) }, func(int) tool.Result { return tool.Result{Text: "same"} }, "in turn", 6},
		"same words":     {func(int) llmtest.Reply { return llmtest.Reply{Text: "I am thinking", Cut: true} }, nil, "the same words", 3},
	} {
		t.Run(name, func(t *testing.T) {
			var ran atomic.Int32
			var spoke atomic.Bool
			r := newWired(t, llmtest.Chat, func(a llmtest.Asked) llmtest.Reply {
				if spoke.Load() {
					return done("ok")
				}
				n := 1 // a call that is made again has the same answer
				for _, m := range a.Messages {
					if m.Role == llm.Assistant {
						n++
					}
				}
				return test.reply(n)
			})
			hand := newHand("say")
			hand.run = func(context.Context, tool.Call) (tool.Result, error) { return test.run(int(ran.Add(1))), nil }
			r.tools(hand)
			r.set(func(p *agent.Profile) { p.MaxAsks = 100 })
			stop := r.start()
			id := r.create("go")
			r.until(id, "the word", func(session.State) bool { return len(nudges(r.rig, id)) == 1 })
			stop() // that it was told is known after a restart
			r.start()
			st := r.until(id, "the end", inError)
			if st.ErrorID != "STATUS$ERROR_STUCK" || !strings.Contains(st.Reason, test.why) {
				t.Errorf("%s: %s", st.ErrorID, st.Reason)
			}
			if got := nudges(r.rig, id); len(got) != 1 || !strings.Contains(got[0].Text, test.why) {
				t.Errorf("the model was told %+v", got)
			}
			if asks := count[session.ModelAnswered](r.events(id)); asks != 2*test.asks {
				t.Errorf("stopped after %d answers", asks)
			}
			spoke.Store(true)
			r.say(id, "try something else")
			r.until(id, "the end", finished)
		})
	}
}

// nudges are the words about circles, without those about cut answers.
func nudges(r *rig, id session.ID) []session.Nudged {
	var out []session.Nudged
	for _, n := range all[session.Nudged](r, id) {
		if n.Rule == "stuck" {
			out = append(out, n)
		}
	}
	return out
}

// Work that only looks alike is none, and so is what a person asks for again and again.
func TestNoCircles(t *testing.T) {
	for name, test := range map[string]struct {
		args func(n int) string
		run  func(n int) tool.Result
	}{
		"other arguments":   {func(n int) string { return fmt.Sprint(n) }, func(int) tool.Result { return tool.Result{Text: "same"} }},
		"other results":     {func(int) string { return "x" }, func(n int) tool.Result { return tool.Result{Text: fmt.Sprint(n)} }},
		"failures and not":  {func(int) string { return "x" }, func(n int) tool.Result { return tool.Result{Text: fmt.Sprint(n), Failed: n%3 != 0} }},
		"three, and others": {func(n int) string { return fmt.Sprint(n / 3) }, func(int) tool.Result { return tool.Result{Text: "same"} }},
	} {
		t.Run(name, func(t *testing.T) {
			var n, ran atomic.Int32
			r := newWired(t, llmtest.Chat, func(llmtest.Asked) llmtest.Reply {
				if i := int(n.Add(1)); i <= 20 {
					return llmtest.Reply{Calls: []llm.Call{called(fmt.Sprint("c", i), "say", `{"text":"`+test.args(i)+`"}`)}}
				}
				return done("ok")
			})
			hand := newHand("say")
			hand.run = func(context.Context, tool.Call) (tool.Result, error) { return test.run(int(ran.Add(1))), nil }
			r.tools(hand)
			r.set(func(p *agent.Profile) { p.MaxAsks = 100 })
			r.start()
			id := r.create("go")
			r.until(id, "the end", finished)
			if got := nudges(r.rig, id); len(got) != 0 {
				t.Errorf("the model was told %+v", got)
			}
		})
	}
}

// Three messages that are answered alike are no circle.
func TestSameAnswerToEachMessage(t *testing.T) {
	r := chat(t, llmtest.Reply{Text: "No."})
	r.start()
	id := r.create("go")
	for range 4 {
		st := r.until(id, "an answer", answered)
		r.say(id, "please")
		r.until(id, "the next answer", func(s session.State) bool { return answered(s) && s.Last > st.Last+2 })
	}
	if n := count[session.Nudged](r.events(id)); n != 0 {
		t.Errorf("the model was told %d times", n)
	}
}

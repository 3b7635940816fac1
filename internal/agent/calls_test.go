package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"strings"
	"testing"

	"deckhand/internal/agent"
	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/session"
	"deckhand/internal/tool"
)

// Several calls in one answer are made in their order, and one that fails does
// not keep the others from being made.
func TestSeveralCallsOfOneAnswer(t *testing.T) {
	for _, w := range wires {
		t.Run(string(w), func(t *testing.T) {
			r := newWired(t, w, llmtest.Script(
				llmtest.Reply{Text: "I look around.", Calls: []llm.Call{
					called("a", "say", `{"text":"one"}`), called("b", "fail", `{"text":"two"}`), called("c", "say", `{"text":"three"}`)}},
				done("All done.")))
			fail := newHand("fail")
			fail.run = func(context.Context, tool.Call) (tool.Result, error) { return tool.Failf("there is no such file"), nil }
			r.tools(newHand("say"), fail)
			r.start()
			id := r.create("go")
			r.until(id, "the end", finished)
			var got []string
			for _, x := range all[session.ToolReturned](r.rig, id) {
				got = append(got, string(x.Outcome)+" "+x.Output)
			}
			if want := `ok did {"text":"one"},failed there is no such file,ok did {"text":"three"},ok All done.`; strings.Join(got, ",") != want {
				t.Errorf("results %q", got)
			}
			asked := r.asked()
			if len(asked) != 2 || len(asked[1].Messages) != 5 {
				t.Fatalf("the model was shown %s", texts(r.last()))
			}
			if c := all[session.ToolCalled](r.rig, id); c[0].Thought != "I look around." || c[1].Thought != "" || c[0].InAnswer != 3 || c[2].Usage == (session.Usage{}) || c[2].Usage != all[session.ModelAnswered](r.rig, id)[0].Usage {
				t.Errorf("calls %+v", c)
			}
		})
	}
}

// What a model does wrong it can learn from: the call is not made, and the loop goes on.
func TestMistakesOfTheModel(t *testing.T) {
	for name, test := range map[string]struct {
		call llm.Call
		want string
	}{
		"unknown tool":        {called("a", "dance", `{}`), `There is no tool named "dance". There are: say, finish.`},
		"not JSON":            {called("a", "say", `"{\"text\": \"cut in the mid"`), "not valid JSON"},
		"not an object":       {called("a", "say", `[1]`), "not"},
		"missing argument":    {called("a", "say", `{}`), "text"},
		"wrong type":          {called("a", "say", `{"text":7}`), "schema"},
		"unheard-of argument": {called("a", "say", `{"text":"x","volume":11}`), "volume"},
	} {
		t.Run(name, func(t *testing.T) {
			r := chat(t, calls(test.call), done("ok"))
			say := newHand("say")
			r.tools(say)
			r.set(func(p *agent.Profile) { p.Confirm = true }) // a call that is not run needs no approval
			r.start()
			id := r.create("go")
			r.until(id, "the end", finished)
			got := all[session.ToolReturned](r.rig, id)[0]
			if got.Outcome != session.FailedRun || !strings.Contains(got.Output, test.want) {
				t.Errorf("%+v", got)
			}
			if len(say.calls()) != 0 {
				t.Error("the tool was run")
			}
			if !strings.Contains(texts(r.last()), got.Output) {
				t.Errorf("the model did not learn of it: %s", texts(r.last()))
			}
		})
	}
}

// Calls of one answer with the same id, or none, are told apart.
func TestCallsWithoutIdsOfTheirOwn(t *testing.T) {
	m := &parts{answers: [][]llm.Part{
		{{Call: &llm.Call{ID: "x", Name: "say", Args: json.RawMessage(`{"text":"1"}`)}}, {Call: &llm.Call{ID: "x", Name: "say", Args: json.RawMessage(`{"text":"2"}`)}},
			{Call: &llm.Call{Name: "say", Args: json.RawMessage(`{"text":"3"}`)}}, {Done: &llm.Done{}}},
		{{Text: "done"}, {Done: &llm.Done{}}},
	}}
	r := newRig(t)
	say := newHand("say")
	r.profile = func(context.Context, session.State) (agent.Profile, error) {
		p := profile(m)
		p.Tools = []tool.Tool{say}
		return p, nil
	}
	r.start()
	id := r.create("go")
	r.until(id, "the answer", answered)
	if made := say.calls(); len(made) != 3 {
		t.Errorf("made %+v", made)
	}
	if f := count[session.ModelFailed](r.events(id)); f != 0 {
		t.Errorf("%d calls were lost", f)
	}
}

// parts is a model in the process that yields what a test says.
type parts struct {
	answers [][]llm.Part
	asked   []llm.Request
}

func (m *parts) Stream(_ context.Context, req llm.Request) iter.Seq2[llm.Part, error] {
	return func(yield func(llm.Part, error) bool) {
		m.asked = append(m.asked, req)
		n := min(len(m.asked), len(m.answers)) - 1
		for _, p := range m.answers[n] {
			if !yield(p, nil) {
				return
			}
		}
	}
}

func TestFinishEndsTheTurn(t *testing.T) {
	r := chat(t, calls(called("a", "finish", `{"message":"Done."}`), called("b", "say", `{"text":"more"}`)), llmtest.Reply{Text: "yes"})
	say := newHand("say")
	r.tools(say)
	r.start()
	id := r.create("go")
	st := r.until(id, "the end", finished)
	if st.Wants() || len(say.calls()) != 0 {
		t.Errorf("wants %v, made %v", st.Wants(), say.calls())
	}
	if got := all[session.ToolReturned](r.rig, id); len(got) != 2 || got[1].Outcome != session.Cancelled || !strings.Contains(got[1].Output, "not made") {
		t.Errorf("%+v", got)
	}
	r.say(id, "and now?")
	r.until(id, "the answer to the next message", answered)
	if got := r.last().Messages; len(got) != 5 || got[4].Text != "and now?" {
		t.Errorf("the model was shown %s", texts(r.last()))
	}
}

// A finish that cannot be done does not end anything.
func TestFinishWithoutAMessage(t *testing.T) {
	r := chat(t, calls(called("a", "finish", `{}`)), done("ok"))
	r.tools()
	r.start()
	id := r.create("go")
	r.until(id, "the end", finished)
	if n := len(r.asked()); n != 2 {
		t.Errorf("the model was asked %d times", n)
	}
}

// What is said during the work is shown at the next step, behind the results.
func TestMessageDuringACall(t *testing.T) {
	r := chat(t, calls(called("a", "say", `{"text":"1"}`), called("b", "say", `{"text":"2"}`)), done("ok"))
	say := newHand("say")
	began, goOn := make(chan struct{}, 2), make(chan struct{})
	say.run = func(context.Context, tool.Call) (tool.Result, error) {
		began <- struct{}{}
		<-goOn
		return tool.Result{Text: "said"}, nil
	}
	r.tools(say)
	r.start()
	id := r.create("go")
	<-began
	r.say(id, "wait, also this")
	r.say(id, "and that")
	close(goOn)
	r.until(id, "the end", finished)
	got := r.last().Messages
	if len(got) != 6 || got[2].Role != llm.ToolResult || got[3].Role != llm.ToolResult || got[4].Text != "wait, also this" || got[5].Text != "and that" {
		t.Errorf("the model was shown %s", texts(r.last()))
	}
	if n := count[session.TurnBegan](r.events(id)); n != 1 {
		t.Errorf("%d turns", n)
	}
}

// What is said while the agent ends its task is a task of its own.
func TestMessageDuringFinish(t *testing.T) {
	r := chat(t, calls(called("a", "slow_finish", `{"text":"x"}`)), llmtest.Reply{Text: "yes"})
	end := newHand("slow_finish")
	began, goOn := make(chan struct{}), make(chan struct{})
	end.run = func(context.Context, tool.Call) (tool.Result, error) {
		close(began)
		<-goOn
		return tool.Result{Text: "Done.", Ends: true}, nil
	}
	r.tools(end)
	r.start()
	id := r.create("go")
	<-began
	r.say(id, "one more thing")
	close(goOn)
	r.until(id, "an answer to the second message", answered)
	ended := all[session.TurnEnded](r.rig, id)
	if len(ended) != 2 || ended[0].State != session.AgentFinished || ended[1].State != session.AgentAwaitingUser {
		t.Errorf("turns %+v", ended)
	}
	if got := r.last().Messages; got[len(got)-1].Text != "one more thing" {
		t.Errorf("the model was shown %s", texts(r.last()))
	}
}

// Calls that were never made, because a person interrupted the work, have a
// result too when the model is asked again, and the message stands behind them.
func TestInterruptedAnswerStaysWellFormed(t *testing.T) {
	for name, rule := range map[string]func(session.State) ([]session.Payload, error){
		"pause": session.State.PauseNow,
		"stop":  func(s session.State) ([]session.Payload, error) { return s.Stop("") },
	} {
		t.Run(name, func(t *testing.T) {
			r := chat(t, calls(called("a", "say", `{"text":"1"}`), called("b", "say", `{"text":"2"}`), called("c", "say", `{"text":"3"}`)), done("ok"))
			say := newHand("say")
			began := make(chan struct{}, 1)
			say.run = func(ctx context.Context, _ tool.Call) (tool.Result, error) {
				began <- struct{}{}
				<-ctx.Done()
				return tool.Result{}, ctx.Err()
			}
			r.tools(say)
			r.start()
			id := r.create("go")
			<-began
			r.update(id, rule)
			r.say(id, "something else")
			r.until(id, "the end", finished)
			got := r.last().Messages
			if len(got) != 6 || got[5].Text != "something else" || !strings.Contains(got[4].Text, "not made") {
				t.Errorf("the model was shown %s", texts(r.last()))
			}
			if len(say.calls()) != 1 {
				t.Errorf("made %+v", say.calls())
			}
		})
	}
}

// A pause lets the step in progress end. The calls that were not made yet are made
// when the work goes on.
func TestPauseAfterTheStep(t *testing.T) {
	t.Parallel()
	r := chat(t, calls(called("a", "say", `{"text":"1"}`), called("b", "say", `{"text":"2"}`)), done("ok"))
	say := newHand("say")
	began, release := make(chan struct{}, 2), make(chan struct{}, 2)
	say.run = func(ctx context.Context, c tool.Call) (tool.Result, error) {
		began <- struct{}{}
		select {
		case <-release:
			return tool.Result{Text: "the whole result"}, nil
		case <-ctx.Done():
			return tool.Result{}, ctx.Err()
		}
	}
	r.tools(say)
	r.start()
	id := r.create("go")
	<-began
	if st := r.update(id, session.State.Pause); st.Paused || !st.Pausing {
		t.Errorf("right after the wish: paused %v, pausing %v", st.Paused, st.Pausing)
	}
	release <- struct{}{}
	r.until(id, "the pause", func(s session.State) bool { return s.Paused && !s.Wants() })
	if got := all[session.ToolReturned](r.rig, id); len(got) != 1 || got[0].Outcome != session.Succeeded || got[0].Output != "the whole result" {
		t.Errorf("the step in progress gave %+v", got)
	}
	r.update(id, session.State.Resume)
	<-began
	release <- struct{}{}
	r.until(id, "the end", finished)
	if got := r.last().Messages; len(got) != 4 || len(say.calls()) != 2 {
		t.Errorf("%d calls were made, and the model was shown %s", len(say.calls()), texts(r.last()))
	}
}

// A model call is a step, too: its answer is kept, and what it calls waits.
func TestPauseAfterTheAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := newGate()
	r.profile = func(context.Context, session.State) (agent.Profile, error) { return profile(m), nil }
	r.start()
	id := r.create("go")
	<-m.asked
	r.update(id, session.State.Pause)
	r.say(id, "more")                 // takes the pause back
	r.update(id, session.State.Pause) // and this asks for it again
	m.release <- nil
	r.until(id, "the pause", func(s session.State) bool { return s.Paused && s.Pending() })
	r.update(id, session.State.Resume)
	<-m.asked
	m.release <- nil
	r.until(id, "both answered", answered)
}

// A pause that is ended at once is no mistake: the work goes on without a delay.
func TestPauseAndResumeInOneBreath(t *testing.T) {
	r := newRig(t)
	m := newGate()
	r.profile = func(context.Context, session.State) (agent.Profile, error) { return profile(m), nil }
	r.start()
	id := r.create("go")
	for range 3 {
		<-m.asked
		// Between the two, only the rig can act on the session.
		r.update(id, session.Chain(session.State.PauseNow, session.State.Resume))
		<-m.aborted
	}
	<-m.asked
	m.release <- nil
	r.until(id, "an answer", answered)
	if n := count[session.Claimed](r.events(id)); n != 1 {
		t.Errorf("the session was claimed %d times", n)
	}
}

// An answer that was cut goes on; one that is all thoughts and cut is no empty message.
func TestCutAnswers(t *testing.T) {
	for name, text := range map[string]string{"words": "The answer is", "nothing": ""} {
		t.Run(name, func(t *testing.T) {
			r := chat(t, llmtest.Reply{Text: text, Reasoning: "hm", Cut: true}, llmtest.Reply{Text: "42."})
			r.start()
			id := r.create("go")
			r.until(id, "an answer", answered)
			got := r.last().Messages
			if len(got) != 3 || !strings.Contains(got[2].Text, "was cut") || got[1].Text == "" {
				t.Errorf("the model was shown %s", texts(r.last()))
			}
		})
	}
}

// The request of each step begins with exactly the one before it, so that
// providers find it in their caches.
func TestRequestsOnlyGrow(t *testing.T) {
	r := chat(t, calls(called("a", "say", `{"text":"1"}`)), calls(called("b", "say", `{"text":"2"}`), called("c", "dance", `{}`)),
		calls(called("d", "say", `{"text":"3"}`)), done("ok"), llmtest.Reply{Text: "bye"})
	r.tools(newHand("say"))
	r.more = func(c *agent.Config) {
		c.Recall = func(_ context.Context, _ session.State, said session.UserSaid, o agent.Occasion) (session.Recalled, error) {
			return session.Recalled{Text: "known: " + said.Text}, nil
		}
	}
	r.start()
	id := r.create("go")
	r.until(id, "the end", finished)
	r.say(id, "thanks")
	r.until(id, "the last answer", answered)
	var before []json.RawMessage
	for i, a := range r.asked() {
		var body struct {
			Messages []json.RawMessage `json:"messages"`
			Tools    json.RawMessage   `json:"tools"`
		}
		if err := json.Unmarshal(a.Body, &body); err != nil {
			t.Fatal(err)
		}
		if len(body.Messages) <= len(before) {
			t.Fatalf("request %d has %d messages after %d", i, len(body.Messages), len(before))
		}
		for j, m := range before {
			if !bytes.Equal(m, body.Messages[j]) {
				t.Errorf("request %d: message %d was %s and is %s", i, j, m, body.Messages[j])
			}
		}
		before = body.Messages
	}
	if len(before) != 14 {
		t.Errorf("%d messages in the last request", len(before))
	}
}

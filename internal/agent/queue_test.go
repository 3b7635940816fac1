package agent_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"deckhand/internal/agent"
	"deckhand/internal/conversation"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/session"
	"deckhand/internal/tool"
	"deckhand/internal/tool/finish"
)

// held is a rig whose first call runs until the test lets it go.
func held(t *testing.T, plan bool, replies ...llmtest.Reply) (r *wired, say *hand, running, goOn chan struct{}) {
	t.Helper()
	running, goOn = make(chan struct{}), make(chan struct{})
	say = newHand("say")
	say.run = func(_ context.Context, c tool.Call) (tool.Result, error) {
		if strings.Contains(string(c.Args), "first") {
			close(running)
			<-goOn
		}
		return tool.Result{Text: "said"}, nil
	}
	r = newWired(t, llmtest.Chat, llmtest.Script(replies...))
	before := profile(reach(t, r.server.Config(llmtest.Chat, "m")))
	r.profile = func(_ context.Context, st session.State) (agent.Profile, error) {
		p := before
		p.Tools = []tool.Tool{say, finish.Tool{}}
		if plan && st.Overrides.Plan {
			p.Tools = []tool.Tool{finish.Tool{}}
		}
		return p, nil
	}
	r.start()
	return r, say, running, goOn
}

// The calls that are left of an answer get no tool that plan mode takes away.
func TestPlanModeHoldsForTheRestOfAnAnswer(t *testing.T) {
	r, say, running, goOn := held(t, true, calls(called("a", "say", `{"text":"first"}`), called("b", "say", `{"text":"second"}`)), done("planned"))
	id := r.create("go")
	<-running
	r.override(id, session.Overridden{Plan: true})
	close(goOn)
	r.until(id, "the end", finished)
	if n := len(say.calls()); n != 1 {
		t.Errorf("%d calls were made, want the one that was under way", n)
	}
	results := all[session.ToolReturned](r.rig, id)
	if len(results) < 2 || results[1].Outcome != session.FailedRun || !strings.Contains(results[1].Output, "no tool named") {
		t.Errorf("the second call has %+v", results)
	}
	if got := r.last().Tools; len(got) != 1 || got[0] != "finish" {
		t.Errorf("offered are %v", got)
	}
}

// The model is shown what is queued when it is asked, and nothing that was withdrawn before.
func TestWithdrawnMessagesAreNotShown(t *testing.T) {
	r, _, running, goOn := held(t, false, calls(called("a", "say", `{"text":"first"}`)), done("ok"))
	id := r.create("go")
	<-running
	for _, text := range []string{"one", "two", "three"} {
		r.update(id, func(s session.State) ([]session.Payload, error) { return s.Say(session.UserSaid{Text: text}) })
	}
	r.update(id, func(s session.State) ([]session.Payload, error) {
		return s.Requeue(s.Queued()[1:], session.UserSaid{Text: "drei"}, session.UserSaid{Text: "zwei"})
	})
	close(goOn)
	r.until(id, "the end", finished)
	if got := texts(r.last()); !strings.Contains(got, "one") || strings.Contains(got, "two") || strings.Contains(got, "three") ||
		strings.Index(got, "drei") > strings.Index(got, "zwei") || !strings.Contains(got, "zwei") {
		t.Errorf("the model was shown %s", got)
	}
}

// Sending now interrupts the call in progress, and the turn goes on with the message.
func TestSendNowInterruptsTheStep(t *testing.T) {
	r := newWired(t, llmtest.Chat, func(a llmtest.Asked) llmtest.Reply {
		if strings.Contains(texts(a), "wait") {
			return llmtest.Reply{Text: "ok"}
		}
		return llmtest.Reply{Text: strings.Repeat("and so on ", 20), Break: llmtest.Hang}
	})
	r.profile = func(context.Context, session.State) (agent.Profile, error) {
		return profile(reach(t, r.server.Config(llmtest.Chat, "m"))), nil
	}
	r.start()
	id := r.create("go")
	r.until(id, "a call", func(s session.State) bool { return s.Ask != nil })
	r.update(id, func(s session.State) ([]session.Payload, error) { return s.Say(session.UserSaid{Text: "wait"}) })
	r.update(id, session.State.SendNow)
	r.until(id, "the end", func(s session.State) bool { return !s.InTurn && s.Agent == session.AgentAwaitingUser })
	if got := texts(r.last()); !strings.Contains(got, "wait") {
		t.Errorf("the last request has %s", got)
	}
}

// Plan mode applies to a delegate that is already working: it gets no more tools that change something.
func TestPlanModeReachesADelegateAtWork(t *testing.T) {
	running, goOn := make(chan struct{}), make(chan struct{})
	say := newHand("say")
	var first sync.Once
	say.run = func(context.Context, tool.Call) (tool.Result, error) {
		first.Do(func() { close(running) })
		<-goOn
		return tool.Result{Text: "said"}, nil
	}
	r := family(t, once(delegates("task", ""), done("ok")),
		once(calls(called("a", "say", `{"text":"first"}`), called("b", "say", `{"text":"second"}`)), done("planned")), say)
	before := r.profile
	r.profile = func(ctx context.Context, st session.State) (agent.Profile, error) {
		p, err := before(ctx, st)
		chosen, gone := conversation.ChosenFor(ctx, r.sessions, st)
		if chosen.InForce.Plan {
			p.Tools = []tool.Tool{finish.Tool{}}
		}
		return p, errors.Join(err, gone)
	}
	r.start()
	id := r.create("go")
	<-running
	child := r.childOf(id)
	r.override(id, session.Overridden{Plan: true})
	close(goOn)
	r.until(child, "the end of the task", finished)
	results := all[session.ToolReturned](r.rig, child)
	if len(say.calls()) != 1 || len(results) < 2 || results[0].Outcome != session.Succeeded || !strings.Contains(results[1].Output, "no tool named") {
		t.Errorf("%d calls were made: %+v", len(say.calls()), results)
	}
}

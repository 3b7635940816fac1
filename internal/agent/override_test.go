package agent_test

import (
	"context"
	"strings"
	"testing"

	"deckhand/internal/agent"
	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/session"
	"deckhand/internal/tool"
	"deckhand/internal/tool/finish"
)

// newSwitch is a rig whose profile obeys what the person chose, as the server's
// does. The models are told apart by their names, and by what they cost.
func newSwitch(t *testing.T, say *hand, answer func(llmtest.Asked) llmtest.Reply) *wired {
	t.Helper()
	r := newWired(t, llmtest.Chat, answer)
	models := map[string]llm.Model{}
	for _, name := range []string{"cheap", "dear"} {
		models["openai/"+name] = reach(t, r.server.Config(llmtest.Chat, name))
	}
	r.profile = func(_ context.Context, st session.State) (agent.Profile, error) {
		name, price := "openai/cheap", llm.Price{Input: 1, Output: 1}
		if st.Overrides.Model != "" {
			name = st.Overrides.Model
			price = llm.Price{Input: 1000, Output: 1000}
		}
		p := profile(models[name])
		p.ModelName, p.Tools = name, []tool.Tool{say, finish.Tool{}}
		p.Info = llm.Info{Price: price, Priced: true, MaxOutput: 2000}
		if st.Overrides.Limited {
			p.Budget = &st.Overrides.Budget
		}
		return p, nil
	}
	return r
}

func (r *rig) override(id session.ID, o session.Overridden) session.State {
	r.t.Helper()
	return r.update(id, func(s session.State) ([]session.Payload, error) { return s.Override(o) })
}

// The person chooses another model while a call of the first one runs: the call
// ends, and the next request goes to the other, for which its own price is reserved.
func TestModelIsSwitchedInTheMiddle(t *testing.T) {
	running, switched := make(chan struct{}), make(chan struct{})
	say := newHand("say")
	say.run = func(context.Context, tool.Call) (tool.Result, error) {
		close(running)
		<-switched
		return tool.Result{Text: "said"}, nil
	}
	r := newSwitch(t, say, llmtest.Script(calls(called("a", "say", `{"text":"x"}`)), done("ok")))
	r.start()
	id := r.create("go")
	<-running
	r.override(id, session.Overridden{Model: "openai/dear"})
	close(switched)
	r.until(id, "the end", finished)
	asked := r.asked()
	if len(asked) != 2 || asked[0].Model != "cheap" || asked[1].Model != "dear" || len(asked[1].Messages) != 3 {
		t.Fatalf("%d requests, the last to %s: %s", len(asked), r.last().Model, texts(r.last()))
	}
	recorded := all[session.ModelAsked](r.rig, id)
	if recorded[0].Model != "openai/cheap" || recorded[1].Model != "openai/dear" || recorded[1].Reserved < 100*recorded[0].Reserved {
		t.Errorf("%+v", recorded)
	}
	if st, err := r.sessions.Load(t.Context(), id); err != nil || st.Totals.Model != "openai/dear" {
		t.Errorf("%+v %v", st.Totals, err)
	}
}

// What is chosen during a model call does not disturb it, and holds for the next
// one: also if that is due at once.
func TestModelIsSwitchedDuringACall(t *testing.T) {
	asking, switched := make(chan struct{}), make(chan struct{})
	r := newSwitch(t, newHand("say"), func(a llmtest.Asked) llmtest.Reply {
		if a.Model == "dear" {
			return done("ok")
		}
		close(asking)
		<-switched
		return calls(called("a", "say", `{"text":"x"}`))
	})
	r.start()
	id := r.create("go")
	<-asking
	r.override(id, session.Overridden{Model: "openai/dear"})
	close(switched)
	r.until(id, "the end", finished)
	if failed := all[session.ModelFailed](r.rig, id); len(r.asked()) != 2 || len(failed) > 0 {
		t.Errorf("%d requests, %+v", len(r.asked()), failed)
	}
}

// A model that is overloaded is waited for; another one that is chosen during the wait is not.
func TestModelIsSwitchedWhileTheFirstIsWaitedFor(t *testing.T) {
	r := newSwitch(t, newHand("say"), func(a llmtest.Asked) llmtest.Reply {
		if a.Model == "dear" {
			return done("ok")
		}
		return llmtest.Reply{Status: 429, RetryAfter: "60", Message: "slow down"}
	})
	r.start()
	id := r.create("go")
	r.until(id, "the wait", func(s session.State) bool { return s.Agent == session.AgentRateLimited })
	r.override(id, session.Overridden{Model: "openai/dear"})
	r.until(id, "the end", finished)
}

// The money is used up; with more of it the same turn goes on, also after a restart.
func TestBudgetIsRaised(t *testing.T) {
	r := newSwitch(t, newHand("say"), llmtest.Script(
		llmtest.Reply{Calls: []llm.Call{called("a", "say", `{"text":"x"}`)}, Usage: llm.Usage{Input: 10_000, Output: 2000}}, done("ok")))
	stop := r.start()
	id := r.create("")
	r.override(id, session.Overridden{Budget: 20_000_000, Limited: true})
	r.say(id, "go")
	st := r.until(id, "the end of the money", func(s session.State) bool { return inError(s) || finished(s) })
	if st.ErrorID != "STATUS$ERROR_BUDGET" || len(r.asked()) != 1 || !strings.Contains(st.Reason, "$0.02") {
		t.Fatalf("%s: %s after %d requests", st.ErrorID, st.Reason, len(r.asked()))
	}
	stop()
	r.override(id, session.Overridden{Budget: 1_000_000_000, Limited: true})
	r.start()
	r.update(id, session.State.Resume)
	r.until(id, "the end", finished)
}

package session_test

import (
	"context"
	"fmt"

	"pgregory.net/rapid"

	"deckhand/internal/session"
)

// actions are what may happen in a world. A sensible step of some loop is in
// the list several times: without it random choices would rarely get anywhere.
func (w *world) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"":       w.check,
		"say":    w.say,
		"say-2":  w.say,
		"start":  w.person(func(_ *rapid.T, s session.State) ([]session.Payload, error) { return s.Start() }),
		"stop":   w.stop,
		"pause":  w.person(func(_ *rapid.T, s session.State) ([]session.Payload, error) { return s.Pause() }),
		"resume": w.person(func(_ *rapid.T, s session.State) ([]session.Payload, error) { return s.Resume() }),
		"rename": w.rename,
		"delete": w.remove,
		"decide": w.decide,
		"note": w.person(func(*rapid.T, session.State) ([]session.Payload, error) {
			return []session.Payload{session.Noted{ID: "x"}}, nil
		}),
		"egress": w.person(func(t *rapid.T, s session.State) ([]session.Payload, error) {
			return s.SetEgress(session.EgressSet{Mode: rapid.SampledFrom([]string{"open", "off"}).Draw(t, "mode")})
		}),
		"take":    w.take,
		"condens": w.condense,
		"work-1":  w.work, "work-2": w.work, "work-3": w.work, "work-4": w.work, "work-5": w.work, "work-6": w.work,
		"work-7": w.work, "work-8": w.work, "work-9": w.work, "work-10": w.work, "work-11": w.work, "work-12": w.work,
		"wild-1": w.wild, "wild-2": w.wild,
	}
}

// rare is true now and then. Rapid prefers small numbers, so the rare case is a large one.
func rare(t *rapid.T, label string) bool { return rapid.IntRange(0, 40).Draw(t, label) > 33 }

func (w *world) stop(t *rapid.T) {
	if !rare(t, "really") {
		t.Skip()
	}
	_, _ = w.update(t, context.Background(), func(s session.State) ([]session.Payload, error) { return s.Stop("enough") })
}

func (w *world) say(t *rapid.T) {
	m := session.UserSaid{Text: "do it"}
	if rapid.Bool().Draw(t, "keyed") {
		m.Key = rapid.SampledFrom([]string{"k1", "k2", "k3", w.name("k")}).Draw(t, "key")
	}
	_, _ = w.update(t, context.Background(), func(s session.State) ([]session.Payload, error) { return s.Say(m) })
}

func (w *world) rename(t *rapid.T) {
	title := rapid.SampledFrom([]string{"", "  ", "a title", "another"}).Draw(t, "title")
	_, _ = w.update(t, context.Background(), func(s session.State) ([]session.Payload, error) { return s.Rename(title) })
}

func (w *world) remove(t *rapid.T) {
	if !rare(t, "really") { // else most worlds would be short
		t.Skip()
	}
	_, _ = w.update(t, context.Background(), func(s session.State) ([]session.Payload, error) { return s.Delete() })
}

func (w *world) decide(t *rapid.T) {
	yes := rapid.Bool().Draw(t, "yes")
	_, _ = w.update(t, context.Background(), func(s session.State) ([]session.Payload, error) { return s.Decide("", yes, "") })
}

// take makes a loop claim the session. If the store forgets to confirm, the
// loop does not know that it owns it, as in life.
func (w *world) take(t *rapid.T) {
	l := rapid.SampledFrom(w.loops).Draw(t, "loop")
	st, err := w.update(t, context.Background(), func(s session.State) ([]session.Payload, error) { return s.Take(l.name) })
	if err == nil {
		l.claim = st.Claim
	}
}

func (w *world) condense(t *rapid.T) {
	n := w.log.refold(theID).Last
	from := rapid.Int64Range(-1, n+1).Draw(t, "from")
	to := rapid.Int64Range(-1, n+1).Draw(t, "to")
	_, _ = w.update(t, context.Background(), do(session.Condensed{From: from, To: to, Summary: "…"}))
}

// work lets one loop, owner or not, do what it thinks comes next.
func (w *world) work(t *rapid.T) {
	l := rapid.SampledFrom(w.loops).Draw(t, "loop")
	zombie := rare(t, "zombie")
	st := w.log.refold(theID)
	if st.Claim == 0 && !zombie {
		w.take(t)
		return
	}
	for _, o := range w.loops { // mostly the owner works, sometimes a loop that lost the session tries
		if !zombie && o.claim != 0 && o.claim == st.Claim {
			l = o
		}
	}
	rule, ok := w.sensible(t, l, st)
	if !ok {
		t.Skip()
	}
	_, _ = w.update(t, as(l.claim), rule)
}

// sensible is the next step for a loop that sees st.
func (w *world) sensible(t *rapid.T, l *loop, st session.State) (func(session.State) ([]session.Payload, error), bool) {
	switch {
	case l.claim == 0:
		return nil, false
	case !st.Ready:
		return w.prepare(l), true
	case !st.InTurn:
		return func(s session.State) ([]session.Payload, error) { return s.BeginTurn(l.claim) }, true
	case st.Ask != nil:
		return w.settle(t, l, st), true
	case len(st.Open) > 0 && rapid.Bool().Draw(t, "return first"):
		return w.giveBack(t, l, st), true
	case len(st.Announced) > 0:
		risky := rapid.Bool().Draw(t, "approval")
		return func(s session.State) ([]session.Payload, error) {
			return s.CallNext(l.claim, session.RiskLow, risky)
		}, true
	case len(st.Open) > 0:
		return w.giveBack(t, l, st), true
	case st.Answer > st.Seen && rapid.Bool().Draw(t, "end"):
		return w.end(t, l, st), true
	}
	return w.ask(t, l), true
}

func (w *world) prepare(l *loop) func(session.State) ([]session.Payload, error) {
	handle := fmt.Appendf(nil, `{"box":%q}`, l.name)
	return func(s session.State) ([]session.Payload, error) {
		step, err := s.Progressed(l.claim, session.WorkspaceStep{Step: "starting"})
		if err != nil {
			return nil, err
		}
		ready, err := s.Prepared(l.claim, session.WorkspaceReady{Handle: handle})
		return append(step, ready...), err
	}
}

func (w *world) ask(t *rapid.T, l *loop) func(session.State) ([]session.Payload, error) {
	l.call = w.name("call")
	reserve := session.Money(rapid.IntRange(0, 60).Draw(t, "reserve"))
	return func(s session.State) ([]session.Payload, error) {
		return s.AskModel(l.claim, l.call, "a model", reserve, w.budget, w.limited)
	}
}

// settle answers the open call, with up to three tool calls, or fails it.
func (w *world) settle(t *rapid.T, l *loop, st session.State) func(session.State) ([]session.Payload, error) {
	call := st.Ask.Call
	if rare(t, "mine") {
		call = l.call // what a zombie still holds
	}
	cost := session.Money(rapid.Int64Range(0, int64(st.Ask.Reserved)).Draw(t, "cost"))
	if rare(t, "fails") {
		return func(s session.State) ([]session.Payload, error) {
			return s.AskFailed(l.claim, call, "network", "", cost)
		}
	}
	a := session.ModelAnswered{Call: call, Text: "well", Cost: cost, Usage: session.Usage{Input: 7, Output: 3}}
	for range rapid.IntRange(0, 3).Draw(t, "calls") {
		a.ToolCalls = append(a.ToolCalls, session.ToolCall{ID: w.name("t"), Name: "bash"})
	}
	return func(s session.State) ([]session.Payload, error) { return s.Answered(l.claim, a) }
}

func (w *world) giveBack(t *rapid.T, l *loop, st session.State) func(session.State) ([]session.Payload, error) {
	c := rapid.SampledFrom(st.Open).Draw(t, "call")
	return func(s session.State) ([]session.Payload, error) {
		return s.Returned(l.claim, session.ToolReturned{ID: c.ID, Outcome: session.Succeeded})
	}
}

// end ends the turn up to what the model saw, or, as a careless loop would, up to the end.
func (w *world) end(t *rapid.T, l *loop, st session.State) func(session.State) ([]session.Payload, error) {
	end := session.TurnEnded{UpTo: st.Shown, State: session.AgentAwaitingUser}
	switch rapid.IntRange(0, 4).Draw(t, "how") {
	case 3:
		end.UpTo = st.Last
	case 4:
		end.State = session.AgentError
	}
	return func(s session.State) ([]session.Payload, error) { return s.EndTurn(l.claim, end) }
}

// wild is any rule of a loop at any time, with the claim of any loop.
func (w *world) wild(t *rapid.T) {
	l := rapid.SampledFrom(w.loops).Draw(t, "loop")
	st := w.log.refold(theID)
	rules := []func(session.State) ([]session.Payload, error){
		w.prepare(l),
		func(s session.State) ([]session.Payload, error) { return s.BeginTurn(l.claim) },
		func(s session.State) ([]session.Payload, error) { return s.CallNext(l.claim, session.RiskHigh, true) },
		func(s session.State) ([]session.Payload, error) { return s.Suggest(l.claim, "a suggestion") },
		func(s session.State) ([]session.Payload, error) { return s.Fail(l.claim, "STATUS$ERROR", "no image") },
		func(s session.State) ([]session.Payload, error) {
			return s.Returned(l.claim, session.ToolReturned{ID: "t1", Outcome: session.FailedRun})
		},
		w.ask(t, l),
		w.end(t, l, st),
		session.Chain(w.ask(t, l), func(s session.State) ([]session.Payload, error) {
			return s.Answered(l.claim, session.ModelAnswered{Call: l.call})
		}, func(s session.State) ([]session.Payload, error) {
			return s.EndTurn(l.claim, session.TurnEnded{UpTo: s.Shown, State: session.AgentAwaitingUser})
		}),
	}
	_, _ = w.update(t, as(l.claim), rapid.SampledFrom(rules).Draw(t, "rule"))
}

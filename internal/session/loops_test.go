package session_test

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"deckhand/internal/session"
)

// What a loop does in a world, step by step.

// only appends p if the loop owns the session.
func (l *loop) only(p ...session.Payload) decision {
	return func(s session.State) ([]session.Payload, error) {
		if s.Claim != l.claim || l.claim == 0 {
			return nil, session.ErrNotOwner
		}
		return p, nil
	}
}

// sensible is the next step for a loop that sees st.
func (w *world) sensible(t *rapid.T, l *loop, st session.State) (decision, bool) {
	switch {
	case l.claim == 0:
		return nil, false
	case !st.Ready:
		return w.prepare(l), true
	case st.Typing() && rapid.Bool().Draw(t, "run what was typed"):
		return w.endTyped(l, st), true
	case st.Ask != nil:
		return w.due(l, w.settle(t, l, st)), true
	case st.Pausing && len(st.Open) == 0 && st.Over == "":
		return func(s session.State) ([]session.Payload, error) { return s.PauseDue(l.claim) }, true
	case len(st.Open) > 0 && rapid.Bool().Draw(t, "return first"):
		return w.due(l, w.giveBack(t, l, st)), true
	case st.InTurn && st.Over != "" && len(st.Open) == 0:
		return w.endOver(l), true
	case len(st.Announced) > 0 && !st.Pausing:
		ask := w.question(t)
		return func(s session.State) ([]session.Payload, error) { return s.CallNext(l.claim, session.RiskLow, ask) }, true
	case len(st.Open) > 0 && rapid.Bool().Draw(t, "delegate"):
		return w.grant(t, l), true
	case len(st.Open) > 0:
		return w.giveBack(t, l, st), true
	case st.Compact != nil && !st.Paused:
		return w.compact(t, l), true
	case st.Replaying():
		return w.replayNext(t, l, st), true
	case !st.InTurn:
		return func(s session.State) ([]session.Payload, error) { return s.BeginTurn(l.claim) }, true
	case st.Answer > st.Seen && rapid.Bool().Draw(t, "end"):
		return w.end(t, l, st), true
	}
	return w.ask(t, l), true
}

// due pauses after a step, if that was requested.
func (w *world) due(l *loop, step decision) decision {
	return session.Chain(step, func(s session.State) ([]session.Payload, error) { return s.PauseDue(l.claim) })
}

// endTyped gives the oldest command of a person its result.
func (w *world) endTyped(l *loop, st session.State) decision {
	e := session.CommandEnded{Cause: 1, Outcome: session.Succeeded}
	if len(st.Typed) > 0 {
		e.Cause, e.Command = st.Typed[0].Number, st.Typed[0].Command
	}
	return func(s session.State) ([]session.Payload, error) { return s.TypedEnded(l.claim, e) }
}

// question is what is put to the person about a call, if anything.
func (w *world) question(t *rapid.T) *session.ApprovalAsked {
	switch rapid.IntRange(0, 2).Draw(t, "approval") {
	case 1:
		return &session.ApprovalAsked{Reason: "it deletes", Pattern: "ls *"}
	case 2:
		return &session.ApprovalAsked{Deadline: time.Unix(1e9, 0).UTC(), Default: true}
	}
	return nil
}

// grant sets money aside for a child, sometimes for one that was there before.
func (w *world) grant(t *rapid.T, l *loop) decision {
	if len(w.children) == 0 || rapid.Bool().Draw(t, "new child") {
		w.children = append(w.children, session.ID(w.name("child")))
	}
	child := rapid.SampledFrom(w.children).Draw(t, "child")
	most := session.Money(rapid.IntRange(0, 20).Draw(t, "most"))
	return func(s session.State) ([]session.Payload, error) {
		return s.GrantTo(l.claim, child, most, limit(w.budget, w.limited))
	}
}

// endOver gives what was not called a result and ends the turn.
func (w *world) endOver(l *loop) decision {
	return session.Chain(
		func(s session.State) ([]session.Payload, error) { return s.SkipRest(l.claim, "it is over") },
		func(s session.State) ([]session.Payload, error) {
			return s.EndTurn(l.claim, session.TurnEnded{UpTo: max(s.Shown, s.Seen), State: s.Over})
		})
}

// replayNext takes a step of the trajectory, in which people and the agent take turns.
func (w *world) replayNext(t *rapid.T, l *loop, st session.State) decision {
	switch {
	case st.Replay >= w.script:
		return func(s session.State) ([]session.Payload, error) { return s.ReplayStep(l.claim, nil, true) }
	case st.Replay%2 == 0:
		return session.Chain(
			func(s session.State) ([]session.Payload, error) {
				if !s.InTurn {
					return nil, nil
				}
				return s.EndTurn(l.claim, session.TurnEnded{UpTo: max(s.Shown, s.Seen), State: session.AgentAwaitingUser})
			},
			func(s session.State) ([]session.Payload, error) {
				return s.ReplayStep(l.claim, &session.UserSaid{Text: "again"}, s.Replay+1 >= w.script)
			},
			func(s session.State) ([]session.Payload, error) { return s.BeginTurn(l.claim) })
	case !st.InTurn:
		return l.only(session.TurnBegan{})
	case rare(t, "limit"):
		return func(s session.State) ([]session.Payload, error) {
			return s.EndTurn(l.claim, session.TurnEnded{UpTo: max(s.Shown, s.Seen), State: session.AgentError, ErrorID: "LIMIT"})
		}
	}
	a := session.ModelAnswered{Call: w.name("call"), Text: "as recorded", ToolCalls: w.calls(t)}
	return session.Chain(
		func(s session.State) ([]session.Payload, error) {
			return s.AskModel(l.claim, session.ModelAsked{Call: a.Call, Model: "replay"}, nil)
		},
		func(s session.State) ([]session.Payload, error) { return s.Answered(l.claim, a) },
		l.only(session.Replayed{Next: st.Replay + 1}),
		func(s session.State) ([]session.Payload, error) {
			if len(a.ToolCalls) > 0 {
				return nil, nil
			}
			return s.EndTurn(l.claim, session.TurnEnded{UpTo: s.Shown, State: session.AgentAwaitingUser})
		})
}

func (w *world) prepare(l *loop) decision {
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

func (w *world) ask(t *rapid.T, l *loop) decision {
	l.call = w.name("call")
	a := session.ModelAsked{Call: l.call, Model: "a model", Reserved: session.Money(rapid.IntRange(0, 60).Draw(t, "reserve"))}
	if rare(t, "summary") {
		a.Purpose = session.ForSummary
	}
	return func(s session.State) ([]session.Payload, error) {
		return s.AskModel(l.claim, a, limit(w.budget, w.limited))
	}
}

// compact asks for a summary, or gives up.
func (w *world) compact(t *rapid.T, l *loop) decision {
	if rapid.Bool().Draw(t, "give up") {
		return l.only(session.Noted{ID: session.NoteCompactFailed, Error: true})
	}
	l.call = w.name("call")
	return func(s session.State) ([]session.Payload, error) {
		return s.AskModel(l.claim, session.ModelAsked{Call: l.call, Purpose: session.ForSummary, UpTo: s.Last}, limit(w.budget, w.limited))
	}
}

// settle answers the open call, with up to three tool calls, or fails it. One
// that failed may be made again, after a wait for the provider.
func (w *world) settle(t *rapid.T, l *loop, st session.State) decision {
	call := st.Ask.Call
	if rare(t, "mine") {
		call = l.call // what a zombie still holds
	}
	cost := session.Money(rapid.Int64Range(0, int64(st.Ask.Reserved)).Draw(t, "cost"))
	if rare(t, "fails") {
		again := rapid.Bool().Draw(t, "again")
		return session.Chain(
			func(s session.State) ([]session.Payload, error) {
				return s.AskFailed(l.claim, call, "rate", "", cost, again)
			},
			func(session.State) ([]session.Payload, error) {
				if !again {
					return nil, nil
				}
				return []session.Payload{session.StateChanged{State: session.AgentRateLimited}}, nil
			})
	}
	a := session.ModelAnswered{Call: call, Text: "well", Cost: cost, Usage: session.Usage{Input: 7, Output: 3}, ToolCalls: w.calls(t)}
	return func(s session.State) ([]session.Payload, error) { return s.Answered(l.claim, a) }
}

func (w *world) calls(t *rapid.T) []session.ToolCall {
	var out []session.ToolCall
	for range rapid.IntRange(0, 3).Draw(t, "calls") {
		out = append(out, session.ToolCall{ID: w.name("t"), Name: "bash"})
	}
	return out
}

// giveBack gives a call its result, which may be that the task is done. A
// careless loop says of any call that it was made.
func (w *world) giveBack(t *rapid.T, l *loop, st session.State) decision {
	c := rapid.SampledFrom(st.Open).Draw(t, "call")
	r := session.ToolReturned{ID: c.ID, Outcome: session.Succeeded, Ends: rapid.SampledFrom([]bool{false, true, false}).Draw(t, "ends")}
	if c.Denied && !rare(t, "careless") {
		r.Outcome, r.Ends = session.Rejected, false
	}
	return func(s session.State) ([]session.Payload, error) { return s.Returned(l.claim, r) }
}

// end ends the turn up to what the model saw, or, as a careless loop would, up to the end.
func (w *world) end(t *rapid.T, l *loop, st session.State) decision {
	end := session.TurnEnded{UpTo: st.Shown, State: session.AgentAwaitingUser}
	switch rapid.IntRange(0, 5).Draw(t, "how") {
	case 3:
		end.UpTo = st.Last
	case 4:
		end.State, end.ErrorID = session.AgentError, "STATUS$ERROR"
	case 5:
		end.State, end.ErrorID = session.AgentRateLimited, "RATE"
	}
	return func(s session.State) ([]session.Payload, error) { return s.EndTurn(l.claim, end) }
}

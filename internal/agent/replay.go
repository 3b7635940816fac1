package agent

import (
	"context"
	"errors"
	"fmt"

	"deckhand/internal/session"
)

// Recorded is one step of a trajectory: a message of the person, or an answer of the agent.
type Recorded struct {
	Said  *session.UserSaid
	Text  string
	Calls []session.ToolCall
}

// replayModel is the name under which recorded answers stand in the log.
const replayModel = "replay"

// replay takes the next step of a recorded trajectory: what was said is said
// again, what was called is called again, under today's rules.
func (l *Loop) replay(ctx context.Context, w *worker, st session.State, p Profile, t *transcript) (session.State, error) {
	if w.script == nil && l.Script != nil {
		script, err := l.Script(st.Created.Replay)
		if err != nil {
			return l.failWith(ctx, w, "STATUS$ERROR", "The recorded trajectory cannot be read: "+err.Error())
		}
		w.script = script
	}
	var err error
	switch {
	case st.Replay >= len(w.script):
		st, err = l.update(ctx, w, func(s session.State) ([]session.Payload, error) { return s.ReplayStep(w.claim, nil, true) })
	case w.script[st.Replay].Said != nil:
		st, err = l.resay(ctx, w, p, w.script[st.Replay].Said)
	case !st.InTurn:
		st, err = l.update(ctx, w, func(s session.State) ([]session.Payload, error) {
			switch {
			case s.Claim != w.claim:
				return nil, session.ErrNotOwner
			case s.InTurn:
				return nil, nil
			}
			return []session.Payload{session.TurnBegan{}}, nil
		})
	default:
		return l.reanswer(ctx, w, st, p, t)
	}
	if err != nil {
		return l.left(ctx, w, err)
	}
	return st, nil
}

// resay says the next message again. A turn that is still under way had no end
// in the recording; it has one now.
func (l *Loop) resay(ctx context.Context, w *worker, p Profile, said *session.UserSaid) (session.State, error) {
	return l.update(ctx, w,
		func(s session.State) ([]session.Payload, error) {
			if !s.InTurn {
				return nil, nil
			}
			return s.EndTurn(w.claim, session.TurnEnded{UpTo: max(s.Shown, s.Seen), State: session.AgentAwaitingUser})
		},
		func(s session.State) ([]session.Payload, error) { return s.ReplayStep(w.claim, said, false) },
		func(s session.State) ([]session.Payload, error) {
			return s.FirstWords(said.Text, func(text string) (string, error) { return p.mask(text), nil })
		},
		func(s session.State) ([]session.Payload, error) { return s.BeginTurn(w.claim) })
}

// reanswer answers as the recorded agent did. It counts as a step and costs nothing.
func (l *Loop) reanswer(ctx context.Context, w *worker, st session.State, p Profile, t *transcript) (session.State, error) {
	if err := t.advance(ctx, l.Log, st); err != nil {
		return st, err
	}
	if st.Asks >= p.MaxAsks {
		return l.endTurn(ctx, w, t, "STATUS$ERROR_MAX_ITERATIONS", fmt.Sprintf("The limit of %d model calls per turn was reached in a replay. Send a message to continue.", p.MaxAsks))
	}
	r := w.script[st.Replay]
	call := fmt.Sprintf("m%d", st.Last+1)
	calls := make([]session.ToolCall, len(r.Calls))
	for i, c := range r.Calls { // ids of the recording may come twice
		calls[i] = session.ToolCall{ID: fmt.Sprintf("replay-%d-%d", st.Replay, i), Name: c.Name, Args: c.Args}
	}
	next, err := l.update(ctx, w,
		func(s session.State) ([]session.Payload, error) {
			if s.Replay != st.Replay {
				return nil, fmt.Errorf("%w: the replay went on", session.ErrRefused)
			}
			return s.AskModel(w.claim, session.ModelAsked{Call: call, Model: replayModel}, nil)
		},
		func(s session.State) ([]session.Payload, error) {
			return s.Answered(w.claim, session.ModelAnswered{Call: call, Text: r.Text, ToolCalls: calls, Final: len(calls) == 0})
		},
		func(s session.State) ([]session.Payload, error) {
			return []session.Payload{session.Replayed{Next: s.Replay + 1}}, nil
		},
		func(s session.State) ([]session.Payload, error) {
			if len(calls) > 0 {
				return nil, nil
			}
			return s.EndTurn(w.claim, session.TurnEnded{UpTo: s.Shown, State: session.AgentAwaitingUser})
		},
		l.calling(w, p),
	)
	if errors.Is(err, session.ErrRefused) {
		return l.left(ctx, w, err)
	}
	return next, err
}

// failWith ends a session that cannot go on as it was asked for.
func (l *Loop) failWith(ctx context.Context, w *worker, id, reason string) (session.State, error) {
	st, err := l.update(ctx, w, func(s session.State) ([]session.Payload, error) { return s.Fail(w.claim, id, reason) })
	if err != nil {
		return l.left(ctx, w, err)
	}
	return st, nil
}

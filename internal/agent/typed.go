package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/tool"
)

// newlyTyped is true for a session with a command that was typed since it was claimed.
// As with an approved call, whoever begins it takes the session first: so a later owner
// can tell a command that waited from one that may have been begun.
func newlyTyped(s session.State) bool {
	return len(s.Typed) > 0 && s.Typed[len(s.Typed)-1].Number > s.Claim
}

// runTyped runs the oldest command that a person typed, without the model.
func (l *Loop) runTyped(ctx context.Context, w *worker, p Profile, st session.State) (session.State, error) {
	if newlyTyped(st) {
		return l.reclaim(ctx, w)
	}
	typed := st.Typed[0]
	end := session.CommandEnded{Cause: typed.Number, Command: typed.Command}
	id := fmt.Sprintf("%d-typed", typed.Number)
	done, err := l.execTyped(ctx, w, p, st, typed, id)
	defer l.Deltas.EndDelta(w.id, typed.Call())
	var unavailable *sandbox.Unavailable
	switch {
	case err == nil:
		end.Outcome, end.Output = outcome(done), p.mask(done.Text)
		if details := p.Masker.JSON(done.Details, secret.Inner); json.Valid(details) {
			end.Details = details
		}
	case ctx.Err() != nil: // shutdown: the next owner fetches the result
		return session.State{}, err
	case errors.Is(err, errLeft):
		return l.left(ctx, w, err)
	case errors.As(err, &unavailable):
		end.Outcome, end.Output = session.FailedRun, unavailable.Reason
	default:
		return session.State{}, err
	}
	st, err = l.update(ctx, w, func(s session.State) ([]session.Payload, error) { return s.TypedEnded(w.claim, end) })
	if err != nil {
		return l.left(ctx, w, err)
	}
	l.acknowledge(ctx, w, id)
	return st, nil
}

// execTyped runs the command in the conversation's shell. A stop interrupts it.
func (l *Loop) execTyped(ctx context.Context, w *worker, p Profile, st session.State, typed session.TypedCommand, id string) (tool.Result, error) {
	if l.Shell == nil {
		return tool.Result{Failed: true, Text: "There is no shell here."}, nil
	}
	args, err := json.Marshal(map[string]string{"command": typed.Command})
	if err != nil {
		return tool.Result{}, err
	}
	ctx, stop := l.while(ctx, w, func(now session.State) bool {
		return len(now.Typed) > 0 && now.Typed[0].Number == typed.Number
	})
	defer stop()
	keep, flush := l.live(w.id, typed.Call(), p) // shown to nobody, and kept when the command is interrupted
	defer flush()
	c := tool.Call{ID: id, Number: typed.Number, Again: typed.Number <= w.begun, Up: l.up(ctx, st), Args: args, Session: string(w.id), Owner: st.Owner, Shell: shellOf(st), Live: keep}
	var done tool.Result
	for i := range attempts {
		var entered bool
		if done, entered, err = l.inSandbox(ctx, w, p, st, l.Shell, c); err == nil {
			return done, nil
		}
		if cause := context.Cause(ctx); cause != nil {
			return done, cause
		}
		if words, ok := sandbox.Refusal(err); ok {
			return tool.Result{Failed: true, Text: "The sandbox could not do this: " + words}, nil
		}
		if !errors.Is(err, sandbox.ErrLost) && !errors.Is(err, sandbox.ErrGone) {
			return done, err
		}
		if entered {
			c.Again, c.Up = true, true
		}
		select {
		case <-ctx.Done():
		case <-time.After(attemptPause << i):
		}
	}
	return done, &sandbox.Unavailable{Reason: "The sandbox was lost, and cannot be reached any more.", Cause: err}
}

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/tool"
)

// newlyTyped is true for a session with a command that was typed since it was claimed. As with
// an approved call, the session is taken before the command starts, so that a later owner can
// tell a queued command from one that may have started.
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
		end.Outcome, end.Output = outcome(done), p.Masker.Part(done.Text, done.Follows, done.Continues)
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
	if interruptsFirst(typed.Command) { // not before: a loop that runs the command again must not interrupt it
		l.acknowledge(ctx, w, interruptOf(id))
	}
	return st, nil
}

// execTyped runs the command in the conversation's shell. A stop interrupts it.
func (l *Loop) execTyped(ctx context.Context, w *worker, p Profile, st session.State, typed session.TypedCommand, id string) (tool.Result, error) {
	if l.Shell == nil {
		return tool.Result{Failed: true, Text: "There is no shell here."}, nil
	}
	ctx, stop := l.while(ctx, w, func(now session.State) bool {
		return len(now.Typed) > 0 && now.Typed[0].Number == typed.Number
	})
	defer stop()
	keep := l.live(w.id, typed.Call(), p.Masker.Following) // not streamed; kept when the command is interrupted
	c := tool.Call{ID: id, Number: typed.Number, Again: typed.Number <= w.begun, Up: l.up(ctx, st), Session: string(w.id), Owner: st.Owner, Shell: shellOf(st), Live: keep}
	c.Args = typedArgs(typed.Command)
	if interruptsFirst(typed.Command) {
		first := c
		first.ID, first.Args = interruptOf(id), input("C-c")
		if done, err := l.retryTyped(ctx, w, p, st, first); err != nil {
			return done, err
		}
		c.Args = typedArgs(strings.TrimLeft(typed.Command, session.CtrlC))
	}
	done, err := l.retryTyped(ctx, w, p, st, c)
	return forPeople(done), err
}

// interruptsFirst is true for a command after Ctrl-C on the same line: two calls, of which
// the first is known by interruptOf.
func interruptsFirst(text string) bool {
	_, key := session.TypedKey(text)
	return !key && strings.HasPrefix(text, session.CtrlC)
}

func interruptOf(id string) string { return id + "-interrupt" }

// typedArgs are the arguments of the shell's tool for what a person typed. The names of keys
// go to the command that runs, and nothing waits for its output.
func typedArgs(text string) json.RawMessage {
	switch key, ok := session.TypedKey(text); {
	case ok && key != "":
		return input(key)
	case ok:
		text = ""
	}
	args, _ := json.Marshal(map[string]string{"command": text})
	return args
}

func input(key string) json.RawMessage {
	args, _ := json.Marshal(map[string]string{"command": key, "is_input": "true"})
	return args
}

// forPeople says what a person can do about a command that still runs. What the tool says is
// for the model, and clients do not show it.
func forPeople(r tool.Result) tool.Result {
	var d struct {
		ExitCode *int `json:"exit_code"`
	}
	if json.Unmarshal(r.Details, &d) != nil || d.ExitCode == nil || *d.ExitCode != -1 || r.Unknown {
		return r
	}
	switch {
	case !r.Failed:
		r.Text = strings.TrimRight(r.Text, "\n") + "\n[The command is still running. Type C-c to interrupt it, or press Enter to wait for more output.]"
	case strings.Contains(r.Text, sandbox.StillRuns):
		r.Text = "The previous command is still running, so this one was not run. Type C-c to interrupt it, or press Enter to wait for it."
	}
	return r
}

// retryTyped makes a call, and makes it again when its sandbox is lost.
func (l *Loop) retryTyped(ctx context.Context, w *worker, p Profile, st session.State, c tool.Call) (done tool.Result, err error) {
	for i := range attempts {
		var entered bool
		if done, entered, err = l.inSandbox(ctx, w, p, st, l.Shell, c); err == nil {
			return done, nil
		}
		if cause := context.Cause(ctx); cause != nil {
			return done, cause
		}
		if words, ok := sandbox.Refusal(err); ok {
			return tool.Result{Failed: true, Text: "The sandbox refused this command: " + words}, nil
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
	return done, &sandbox.Unavailable{Reason: "The sandbox stopped responding and cannot be reached. Send a message to try again.", Cause: err}
}

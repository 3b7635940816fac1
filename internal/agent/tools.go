package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"deckhand/internal/sandbox"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/tool"
	"deckhand/internal/tool/delegate"
)

// Workspaces gives a session's sandbox, which is started if need be.
type Workspaces interface {
	Use(ctx context.Context, id session.ID) (*sandbox.Sandbox, func(), error)
}

// finishCall brings an open call to its one result: it is run now, or its
// result is fetched from the runner if a server before us had it run.
func (l *Loop) finishCall(ctx context.Context, w *worker, p Profile, st session.State, t *transcript) (session.State, error) {
	open := st.Open[0]
	called, again := w.call, false
	if open.Number != w.called {
		var err error
		if called, err = l.called(ctx, w.id, open.Number); err != nil {
			return session.State{}, err
		}
		// This worker did not record the call, so it may have been started before: by a previous
		// owner, or by a worker of this loop that failed.
		again = open.Number != w.fresh
	}
	if open.Args != nil {
		called.Args = open.Args
	}
	r, err := l.call(ctx, w, p, open, called, again, st, t)
	defer l.Deltas.EndDelta(w.id, open.ID)
	var unavailable *sandbox.Unavailable
	switch {
	case err != nil && ctx.Err() != nil: // shutdown: the next owner fetches the result
		return session.State{}, err
	case errors.Is(err, errLeft):
		return l.left(ctx, w, err)
	case errors.As(err, &unavailable):
		return l.unavailable(ctx, w, unavailable, r)
	case err != nil:
		return session.State{}, err
	}
	if w.calls == nil {
		w.calls = map[string]int{}
	}
	w.calls[open.Name]++
	r.Args, r.Name = called.Args, open.Name
	st, err = l.update(ctx, w,
		func(s session.State) ([]session.Payload, error) { return s.Returned(w.claim, r) },
		func(s session.State) ([]session.Payload, error) {
			if !open.Denied || !s.Replaying() {
				return nil, nil
			}
			// What was recorded after this call rests on it: from here on it is the model's turn.
			return s.ReplayStep(w.claim, nil, true)
		},
		l.askingNext(ctx, w, p, t, r))
	if err != nil {
		return l.left(ctx, w, err)
	}
	l.acknowledge(ctx, w, callID(open))
	return st, nil
}

// called reads the call as the log has it.
func (l *Loop) called(ctx context.Context, id session.ID, number int64) (session.ToolCalled, error) {
	for e, err := range l.Log.Read(ctx, id, number-1) {
		if err != nil {
			return session.ToolCalled{}, err
		}
		switch p := e.Payload.(type) {
		case session.ToolCalled:
			if e.Number == number {
				return p, nil
			}
		case session.Deleted: // and with it all that came before
			return session.ToolCalled{}, session.ErrDeleted
		}
		break
	}
	return session.ToolCalled{}, fmt.Errorf("%w: event %d is not a tool call", session.ErrCorrupt, number)
}

// attempts is how often a call is taken up again when its sandbox is lost, and
// attemptPause how long to wait before the second; then twice as long each time.
const (
	attempts     = 5
	attemptPause = 250 * time.Millisecond
)

// call runs one call. While it runs, news of the session are read: a stop or a
// pause interrupts the command. With sandbox.Unavailable the result has an outcome
// only if the call was certainly not run.
func (l *Loop) call(ctx context.Context, w *worker, p Profile, open session.OpenCall, called session.ToolCalled, again bool, st session.State, said *transcript) (session.ToolReturned, error) {
	r := session.ToolReturned{ID: open.ID}
	if open.Denied {
		r.Outcome, r.Output = session.Rejected, "The user rejected this call."
		if open.Why != "" {
			r.Output = "The user rejected this call: " + open.Why
		}
		return r, nil
	}
	t := find(w.tools, open.Name)
	if t == nil {
		r.Outcome, r.Output = session.FailedRun, fmt.Sprintf("There is no tool named %q. There are: %s.", open.Name, names(w.tools))
		return r, nil
	}
	args := own(t.Spec(), called.Args)
	if err := l.schemas.check(t.Spec(), args); err != nil {
		r.Outcome, r.Output = session.FailedRun, fmt.Sprintf("%s was not called: %v.", open.Name, err)
		return r, nil
	}
	ctx, stop := l.whileOpen(ctx, w, open.ID)
	defer stop()
	show := l.live(w.id, open.ID, p.Masker.Following)
	c := tool.Call{ID: callID(open), Number: open.Number, Again: again, Up: l.up(ctx, st), Args: args, Session: string(w.id), Owner: st.Owner, Shell: shellOf(st), Previous: said.previous[open.Name], Mask: p.mask, Live: show}
	var err error
	for i := range attempts {
		var done tool.Result
		var entered bool
		if done, entered, err = l.inSandbox(ctx, w, p, st, t, c); err == nil {
			r.Outcome, r.Output, r.Images, r.Ends = outcome(done), p.Masker.Part(done.Text, done.Follows, done.Continues), done.Images, done.Ends && !done.Failed
			if details := p.Masker.JSON(done.Details, secret.Inner); json.Valid(details) {
				r.Details = details
			}
			return r, nil
		}
		if cause := context.Cause(ctx); cause != nil {
			return r, cause
		}
		if words, ok := sandbox.Refusal(err); ok {
			r.Outcome, r.Output = session.FailedRun, p.mask("The sandbox refused this call: "+words)
			return r, nil
		}
		if !errors.Is(err, sandbox.ErrLost) && !errors.Is(err, sandbox.ErrGone) {
			return notRun(r, st, c, entered, err), err
		}
		if entered { // the sandbox was lost: the next one knows whether this was begun
			c.Again, c.Up = true, true
		}
		select {
		case <-ctx.Done():
		case <-time.After(attemptPause << i):
		}
	}
	err = &sandbox.Unavailable{Reason: "The sandbox stopped responding and cannot be reached. Send a message to try again.", Cause: err}
	return notRun(r, st, c, false, err), err
}

func names(tools []tool.Tool) string {
	all := make([]string, len(tools))
	for i, t := range tools {
		all[i] = t.Spec().Name
	}
	return strings.Join(all, ", ")
}

// callID names the call for the runner: the id alone is the model's and may come twice.
func callID(open session.OpenCall) string { return fmt.Sprintf("%d-%s", open.Number, open.ID) }

// ModelsID is the model's own id of a call that the runner knows by another name.
func ModelsID(call string) string {
	if number, id, ok := strings.Cut(call, "-"); ok && strings.Trim(number, "0123456789") == "" {
		return id
	}
	return call
}

func outcome(r tool.Result) session.Outcome {
	switch {
	case r.Unknown:
		return session.Unknown
	case r.Failed:
		return session.FailedRun
	}
	return session.Succeeded
}

// inSandbox runs the call; if it needs the session's sandbox it gets it, under our claim.
// entered says that it got the sandbox, so that the call may have been begun there.
func (l *Loop) inSandbox(ctx context.Context, w *worker, p Profile, st session.State, t tool.Tool, c tool.Call) (r tool.Result, entered bool, err error) {
	if _, ok := t.(delegate.Tool); ok {
		r, err = l.delegate(ctx, w, p, st, c)
		return r, true, err
	}
	root, claim := l.root(ctx, st, w)
	number := c.Number
	if root != w.id {
		number = 0
	}
	var box *sandbox.Sandbox
	release := func() {}
	defer func() { release() }()
	r, err = t.Run(ctx, func(ctx context.Context) (*sandbox.Sandbox, error) {
		if box != nil {
			return box, nil
		}
		if err := w.started(ctx); err != nil {
			return nil, err
		}
		b, done, err := l.Workspaces.Use(ctx, root)
		if err != nil {
			return nil, l.noSandbox(ctx, w, err)
		}
		if err := l.stillOurs(ctx, w, c); err != nil {
			done()
			return nil, err
		}
		box, release = b.Under(claim()).MarkTurn(string(root), root == w.id, &w.marked, st.LastSaid, st.Turns == 0).For(number), done
		w.box = box
		return box, nil
	}, c)
	if err != nil && box != nil && errors.Is(context.Cause(ctx), errLeft) {
		l.interrupt(ctx, w, box, c.Shell)
	}
	return r, box != nil, err
}

// noSandbox records for users why there is no sandbox: retrying silently would not help them.
func (l *Loop) noSandbox(ctx context.Context, w *worker, err error) error {
	var unavailable *sandbox.Unavailable
	switch {
	case ctx.Err() != nil, errors.As(err, &unavailable), errors.Is(err, sandbox.ErrLost), errors.Is(err, sandbox.ErrGone),
		errors.Is(err, session.ErrNotFound), errors.Is(err, session.ErrDeleted), errors.Is(err, session.ErrNotOwner), errors.Is(err, session.ErrRefused):
		return err
	}
	l.Logger.Error("cannot start a sandbox", "session", w.id, "error", err)
	return &sandbox.Unavailable{Reason: "The sandbox could not be started; see the server log.", Cause: err}
}

// interruptGrace is how long a command may take to obey Ctrl-C.
const interruptGrace = 2 * time.Second

// interrupt ends the command of a call that was paused. If the session is not
// ours any more, what becomes of the command is not our business: a new owner
// may want it, and a stop ends the whole sandbox. Only that of a delegated
// session is not its own, and goes on.
func (l *Loop) interrupt(ctx context.Context, w *worker, box *sandbox.Sandbox, shell string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*interruptGrace)
	defer cancel()
	st, err := l.Sessions.Load(ctx, w.id)
	if ended := st.Created.Parent != "" && st.Status() == session.Halted; err != nil || st.Claim != w.claim && !ended {
		return
	}
	if err := box.Interrupt(ctx, shell, interruptGrace); err != nil && !errors.Is(err, sandbox.ErrLost) && !errors.Is(err, sandbox.ErrFenced) {
		l.Logger.Warn("cannot interrupt a command", "session", w.id, "error", err)
	}
}

// acknowledge lets the runner forget a result that is in the log now, with the next command or
// beside what comes next: nothing depends on it but disk space, so it is neither waited
// for nor insisted on.
func (l *Loop) acknowledge(ctx context.Context, w *worker, call string) {
	if w.box == nil || w.box.AckLater(call) {
		return
	}
	box := w.box
	w.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_ = box.Ack(ctx, call)
	})
}

// whileOpen is a context that ends when the call is not ours to make any more.
func (l *Loop) whileOpen(ctx context.Context, w *worker, call string) (context.Context, func()) {
	return l.while(ctx, w, func(st session.State) bool {
		for _, c := range st.Open {
			if c.ID == call {
				return true
			}
		}
		return false
	})
}

// while is a context that ends with errLeft when the session is taken from us
// or does not want this any more.
func (l *Loop) while(ctx context.Context, w *worker, wanted func(session.State) bool) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-ctx.Done():
				return
			case <-w.news:
				st, err := l.Sessions.Load(ctx, w.id)
				if err != nil && !errors.Is(err, session.ErrNotFound) && !errors.Is(err, session.ErrDeleted) {
					continue // it cannot be read right now; that says nothing about what is wanted
				}
				if err != nil || st.Claim != w.claim || !wanted(st) {
					cancel(errLeft)
					return
				}
			}
		}
	}()
	return ctx, func() { cancel(nil); <-stopped }
}

// live passes output on as it comes: whole characters only, and no secrets. What may be
// the beginning of one is shown when more is known, at the latest with the result. If the
// call is interrupted, it is part of what was written.
func (l *Loop) live(id session.ID, call string, mask func(io.Writer) *secret.Writer) func([]byte) {
	masked := mask(&characters{show: func(text string) { l.Deltas.Delta(id, call, text) }})
	return func(b []byte) {
		_, _ = masked.Write(b)
		if held := masked.Held(); held != "" {
			l.Deltas.Hold(id, call, held)
		}
	}
}

// characters holds back a character that is cut in two.
type characters struct {
	show func(string)
	rest []byte
}

func (c *characters) Write(b []byte) (int, error) {
	c.rest = append(c.rest, b...)
	n := len(c.rest)
	for i := 1; i <= min(utf8.UTFMax-1, n); i++ {
		if utf8.RuneStart(c.rest[n-i]) {
			if !utf8.FullRune(c.rest[n-i:]) {
				n -= i
			}
			break
		}
	}
	if n > 0 {
		c.show(strings.ToValidUTF8(string(c.rest[:n]), "\uFFFD"))
		c.rest = append(c.rest[:0], c.rest[n:]...)
	}
	return len(b), nil
}

// unavailable ends a session whose sandbox cannot be had. A call that was not run for
// that reason gets this result.
func (l *Loop) unavailable(ctx context.Context, w *worker, why *sandbox.Unavailable, r session.ToolReturned) (session.State, error) {
	st, err := l.update(ctx, w,
		func(s session.State) ([]session.Payload, error) {
			if r.Outcome == "" {
				return nil, nil
			}
			return s.Returned(w.claim, r)
		},
		func(s session.State) ([]session.Payload, error) { return s.Fail(w.claim, why.Code(), why.Reason) })
	if err != nil {
		return l.left(ctx, w, err)
	}
	return st, nil
}

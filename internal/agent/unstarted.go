package agent

import (
	"context"
	"errors"

	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	"deckhand/internal/tool"
)

// notRun is the result of a call that could not have a sandbox and was never handed to
// one: not by us, and not by an owner before us, since the log would say that its
// sandbox was up. Of any other call it returns the result as it is. The sandbox of a
// delegated session is recorded in another log, which may be unreadable now.
func notRun(r session.ToolReturned, st session.State, c tool.Call, entered bool, err error) session.ToolReturned {
	var why *sandbox.Unavailable
	before := c.Repeats() || c.Again && st.Created.Parent != ""
	if !entered && !before && errors.As(err, &why) {
		r.Outcome, r.Output = session.Cancelled, "Not run. "+why.Reason
	}
	return r
}

// started waits for the sandbox that is being started ahead of need.
func (w *worker) started(ctx context.Context) error {
	if w.warming != nil {
		select {
		case <-w.warming:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if why := w.unstarted.Load(); why != nil {
		return why
	}
	return nil
}

// underway reports whether a call is open that is being made. Whether it was run is known
// to its worker alone.
func underway(st session.State) bool {
	_, asked := st.Awaiting()
	return !asked && len(st.Open) > 0
}

// stillOurs checks, for the first call in a sandbox, that no other owner took the session while
// the sandbox started: the new owner may have recorded that this call was not run. An owner that
// records this later finds the sandbox recorded as up.
func (l *Loop) stillOurs(ctx context.Context, w *worker, c tool.Call) error {
	if c.Up {
		return nil
	}
	st, err := l.Sessions.Load(ctx, w.id)
	if err == nil && st.Claim != w.claim {
		err = errLeft
	}
	return err
}

// awaitWarm waits for the sandbox when there is nothing else to do, or for news.
func (l *Loop) awaitWarm(ctx context.Context, w *worker) (session.State, error) {
	select {
	case <-ctx.Done():
		return session.State{}, ctx.Err()
	case <-w.news:
	case <-w.warming:
		w.warming = nil
		return l.update(ctx, w, func(s session.State) ([]session.Payload, error) {
			if s.Claim != w.claim {
				return nil, nil
			}
			return s.Prepared(w.claim, session.WorkspaceReady{})
		})
	}
	return l.Sessions.Load(ctx, w.id)
}

// warms is true for a session whose sandbox is started ahead of need: it has
// something to do, or a repository to be cloned, and its sandbox was not started yet.
func (l *Loop) warms(s session.State, p Profile) bool {
	if l.Workspaces == nil || s.Created.Parent != "" || s.Up {
		return false
	}
	return s.Unprepared() || p.Warm && len(p.Tools) > 0 && (s.Pending() || s.InTurn)
}

// warm starts the sandbox beside the first model call. If it cannot be had the
// session ends with the reason, whatever the model is doing. During a tool call the
// worker ends it, with the result of that call.
func (l *Loop) warm(ctx context.Context, w *worker) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	w.warming = done
	go func() {
		defer close(done)
		_, release, err := l.Workspaces.Use(ctx, w.id)
		if err == nil {
			release()
			return
		}
		if ctx.Err() != nil {
			return
		}
		why := &sandbox.Unavailable{Reason: "The sandbox could not be started; see the server log."}
		if !errors.As(err, &why) {
			l.Logger.Error("cannot start a sandbox", "session", w.id, "error", err)
		}
		w.unstarted.Store(why)
		if _, err := l.Sessions.Update(ctx, w.id, func(s session.State) ([]session.Payload, error) {
			if s.ClaimedBy != l.Member {
				return nil, session.ErrNotOwner
			}
			if underway(s) {
				return nil, nil
			}
			return s.Fail(s.Claim, why.Code(), why.Reason)
		}); err != nil && ctx.Err() == nil {
			l.Logger.Debug("cannot record a failed start", "session", w.id, "why", err)
		}
	}()
	return func() { cancel(); <-done }
}

// prepare has the repository's scripts run that the person has answered about.
func (l *Loop) prepare(ctx context.Context, w *worker) (session.State, error) {
	during, stop := l.while(ctx, w, func(st session.State) bool { return !st.Paused })
	defer stop()
	_, release, err := l.Workspaces.Use(during, w.id)
	if err == nil {
		release()
		return l.update(ctx, w, func(s session.State) ([]session.Payload, error) {
			if s.Unprepared() {
				return nil, nil
			}
			return s.Prepared(w.claim, session.WorkspaceReady{})
		})
	}
	if ctx.Err() != nil {
		return session.State{}, err
	}
	if errors.Is(context.Cause(during), errLeft) {
		return l.left(ctx, w, errLeft)
	}
	err = l.noSandbox(ctx, w, err)
	if why, ok := errors.AsType[*sandbox.Unavailable](err); ok {
		return l.unavailable(ctx, w, why, session.ToolReturned{})
	}
	return session.State{}, err
}

package live

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// ServeList answers the request with the list of a user's sessions as server-sent
// events: a snapshot, then every change. It returns why it stopped; the client
// comes back by itself, and begins with a snapshot again. With ErrNotStarted the
// caller still owes an answer.
func ServeList(w http.ResponseWriter, r *http.Request, l *Lists, owner string, o Options) error {
	o = o.withDefaults()
	f := l.join(owner)
	frames, err := f.next(r.Context())
	if err != nil {
		l.leave(f)
		return fmt.Errorf("%w: %w", ErrNotStarted, whyEnded(r.Context(), err))
	}
	head := r.Method == http.MethodHead
	return serveStream(w, r, o, func() { l.leave(f) }, func(ctx context.Context, out sink) error {
		if head {
			return nil
		}
		return f.run(ctx, frames, o.Heartbeat, out)
	})
}

// run gives the sink what the reader took first, and everything after it.
func (r *lister) run(ctx context.Context, frames []Frame, heartbeat time.Duration, out sink) error {
	timer := time.NewTimer(heartbeat)
	defer timer.Stop()
	for {
		for _, f := range frames {
			if err := out.frame(f); err != nil {
				return err
			}
		}
		if len(frames) > 0 {
			if err := out.flush(); err != nil {
				return err
			}
			timer.Reset(heartbeat)
		}
		select {
		case <-r.changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			if err := errors.Join(out.frame(Frame{Event: EventPing}), out.flush()); err != nil {
				return err
			}
			timer.Reset(heartbeat)
			r.recheck(ctx)
		}
		var err error
		if frames, err = r.next(ctx); err != nil {
			return whyEnded(ctx, err)
		}
	}
}

// whyEnded prefers what ended the context to what came of that.
func whyEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

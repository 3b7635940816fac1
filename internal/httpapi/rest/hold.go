package rest

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"deckhand/api"
	"deckhand/internal/access"
)

// Lifetime ends long requests with their key and with the server.
type Lifetime struct {
	Gate *access.Gate
	// Closing ends when the server stops.
	Closing context.Context
}

// Hold gives a long request a context that ends with its key and with the server.
func (l *Lifetime) Hold(ctx context.Context, who access.Identity) (held context.Context, release func()) {
	ctx, letGo := l.Gate.Hold(ctx, who)
	ctx, cancel := context.WithCancelCause(ctx)
	unwatch := context.AfterFunc(l.Closing, func() { cancel(ErrClosing) })
	return ctx, func() {
		cancel(nil)
		unwatch()
		letGo()
	}
}

// Detacher is a response writer whose request can go on after its handler has
// returned.
type Detacher interface {
	// Detachable reports whether the handler can take the connection over, as it
	// must before it calls Detach.
	Detachable() bool
	// Detach has run called in a goroutine of its own as soon as the handler has
	// returned. The request is logged and counted when run returns.
	Detach(run func())
}

// HoldStream is Hold for a stream. If the stream may be detached from its handler,
// detach is not nil, and the context does not end with the request: when a client
// leaves is for the stream to notice. A detached stream is released by itself.
func (l *Lifetime) HoldStream(w http.ResponseWriter, r *http.Request, c *Call) (held context.Context, detach func(run func() error), release func()) {
	ctx := r.Context()
	d, ok := w.(Detacher)
	if ok = ok && d.Detachable() && r.ProtoMajor == 1 && r.ProtoMinor > 0 && r.Method == http.MethodGet; ok {
		ctx = context.WithoutCancel(ctx)
	}
	held, letGo := l.Hold(ctx, c.Who)
	if !ok {
		return held, nil, letGo
	}
	detached := false
	return held, func(run func() error) {
			detached = true
			d.Detach(func() {
				defer letGo()
				_ = run() // the stream began, so its end is between us and the reader
			})
		}, func() {
			if !detached {
				letGo()
			}
		}
}

// Streams are those that were detached. The zero value is ready.
type Streams struct {
	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

// Start runs a stream in a goroutine of its own. Once all are being waited for, a
// stream that comes late is run here: it ends at once.
func (s *Streams) Start(run func()) {
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.running.Go(run)
	}
	s.mu.Unlock()
	if closed {
		run()
	}
}

// Wait returns when all streams have ended. It may be called twice.
func (s *Streams) Wait() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.running.Wait()
}

// ErrClosing is why a held request ended when the server stops.
var ErrClosing = errors.New("the server is stopping")

// WhyEnded is what to answer when a request that is held failed: it may have
// ended with its key, or with the server.
func WhyEnded(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case err == nil:
		return nil
	case errors.Is(cause, access.ErrRevoked):
		return Unauthorized()
	case errors.Is(cause, ErrClosing):
		return Fail(http.StatusServiceUnavailable, api.CodeUnavailable, "The server is stopping. Try again.")
	}
	return err
}

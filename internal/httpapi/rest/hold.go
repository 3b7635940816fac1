package rest

import (
	"context"
	"errors"
	"net/http"

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
func (l *Lifetime) Hold(ctx context.Context, c *Call) (held context.Context, release func()) {
	ctx, letGo := l.Gate.Hold(ctx, c.Who)
	ctx, cancel := context.WithCancelCause(ctx)
	unwatch := context.AfterFunc(l.Closing, func() { cancel(ErrClosing) })
	return ctx, func() {
		cancel(nil)
		unwatch()
		letGo()
	}
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

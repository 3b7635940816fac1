package connect

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// attentive returns a client that aborts a call when nothing arrives for so long, not
// even keep-alive comments: the connection was lost. The total duration of a response is
// not limited. A limit of 0 is none.
func attentive(c *http.Client, limit time.Duration) *http.Client {
	if c == nil || limit <= 0 {
		return c
	}
	own := *c
	if own.Transport == nil {
		own.Transport = http.DefaultTransport
	}
	own.Transport = &listener{next: own.Transport, limit: limit}
	return &own
}

// listener is its transport.
type listener struct {
	next  http.RoundTripper
	limit time.Duration
}

// silenceError says that nothing came.
type silenceError struct{ limit time.Duration }

func (e *silenceError) Error() string { return fmt.Sprintf("the server sent no data for %v", e.limit) }

// RoundTrip implements http.RoundTripper.
func (l *listener) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	timer := time.AfterFunc(l.limit, func() { cancel(&silenceError{l.limit}) })
	res, err := l.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		timer.Stop()
		err = reason(ctx, err)
		cancel(nil)
		return nil, err
	}
	timer.Reset(l.limit)
	res.Body = &heard{ReadCloser: res.Body, ctx: ctx, cancel: cancel, timer: timer, limit: l.limit}
	return res, nil
}

// heard is a response body in progress.
type heard struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	limit  time.Duration
}

// Read implements io.Reader.
func (h *heard) Read(p []byte) (int, error) {
	n, err := h.ReadCloser.Read(p)
	if err != nil {
		h.timer.Stop()
		return n, reason(h.ctx, err)
	}
	h.timer.Reset(h.limit)
	return n, nil
}

// Close implements io.Closer.
func (h *heard) Close() error {
	h.timer.Stop()
	defer h.cancel(nil)
	return h.ReadCloser.Close()
}

// reason returns the cause of an error: the silence, if it was that.
func reason(ctx context.Context, err error) error {
	if silent, ok := context.Cause(ctx).(*silenceError); ok {
		return silent
	}
	return err
}

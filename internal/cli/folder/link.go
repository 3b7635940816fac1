package folder

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync"

	"deckhand/client"
)

// Link is a connection to the process that serves a home. If that process ends, the link starts a server
// in this process, so that a second terminal in the same folder continues when the first one is closed.
type Link struct {
	Client *client.Client

	home  Home
	start func(context.Context) (string, error)
	ctx   context.Context // of the terminal: a server outlives the request that starts it

	mu   sync.Mutex
	base *url.URL
}

// Connect finds the process that serves a home, or calls start, which serves it and returns the address.
func Connect(ctx context.Context, h Home, start func(context.Context) (string, error)) (*Link, error) {
	l := &Link{home: h, start: start, ctx: ctx}
	if err := l.connect(); err != nil {
		return nil, err
	}
	key, err := h.Key()
	if err != nil {
		return nil, err
	}
	l.ctx = context.WithoutCancel(ctx) // a signal does not end the session
	l.Client = client.New(l.base.String(), key)
	l.Client.HTTP.Transport = l
	return l, nil
}

// connect finds the address.
func (l *Link) connect() error {
	base, err := l.home.address()
	if err != nil {
		if base, err = l.start(l.ctx); err != nil {
			return err
		}
	}
	u, err := url.Parse(base)
	if err == nil {
		l.base = u
	}
	return err
}

// RoundTrip implements http.RoundTripper.
func (l *Link) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	base := l.base
	l.mu.Unlock()
	res, err := http.DefaultTransport.RoundTrip(at(r, base))
	var dial *net.OpError
	if !errors.As(err, &dial) || dial.Op != "dial" || r.Context().Err() != nil {
		return res, err
	}
	l.mu.Lock()
	if l.base == base { // no other request has found a new one yet
		if failed := l.connect(); failed != nil {
			l.mu.Unlock()
			return nil, errors.Join(err, failed)
		}
	}
	base = l.base
	l.mu.Unlock()
	if r.GetBody != nil {
		if r.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	return http.DefaultTransport.RoundTrip(at(r, base))
}

// at is the request at another address.
func at(r *http.Request, base *url.URL) *http.Request {
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.Host = base.Scheme, base.Host, ""
	return out
}

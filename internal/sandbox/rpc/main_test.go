package rpc

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair connects two peers over a socketpair, as a server and a runner are.
func pair(t testing.TB, dialled, accepted Handlers) (*Peer, *Peer) {
	t.Helper()
	p, q, _, _ := pairOn(t, dialled, accepted)
	return p, q
}

// pairOn gives the connection, too, so that it can be cut.
func pairOn(t testing.TB, dialled, accepted Handlers) (p, q *Peer, x, y net.Conn) {
	t.Helper()
	x, y = socketpair(t)
	p, err := Dial(x, dialled)
	if err != nil {
		t.Fatal(err)
	}
	q, err = Accept(y, accepted)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(); q.Close() })
	return p, q, x, y
}

func calls(name string, h Handler) Handlers { return Handlers{Calls: map[string]Handler{name: h}} }

func raws(name string, h RawHandler) Handlers { return Handlers{Raw: map[string]RawHandler{name: h}} }

// open makes a call that a test goes on with.
func open(t testing.TB, ctx context.Context, p *Peer, method string) *Stream {
	t.Helper()
	s, err := p.Open(ctx, method, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// settled waits until nothing is left of any call at either end. yamux gives up
// on a stream by itself after five minutes; that would be far too late.
func settled(t testing.TB, peers ...*Peer) {
	t.Helper()
	giveUp := time.After(2 * time.Minute)
	for _, p := range peers {
		for {
			p.mu.Lock()
			known := len(p.conns)
			p.mu.Unlock()
			streams := p.session.NumStreams()
			if known == 0 && streams == 0 {
				break
			}
			select {
			case <-time.After(time.Millisecond): // yamux does not announce it
			case <-giveUp:
				t.Fatalf("%d streams linger, and %d are known", streams, known)
			}
		}
	}
}

// want checks that an error is what it should be.
func want(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("got the error %v, wanted %v", err, target)
	}
}

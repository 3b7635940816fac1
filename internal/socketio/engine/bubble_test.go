package engine

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
)

// pipes is a network inside the process, for bubbles in which time is not real.
// It has no buffers: who does not read stops who writes.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "pipe"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// newBubbleRig is a rig for the inside of a synctest bubble.
func newBubbleRig(t *testing.T, o Options, serve func(context.Context, *Conn)) *rig {
	t.Helper()
	g := &rig{T: t, server: New(o, serve), url: "http://engine/"}
	network := newPipes()
	web := &http.Server{Handler: g.server}
	var served sync.WaitGroup
	served.Go(func() { _ = web.Serve(network) })
	g.raw = network.dial
	transport := &http.Transport{DialContext: network.dial}
	g.client = &http.Client{Transport: transport}
	t.Cleanup(func() {
		g.server.Close()
		_ = web.Close()
		transport.CloseIdleConnections()
		served.Wait()
	})
	return g
}

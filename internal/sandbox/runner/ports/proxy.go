package ports

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
)

const (
	// patience is how long a connection waits for a server, which may just be
	// restarting; maxWaiting is how many may wait.
	patience   = 30 * time.Second
	maxWaiting = 256
	retry      = 250 * time.Millisecond
	// farewell is how long a program may take to read why it gets no connection.
	farewell = 5 * time.Second
)

// ProxyConfig says where connections come from and where they go.
type ProxyConfig struct {
	// Listener is where programs find the proxy. Close closes it.
	Listener net.Listener
	// Current is the ID of the command that runs, "" if unknown.
	Current func() string
	// Peer is the server that was attached last, nil if there is none.
	Peer func() *rpc.Peer
	// Attached is closed when the next server is attached.
	Attached func() <-chan struct{}
}

// Proxy hands the connections that programs make to the server. It does not
// speak the proxy's protocol: the server does.
type Proxy struct {
	config   ProxyConfig
	patience time.Duration
	waiting  chan struct{} // a place for each connection that waits
	ctx      context.Context
	cancel   context.CancelFunc
	serving  sync.WaitGroup
}

// NewProxy starts serving. Close it.
func NewProxy(c ProxyConfig) *Proxy { return newProxy(c, patience, maxWaiting) }

func newProxy(c ProxyConfig, patience time.Duration, waiting int) *Proxy {
	p := &Proxy{config: c, patience: patience, waiting: make(chan struct{}, waiting)}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.serving.Go(p.serve)
	return p
}

// Close stops listening, cuts all connections and waits for their ends. Twice is once.
func (p *Proxy) Close() {
	_ = p.config.Listener.Close()
	p.cancel()
	p.serving.Wait()
}

func (p *Proxy) serve() {
	for {
		conn, err := p.config.Listener.Accept()
		switch {
		case err == nil:
			p.serving.Go(func() { p.carry(conn) })
		case errors.Is(err, net.ErrClosed):
			return
		default: // too many files are open, or the like: it passes
			select {
			case <-time.After(100 * time.Millisecond):
			case <-p.ctx.Done():
				return
			}
		}
	}
}

// carry serves one connection.
func (p *Proxy) carry(conn net.Conn) {
	defer conn.Close()
	out, err := p.open(p.config.Current())
	if err != nil {
		p.refuse(conn, err)
		return
	}
	join(p.ctx, conn, out)
}

var (
	errNobody = errors.New("the Deckhand server is not running")
	errCrowd  = errors.New("too many connections wait for the server that this sandbox belongs to")
)

// open asks the server for a connection, and waits for a server if need be.
func (p *Proxy) open(call string) (net.Conn, error) {
	conn, next, err := p.try(call)
	if next == nil {
		return conn, err
	}
	select {
	case p.waiting <- struct{}{}:
		defer func() { <-p.waiting }()
	default:
		return nil, errCrowd
	}
	patience := time.NewTimer(p.patience)
	defer patience.Stop()
	again := time.NewTicker(retry)
	defer again.Stop()
	for next != nil {
		select {
		case <-next:
			conn, next, err = p.try(call)
		case <-again.C: // an older server may be there, once the runner has noticed that the newest is gone
			conn, next, err = p.try(call)
		case <-patience.C:
			return nil, errNobody
		case <-p.ctx.Done():
			return nil, errNobody
		}
	}
	return conn, err
}

// try asks the server that is attached. If there is none, next is when to try again.
func (p *Proxy) try(call string) (conn net.Conn, next <-chan struct{}, err error) {
	next = p.config.Attached() // before we look, so that no server is missed
	peer := p.config.Peer()
	if peer == nil {
		return nil, next, nil
	}
	s, err := peer.Open(p.ctx, "outward", 0, sandbox.OutwardParams{Call: call})
	switch {
	case err == nil:
		return s.Raw(), nil, nil
	case errors.Is(err, rpc.ErrLost): // it went just now
		return nil, next, nil
	}
	return nil, nil, err
}

// refuse says why there is no connection, in words that HTTP clients show.
func (p *Proxy) refuse(conn net.Conn, err error) {
	text := fmt.Sprintf("The sandbox has no network access at the moment: %v. Try again later.\n", err)
	stop := context.AfterFunc(p.ctx, func() { _ = conn.Close() })
	defer stop()
	_ = conn.SetDeadline(time.Now().Add(farewell))
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(text), text)
	// Closing with its request unread would reset the connection, and the text would be lost.
	if closeWrite(conn) == nil {
		_, _ = io.Copy(io.Discard, conn)
	}
}

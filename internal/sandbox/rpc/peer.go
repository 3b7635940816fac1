package rpc

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"
)

// Handler does one call. Its context ends when the caller goes away. What it
// returns is the answer; it is sent as JSON.
type Handler func(ctx context.Context, c *Call) (any, error)

// RawHandler serves a call that becomes a plain connection. It closes it. Its
// context ends when the caller has let go of the connection; a caller that has
// only ended its side shows as io.EOF.
type RawHandler func(ctx context.Context, c *RawCall)

// Handlers are the calls a peer answers, by method.
type Handlers struct {
	Calls map[string]Handler
	Raw   map[string]RawHandler
}

// maxStreams is how many calls there may be at once, half of them from either
// end. Each takes up memory, and the other end may be hostile: when it makes
// more, the connection ends.
const maxStreams = 1024

// backlog is how many streams may wait to be accepted.
const backlog = 256

// Peer is one end of a connection. Both ends may call and be called.
type Peer struct {
	session  *yamux.Session
	guard    *guarded
	handlers Handlers
	calls    sync.WaitGroup
	ctx      context.Context
	cancel   context.CancelFunc

	mu    sync.Mutex
	conns map[uint32]*conn // those that are open, by the number both ends know
	woken bool

	// gate admits one goroutine at a time that opens a stream, and waiting counts those that
	// wait beyond it until yamux lets them: it has backlog places for streams that the other end
	// has not accepted, and no other goroutine may take one from the holder of the gate.
	gate    chan struct{}
	waiting atomic.Int64
}

// Dial makes the end that dialled; Accept the one that was dialled. They start
// serving at once and own conn.
func Dial(conn io.ReadWriteCloser, h Handlers) (*Peer, error) { return newPeer(conn, h, yamux.Client) }

// Accept is the other end of Dial.
func Accept(conn io.ReadWriteCloser, h Handlers) (*Peer, error) {
	return newPeer(conn, h, yamux.Server)
}

func newPeer(rwc io.ReadWriteCloser, h Handlers, start func(io.ReadWriteCloser, *yamux.Config) (*yamux.Session, error)) (*Peer, error) {
	config := yamux.DefaultConfig()
	config.AcceptBacklog = backlog
	config.EnableKeepAlive = false // an idle sandbox must not wake up; a dead end shows as end of file
	config.ConnectionWriteTimeout = 30 * time.Second
	config.StreamOpenTimeout = 0 // would be a goroutine for each call; see begin
	config.LogOutput = io.Discard
	p := &Peer{handlers: h, conns: map[uint32]*conn{}, gate: make(chan struct{}, 1)}
	p.guard = &guarded{ReadWriteCloser: rwc, wake: p.wake, silent: map[uint32]bool{}}
	session, err := start(p.guard, config)
	if err != nil {
		return nil, err
	}
	p.session = session
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.calls.Go(p.accept)
	return p, nil
}

// Done is closed when the connection has ended.
func (p *Peer) Done() <-chan struct{} { return p.session.CloseChan() }

// Close ends the connection and waits for the calls it serves, so a handler
// must not call it.
func (p *Peer) Close() error {
	err := p.session.Close()
	p.cancel()
	p.calls.Wait()
	return err
}

// accept takes the calls of the other end until the connection ends. If it cannot continue, it
// ends the connection, because calls would stay unanswered.
func (p *Peer) accept() {
	defer p.cancel()
	defer p.session.Close()
	for {
		stream, err := p.session.AcceptStream()
		if err != nil || p.session.NumStreams() > maxStreams {
			return
		}
		// It is known before the next one is accepted: that may say it is gone.
		ctx, cancel := context.WithCancel(p.ctx)
		c := p.know(stream, cancel)
		p.calls.Go(func() {
			defer cancel()
			p.answer(ctx, cancel, c)
		})
	}
}

// know makes a stream one that the other end can say it has let go of.
func (p *Peer) know(stream *yamux.Stream, left func()) *conn {
	c := &conn{stream: stream, peer: p, left: left}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[stream.StreamID()] = c
	if p.woken {
		_ = stream.SetDeadline(past)
	}
	return c
}

// wake ends all waiting on streams, once the connection ends.
func (p *Peer) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.woken = true
	for _, c := range p.conns {
		_ = c.stream.SetDeadline(past)
	}
}

// forget makes a connection unknown, once it is closed.
func (p *Peer) forget(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c.stream.StreamID())
}

// open starts a stream.
func (p *Peer) open(ctx context.Context) (*conn, error) {
	if p.session.NumStreams() >= maxStreams/2 {
		return nil, fmt.Errorf("%w: too many things are done in the sandbox at once", ErrBusy)
	}
	stream, err := p.begin(ctx)
	switch {
	case err == nil:
		return p.know(stream, nil), nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	p.session.Close() // if it has not ended, it cannot be used any more
	return nil, lost(err)
}

// begin opens a stream of yamux, which waits without end when the other end has
// accepted none of the last backlog. While there are fewer than that, it is not
// worth a goroutine.
func (p *Peer) begin(ctx context.Context) (*yamux.Stream, error) {
	select {
	case p.gate <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if p.room(backlog) {
		defer func() { <-p.gate }()
		return p.session.OpenStream()
	}
	p.waiting.Add(1)
	<-p.gate
	type result struct {
		stream *yamux.Stream
		err    error
	}
	opened := make(chan result)
	go func() {
		var r result
		r.stream, r.err = p.session.OpenStream()
		p.waiting.Add(-1)
		select {
		case opened <- r:
		case <-ctx.Done():
			if r.err == nil {
				_ = r.stream.Close()
			}
		}
	}()
	select {
	case r := <-opened:
		return r.stream, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// room reports whether a stream can be opened at once, because there are fewer than most. Called
// with the gate held, so that no other stream takes the place.
func (p *Peer) room(most int64) bool {
	return p.waiting.Load()+int64(p.session.NumStreams()) < most
}

// tell says to the other end that we have let go of a stream. It does not wait
// for an end that accepts nothing.
func (p *Peer) tell(id uint32) {
	select {
	case p.gate <- struct{}{}:
		if p.room(backlog / 2) {
			stream, err := p.session.OpenStream()
			<-p.gate
			say(id, stream, err)
			return
		}
		<-p.gate
	default:
	}
	go func() {
		stream, err := p.begin(p.ctx)
		say(id, stream, err)
	}()
}

func say(id uint32, stream *yamux.Stream, err error) {
	if err != nil {
		return // the connection ended: then it notices anyway
	}
	defer stream.Close()
	var body [goneSize]byte
	binary.BigEndian.PutUint32(body[:], id)
	_ = writeFrame(stream, gone, body[:])
}

// told is the other end of tell.
func (p *Peer) told(body []byte) {
	if len(body) != goneSize {
		return
	}
	p.mu.Lock()
	c := p.conns[binary.BigEndian.Uint32(body)]
	p.mu.Unlock()
	if c != nil {
		c.abandoned()
	}
}

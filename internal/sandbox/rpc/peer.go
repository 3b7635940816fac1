package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
)

// Handler does one call. Its context ends when the caller goes away. What it
// returns is the answer; it is sent as JSON.
type Handler func(ctx context.Context, c *Call) (any, error)

// RawHandler serves a call that becomes a plain connection. It closes it.
type RawHandler func(ctx context.Context, c *RawCall)

// Handlers are the calls a peer answers, by method.
type Handlers struct {
	Calls map[string]Handler
	Raw   map[string]RawHandler
}

// Peer is one end of a connection. Both ends may call and be called.
type Peer struct {
	session  *yamux.Session
	handlers Handlers
	calls    sync.WaitGroup
	ctx      context.Context
	cancel   context.CancelFunc
}

// Dial makes the end that dialled; Accept the one that was dialled. They start
// serving at once and own conn.
func Dial(conn io.ReadWriteCloser, h Handlers) (*Peer, error) { return newPeer(conn, h, yamux.Client) }

// Accept is the other end of Dial.
func Accept(conn io.ReadWriteCloser, h Handlers) (*Peer, error) {
	return newPeer(conn, h, yamux.Server)
}

func newPeer(conn io.ReadWriteCloser, h Handlers, make func(io.ReadWriteCloser, *yamux.Config) (*yamux.Session, error)) (*Peer, error) {
	config := yamux.DefaultConfig()
	config.EnableKeepAlive = false // an idle sandbox shall not wake up; a dead end shows as end of file
	config.ConnectionWriteTimeout = 30 * time.Second
	config.StreamOpenTimeout = 0
	config.LogOutput = io.Discard
	session, err := make(conn, config)
	if err != nil {
		return nil, err
	}
	p := &Peer{session: session, handlers: h}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.calls.Go(p.serve)
	return p, nil
}

// Done is closed when the connection has ended.
func (p *Peer) Done() <-chan struct{} { return p.session.CloseChan() }

// Close ends the connection and waits for the calls it serves.
func (p *Peer) Close() error {
	err := p.session.Close()
	p.cancel()
	p.calls.Wait()
	return err
}

func (p *Peer) serve() {
	defer p.cancel()
	for {
		stream, err := p.session.AcceptStream()
		if err != nil {
			return
		}
		p.calls.Go(func() { p.answer(stream) })
	}
}

// answer serves one call.
func (p *Peer) answer(stream *yamux.Stream) {
	defer stream.Close()
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	k, body, err := readFrame(stream)
	if err != nil || k != request {
		return
	}
	c := &Call{stream: stream, in: make(chan []byte), cancel: cancel, ctx: ctx}
	if err := json.Unmarshal(body, &c.header); err != nil {
		return
	}
	if raw, ok := p.handlers.Raw[c.Method]; ok {
		raw(ctx, &RawCall{header: c.header, Conn: stream})
		return
	}
	h, ok := p.handlers.Calls[c.Method]
	if !ok {
		c.fail(fmt.Errorf("%w: there is no operation %q", ErrInvalid, c.Method))
		return
	}
	go c.pump()
	result, err := run(ctx, h, c)
	if err != nil {
		c.fail(err)
		return
	}
	c.succeed(result)
}

// run keeps a panic in one operation from ending everything that runs in the sandbox.
func run(ctx context.Context, h Handler, c *Call) (result any, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s panicked: %v", c.Method, r)
		}
	}()
	return h(ctx, c)
}

// Call is a call as its handler sees it: also the data that comes with it and
// goes back before the answer.
type Call struct {
	header
	stream *yamux.Stream
	in     chan []byte
	rest   []byte
	ctx    context.Context
	cancel context.CancelFunc
	out    sync.Mutex
}

// Under is the claim the call was made under.
func (c *Call) Under() int64 { return c.Fence }

// Into decodes the parameters.
func (c *Call) Into(v any) error {
	if len(c.Params) == 0 {
		return nil
	}
	if err := json.Unmarshal(c.Params, v); err != nil {
		return fmt.Errorf("%w: %v", ErrInvalid, err)
	}
	return nil
}

// pump reads what the caller sends and notices when it goes away.
func (c *Call) pump() {
	defer close(c.in)
	for {
		k, body, err := readFrame(c.stream)
		switch {
		case err != nil:
			c.cancel()
			return
		case k == end:
			c.watch()
			return
		case k != data:
			c.cancel()
			return
		}
		select {
		case c.in <- body:
		case <-c.ctx.Done():
			return
		}
	}
}

// watch waits, after the last data, for the caller to go away.
func (c *Call) watch() {
	go func() {
		_, _, _ = readFrame(c.stream)
		c.cancel()
	}()
}

// Read takes the caller's data; io.EOF after the last of it.
func (c *Call) Read(b []byte) (int, error) {
	for len(c.rest) == 0 {
		body, ok := <-c.in
		if !ok {
			if err := c.ctx.Err(); err != nil {
				return 0, err
			}
			return 0, io.EOF
		}
		c.rest = body
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// Write sends data to the caller.
func (c *Call) Write(b []byte) (int, error) {
	c.out.Lock()
	defer c.out.Unlock()
	return writeData(c.stream, b)
}

func (c *Call) fail(err error) {
	body, _ := json.Marshal(toError(err))
	c.out.Lock()
	defer c.out.Unlock()
	_ = writeFrame(c.stream, failure, body)
}

func (c *Call) succeed(result any) {
	body, err := json.Marshal(result)
	if err == nil && len(body) > maxJSON {
		err = fmt.Errorf("%w: the answer has %d bytes", ErrTooBig, len(body))
	}
	if err != nil {
		c.fail(err)
		return
	}
	c.out.Lock()
	defer c.out.Unlock()
	_ = writeFrame(c.stream, answer, body)
}

func writeData(w io.Writer, b []byte) (int, error) {
	sent := 0
	for len(b) > 0 {
		part := b[:min(len(b), maxData)]
		if err := writeFrame(w, data, part); err != nil {
			return sent, err
		}
		sent += len(part)
		b = b[len(part):]
	}
	return sent, nil
}

// Call makes a call that is all request and answer. in and out may be nil.
func (p *Peer) Call(ctx context.Context, method string, fence int64, in, out any) error {
	s, err := p.Open(ctx, method, fence, in)
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Answer(out)
}

// Open makes a call with data. Close it in any case.
func (p *Peer) Open(ctx context.Context, method string, fence int64, in any) (*Stream, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h := header{Method: method, Fence: fence}
	if in != nil {
		params, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		h.Params = params
	}
	body, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	if len(body) > maxJSON {
		return nil, fmt.Errorf("%w: the request has %d bytes", ErrTooBig, len(body))
	}
	stream, err := p.session.OpenStream()
	if err != nil {
		return nil, lost(err)
	}
	s := &Stream{stream: stream, ctx: ctx}
	s.unwatch = context.AfterFunc(ctx, func() { stream.Close(); _ = stream.SetDeadline(time.Unix(1, 0)) })
	if err := writeFrame(stream, request, body); err != nil {
		s.Close()
		return nil, s.why(err)
	}
	return s, nil
}

// ErrLost says the connection to the runner ended.
var ErrLost = errors.New("the connection to the sandbox was lost")

func lost(err error) error { return fmt.Errorf("%w: %w", ErrLost, err) }

// Stream is a call as its caller sees it.
type Stream struct {
	stream  *yamux.Stream
	ctx     context.Context
	unwatch func() bool
	rest    []byte
	done    bool
	result  []byte
	failed  error
}

// Write sends data; CloseWrite says it was the last.
func (s *Stream) Write(b []byte) (int, error) {
	n, err := writeData(s.stream, b)
	return n, s.why(err)
}

// CloseWrite ends our data.
func (s *Stream) CloseWrite() error { return s.why(writeFrame(s.stream, end, nil)) }

// Read takes the other side's data; io.EOF when the answer has come.
func (s *Stream) Read(b []byte) (int, error) {
	for len(s.rest) == 0 {
		if s.done {
			return 0, io.EOF
		}
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (s *Stream) next() error {
	k, body, err := readFrame(s.stream)
	if err != nil {
		s.done, s.failed = true, s.why(noEOF(err))
		return s.failed
	}
	switch k {
	case data:
		s.rest = body
	case end:
	case answer:
		s.done, s.result = true, body
	case failure:
		e := &Error{}
		if err := json.Unmarshal(body, e); err != nil {
			e.Message = "unreadable error"
		}
		s.done, s.failed = true, e
	default:
		s.done, s.failed = true, fmt.Errorf("unexpected frame %q", byte(k))
	}
	return nil
}

// Answer waits for the answer, passing over data that nobody read.
func (s *Stream) Answer(out any) error {
	for !s.done {
		s.rest = nil
		if err := s.next(); err != nil {
			return err
		}
	}
	if s.failed != nil {
		return s.failed
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(s.result, out)
}

// Close lets go of the call; the other side is told if it is still at it.
func (s *Stream) Close() error {
	s.unwatch()
	return s.stream.Close()
}

// why prefers our own reason over what the connection says.
func (s *Stream) why(err error) error {
	if err == nil {
		return nil
	}
	if cause := s.ctx.Err(); cause != nil {
		return cause
	}
	return lost(err)
}

// Raw turns an open call into a plain connection, for methods that a RawHandler
// serves; after Answer, if the handler says yes or no first.
func (s *Stream) Raw() net.Conn { s.unwatch(); return s.stream }

// RawCall is a call that becomes a plain connection.
type RawCall struct {
	header
	net.Conn
}

// Into decodes the parameters.
func (c *RawCall) Into(v any) error { return json.Unmarshal(c.Params, v) }

// Accept says yes to a caller that waits for an answer.
func (c *RawCall) Accept() error { return writeFrame(c.Conn, answer, []byte("null")) }

// Refuse says no and why, and closes.
func (c *RawCall) Refuse(err error) {
	body, _ := json.Marshal(toError(err))
	_ = writeFrame(c.Conn, failure, body)
	c.Conn.Close()
}

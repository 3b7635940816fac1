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
)

// answer serves one stream of the other end.
func (p *Peer) answer(ctx context.Context, cancel context.CancelFunc, c *conn) {
	defer c.Close()
	k, body, err := readFrame(c)
	switch {
	case err == nil && k == gone:
		p.told(body)
		c.over.Store(true) // the caller has left
		return
	case err != nil || k != request:
		return
	}
	call := &Call{conn: c, ctx: ctx, cancel: cancel}
	if err := json.Unmarshal(body, &call.header); err != nil {
		call.fail(fmt.Errorf("%w: %v", ErrInvalid, err))
		call.linger()
		return
	}
	if raw, ok := p.handlers.Raw[call.Method]; ok {
		serveRaw(ctx, raw, &RawCall{header: call.header, Conn: c})
		return
	}
	p.do(call)
}

// do serves a call that has an answer.
func (p *Peer) do(call *Call) {
	woken := make(chan struct{})
	wake := func() {
		defer close(woken)
		_ = call.conn.SetDeadline(past) // the handler must not wait for a caller that has left
	}
	unwatch := context.AfterFunc(call.ctx, wake)
	if h, ok := p.handlers.Calls[call.Method]; !ok {
		call.fail(fmt.Errorf("%w: there is no operation %q", ErrInvalid, call.Method))
	} else if result, err := run(call.ctx, h, call); err != nil {
		call.fail(err)
	} else {
		call.succeed(result)
	}
	// Whatever the handler has left behind does not read any more from here on.
	if unwatch() {
		call.cancel()
		wake() // here, which spares a goroutine
	}
	<-woken
	call.in.Lock() // who was reading has left, and who comes now sees that the call is over
	_ = call.conn.SetReadDeadline(time.Time{})
	call.in.Unlock()
	call.linger()
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

// serveRaw keeps a panic in one connection to that connection.
func serveRaw(ctx context.Context, h RawHandler, c *RawCall) {
	defer func() { _ = recover() }()
	h(ctx, c)
}

// Call is a call as its handler sees it: also the data that comes with it and
// goes back before the answer. It ends when the handler returns.
type Call struct {
	header
	conn   *conn
	ctx    context.Context
	cancel context.CancelFunc

	in    sync.Mutex
	left  int  // of the data frame that is being read
	ended bool // the caller has said that there is no more

	out      sync.Mutex
	answered bool
}

// Under is the claim the call was made under.
func (c *Call) Under() int64 { return c.Fence }

// Read takes the caller's data; io.EOF after the last of it. A caller that goes
// away before that is an error.
func (c *Call) Read(b []byte) (int, error) {
	c.in.Lock()
	defer c.in.Unlock()
	for c.left == 0 {
		if c.ended {
			return 0, io.EOF
		}
		if err := c.ctx.Err(); err != nil {
			return 0, err
		}
		k, n, err := readHead(c.conn)
		switch {
		case err != nil:
			return 0, c.broken(err)
		case k == end:
			c.ended = true
		case k == data:
			c.left = n
		default:
			return 0, c.broken(fmt.Errorf("%w: unexpected %q", errFrame, byte(k)))
		}
	}
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.conn.Read(b[:min(len(b), c.left)])
	c.left -= n
	if err != nil {
		return n, c.broken(err)
	}
	return n, nil
}

// broken ends the work for a caller that went away in the middle. That is the
// reason then, rather than what the connection says; a malformed frame is its own.
func (c *Call) broken(err error) error {
	c.cancel()
	if errors.Is(err, errFrame) {
		return err
	}
	return c.ctx.Err()
}

// Write sends data to the caller.
func (c *Call) Write(b []byte) (int, error) {
	c.out.Lock()
	defer c.out.Unlock()
	if c.answered {
		return 0, net.ErrClosed
	}
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := writeData(c.conn, b)
	if err != nil {
		return n, c.broken(err)
	}
	return n, nil
}

func (c *Call) fail(err error) {
	body, _ := json.Marshal(toError(err))
	c.last(failure, body)
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
	c.last(answer, body)
}

// last sends the last frame.
func (c *Call) last(k kind, body []byte) {
	c.out.Lock()
	defer c.out.Unlock()
	c.answered = true
	_ = writeFrame(c.conn, k, body)
}

// linger waits for the caller to close, after the answer. Closing first would
// make yamux count the minutes that the caller may take to read, and a caller
// that sends more than we wanted would wait for room forever: it is told.
func (c *Call) linger() {
	var buf [512]byte
	for unread, told := 0, false; ; {
		n, err := c.conn.Read(buf[:])
		if err != nil {
			c.conn.over.Store(true)
			c.conn.answered.Store(errors.Is(err, io.EOF))
			return
		}
		unread += n
		if unread > headSize && !told { // the frame that ends the data may well come after the answer
			told = true
			c.conn.peer.tell(c.conn.stream.StreamID())
		}
	}
}

// RawCall is a call that becomes a plain connection. Its Conn has a CloseWrite
// method.
type RawCall struct {
	header
	net.Conn
}

// Accept says yes to a caller that waits for an answer.
func (c *RawCall) Accept() error { return writeFrame(c.Conn, answer, []byte("null")) }

// Refuse says no and why, and closes.
func (c *RawCall) Refuse(err error) {
	body, _ := json.Marshal(toError(err))
	_ = writeFrame(c.Conn, failure, body)
	_ = c.Conn.Close()
}

package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
)

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
	c, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	s := &Stream{conn: c, ctx: ctx}
	s.unwatch = context.AfterFunc(ctx, func() { _ = c.Close() })
	if err := writeFrame(c, request, body); err != nil {
		err = s.why(err)
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// Stream is a call as its caller sees it. One goroutine may read while another
// writes; any may close.
type Stream struct {
	conn    *conn
	ctx     context.Context
	unwatch func() bool

	left   int  // of the data frame that is being read
	done   bool // the answer has come, or never will
	result []byte
	refuse error // the other side's answer is an error
	broken error // there will be no answer
}

// Write sends data; CloseWrite says it was the last. ErrUnread says that the
// other side does not want it: Answer tells more.
func (s *Stream) Write(b []byte) (int, error) {
	n, err := writeData(s.conn, b)
	return n, s.why(err)
}

// CloseWrite ends our data.
func (s *Stream) CloseWrite() error { return s.why(writeFrame(s.conn, end, nil)) }

// BreakOff says that no more comes though it was not all, and waits until the other
// side has dealt with that: it has cleaned up when BreakOff returns.
func (s *Stream) BreakOff() {
	if s.conn.CloseWrite() == nil {
		_ = s.Answer(nil)
	}
}

// Read takes the other side's data; io.EOF when the answer has come.
func (s *Stream) Read(b []byte) (int, error) {
	for s.left == 0 {
		if s.broken != nil {
			return 0, s.broken
		}
		if s.done {
			return 0, io.EOF
		}
		s.next()
	}
	n, err := s.conn.Read(b[:min(len(b), s.left)])
	s.left -= n
	if err != nil {
		s.fail(err)
		return n, s.broken
	}
	return n, nil
}

// next reads up to the next data, or the answer.
func (s *Stream) next() {
	k, n, err := readHead(s.conn)
	if err != nil {
		s.fail(err)
		return
	}
	switch k {
	case data:
		s.left = n
		return
	case end:
		return
	case answer, failure:
	default:
		s.fail(fmt.Errorf("%w: unexpected %q", errFrame, byte(k)))
		return
	}
	body, err := readBody(s.conn, n)
	if err != nil {
		s.fail(err)
		return
	}
	s.done = true
	s.conn.over.Store(true) // the handler is done and waits for us to close
	if k == answer {
		s.result = body
		return
	}
	e := &Error{}
	if err := json.Unmarshal(body, e); err != nil || e.Message == "" {
		e.Message = "the other side failed and did not say why"
	}
	s.refuse = e
}

func (s *Stream) fail(err error) {
	s.left, s.done, s.broken = 0, true, s.why(noEOF(err))
}

// Answer waits for the response and skips unread data.
func (s *Stream) Answer(out any) error {
	for !s.done {
		if s.left == 0 {
			s.next()
			continue
		}
		n, err := io.CopyN(io.Discard, s.conn, int64(s.left))
		s.left -= int(n)
		if err != nil {
			s.fail(err)
		}
	}
	switch {
	case s.broken != nil:
		return s.broken
	case s.refuse != nil && s.ctx.Err() != nil:
		return s.ctx.Err() // it may have failed because we went
	case s.refuse != nil:
		return s.refuse
	case out == nil:
		return nil
	}
	return json.Unmarshal(s.result, out)
}

// Close lets go of the call; the other side is told if it is still at it.
func (s *Stream) Close() error {
	if s.unwatch() && s.done && s.broken == nil {
		s.conn.answered.Store(true)
	}
	return s.conn.Close()
}

// why prefers our own reason over what the connection says.
func (s *Stream) why(err error) error {
	if err == nil {
		return nil
	}
	if cause := s.ctx.Err(); cause != nil {
		return cause
	}
	if errors.Is(err, ErrUnread) {
		return err
	}
	return lost(err)
}

// Raw turns an open call into a plain connection, for methods that a RawHandler
// serves; after Answer, if the handler says yes or no first. The call's context
// has no power over it any more. It has a CloseWrite method.
func (s *Stream) Raw() net.Conn {
	stopped := s.unwatch()
	// The handler is not done, though it may have said yes; if the context ended just now, it
	// was not told.
	if s.conn.over.Swap(false) && !stopped {
		s.conn.peer.tell(s.conn.stream.StreamID())
	}
	return s.conn
}

package rpc

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"
)

// past is a deadline that wakes all waiters.
var past = time.Unix(1, 0)

// conn is one end of a stream, as a connection whose ends notice each other's
// going. yamux ends only a direction; see the package's comment.
type conn struct {
	stream *yamux.Stream
	peer   *Peer
	// left is called when the other end has let go. nil for nothing.
	left func()

	deaf   atomic.Bool // the other end has let go: it takes no more data
	over   atomic.Bool // nothing more comes from the other end, so it need not be told about the close
	closed atomic.Bool
	// answered says that the call on this stream is over for both ends, so that neither waits
	// for the other to close it.
	answered atomic.Bool

	mu sync.Mutex // deadlines: one that wakes a goroutine permanently must not be taken back
}

// Read reads; io.EOF when the other end has closed its side, which the end of
// the whole connection is not.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.stream.Read(b)
	switch {
	case err == nil:
	case c.closed.Load():
		err = net.ErrClosed
	case c.peer.session.IsClosed() && !c.over.Load():
		err = lost(io.ErrUnexpectedEOF)
	case errors.Is(err, io.EOF):
		c.over.Store(true)
	case errors.Is(err, yamux.ErrConnectionWriteTimeout): // it makes room by writing
		c.peer.session.Close()
	}
	return n, err
}

// Write writes.
func (c *conn) Write(b []byte) (int, error) {
	if c.deaf.Load() {
		return 0, ErrUnread
	}
	n, err := c.stream.Write(b)
	switch {
	case err == nil:
		return n, nil
	case c.closed.Load():
		err = net.ErrClosed
	case c.peer.session.IsClosed():
		err = lost(err)
	case errors.Is(err, yamux.ErrConnectionWriteTimeout):
		// Part of a message may be on its way: what both ends count differs from now on.
		c.peer.session.Close()
	case c.deaf.Load():
		err = ErrUnread
	}
	return n, err
}

// CloseWrite says that no more comes from this end, which goes on reading. When
// the other end does not close its side within five minutes, yamux does.
func (c *conn) CloseWrite() error { return c.stream.Close() }

// Close closes the connection, and tells the other end if that may still use it. It wakes
// blocked readers and writers.
func (c *conn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	c.peer.forget(c)
	c.mu.Lock()
	_ = c.stream.SetDeadline(past)
	c.mu.Unlock()
	if c.answered.Load() {
		c.peer.guard.endSilently(c.stream.StreamID())
	}
	err := c.stream.Close()
	if !c.over.Load() {
		c.peer.tell(c.stream.StreamID())
	}
	return err
}

// abandoned is called when the other end has let go.
func (c *conn) abandoned() {
	c.mu.Lock()
	c.deaf.Store(true)
	_ = c.stream.SetWriteDeadline(past)
	c.mu.Unlock()
	if c.left != nil {
		c.left()
	}
}

// LocalAddr is of the whole connection, as is RemoteAddr.
func (c *conn) LocalAddr() net.Addr { return c.stream.LocalAddr() }

// RemoteAddr is of the whole connection.
func (c *conn) RemoteAddr() net.Addr { return c.stream.RemoteAddr() }

// SetDeadline bounds reading and writing.
func (c *conn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

// SetReadDeadline bounds reading.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed.Load() {
		return net.ErrClosed
	}
	return c.stream.SetReadDeadline(t)
}

// SetWriteDeadline bounds writing.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed.Load():
		return net.ErrClosed
	case c.deaf.Load():
		return nil // writing is closed already
	}
	return c.stream.SetWriteDeadline(t)
}

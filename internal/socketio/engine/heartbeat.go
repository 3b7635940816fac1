package engine

import (
	"io"
	"time"
)

var (
	errSilent   = ended("the client gave no sign of life")
	errNotTaken = ended("the client did not take the rest")
)

// beat is called by the timer: it asks the client for a sign of life, or ends
// a connection that gives none.
func (c *Conn) beat() {
	o := c.server.o
	c.mu.Lock()
	switch quiet := c.quiet(); {
	case c.state == isOver:
		c.server.forget(c) // the last poll did not come
	case c.state == isDraining && c.ws == nil:
		defer c.end(errNotTaken, 0)
	case c.state == isDraining: // writing has its own deadline
	case !c.pinged:
		c.pinged, c.pingDue = true, true
		c.timer.Reset(o.PingTimeout)
		c.wake()
	case c.pingDue && c.ws != nil, c.stuck.Load() > 0:
		// The client is not the cause of the delay: there is something to write first, with its
		// own deadline, or its messages have not been received.
		c.timer.Reset(o.PingTimeout)
	case quiet < o.PingTimeout: // a long message arrives, and the answer after it
		c.timer.Reset(o.PingTimeout - quiet)
	default:
		defer c.end(errSilent, 0)
	}
	c.mu.Unlock()
}

// quiet is for how long the client has given no sign of life.
func (c *Conn) quiet() time.Duration { return time.Duration(time.Now().UnixNano() - c.heard.Load()) }

// missedPing reports whether a client polls too late to fetch its ping: by the clock, for
// the timer may be late too. The client has counted the same time and given up. The caller
// holds mu.
func (c *Conn) missedPing() bool {
	timeout := c.server.o.PingTimeout
	return c.state == isOpen && (c.pingDue || !c.pinged) && time.Since(c.pingAt) >= timeout && c.quiet() >= timeout && c.stuck.Load() == 0
}

// takePing reports whether to ping the client now. The caller holds mu.
func (c *Conn) takePing() bool {
	if !c.pingDue || c.state != isOpen {
		return false
	}
	c.pingDue = false
	c.timer.Reset(c.server.o.PingTimeout)
	return true
}

// pong is the client's answer to a ping.
func (c *Conn) pong() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pinged && !c.pingDue && c.state == isOpen {
		c.pinged, c.pingAt = false, time.Now().Add(c.server.o.PingInterval)
		c.timer.Reset(c.server.o.PingInterval)
	}
}

// hearing reads from a client: each byte is a sign of life.
type hearing struct {
	from io.Reader
	c    *Conn
}

func (h hearing) Read(p []byte) (int, error) {
	n, err := h.from.Read(p)
	if n > 0 {
		h.c.heard.Store(time.Now().UnixNano())
	}
	return n, err
}

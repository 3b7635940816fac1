package rpc

import (
	"net"
	"sync/atomic"
	"testing"
)

// counted counts how often it is written to.
type counted struct {
	net.Conn
	writes atomic.Int64
}

func (c *counted) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// A call is one write from either end: each write wakes up the other.
func TestWrites(t *testing.T) {
	t.Parallel()
	x, y := socketpair(t)
	ours, theirs := &counted{Conn: x}, &counted{Conn: y}
	p, err := Dial(ours, Handlers{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	q, err := Accept(theirs, calls("add", add))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	const n = 100
	for range n {
		if err := p.Call(t.Context(), "add", 0, sum{1, 2}, nil); err != nil {
			t.Fatal(err)
		}
	}
	// What is held back is also written after a while, on a slow machine during the calls.
	for end, c := range map[string]*counted{"the caller": ours, "the other end": theirs} {
		if got := c.writes.Load(); got < n || got > n+n/2 {
			t.Errorf("%s wrote %d times for %d calls", end, got, n)
		}
	}
}

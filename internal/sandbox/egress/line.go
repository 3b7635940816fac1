package egress

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"deckhand/internal/gitgate"
)

// line is a connection that came out of a sandbox.
type line struct {
	net.Conn
	box  *box
	call string
	over bool // one too many: it is only told so
	// inside is set for the requests in a tunnel, to what it was opened to.
	inside *destination

	// upstream is made at the first plain request. It belongs to this line alone:
	// what one client has said of itself on a connection never helps another.
	upstream *http.Transport
	// gate is for requests that get a token; taken says which of several
	// credentials a site took the last time.
	gate  *http.Transport
	taken map[gitgate.Site]int

	once     sync.Once
	hijacked bool          // by a tunnel, which then ends the line
	ended    chan struct{} // closed when no goroutine serves the line any more
}

// past is a deadline that is over.
var past = time.Unix(1, 0)

// Close ends the connection both ways, and wakes blocked readers and writers.
func (l *line) Close() (err error) {
	l.once.Do(func() {
		_ = l.Conn.SetDeadline(past)
		err = l.Conn.Close()
	})
	return err
}

// CloseWrite says that no more will be sent. A connection that cannot say so is closed.
func (l *line) CloseWrite() error {
	if c, ok := l.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return l.Conn.Close()
}

// lineKey is where a request's context holds its line.
type lineKey struct{}

func lineOf(ctx context.Context) *line { return ctx.Value(lineKey{}).(*line) }

// counted is a connection to a host. It counts for the exchange that uses it.
type counted struct {
	net.Conn
	by atomic.Pointer[exchange]
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if e := c.by.Load(); e != nil {
		e.received.Add(int64(n))
	}
	return n, err
}

// Write counts first: the answer may come, and the exchange be over, before
// Write returns.
func (c *counted) Write(b []byte) (int, error) {
	e := c.by.Load()
	if e == nil {
		return c.Conn.Write(b)
	}
	e.sent.Add(int64(len(b)))
	n, err := c.Conn.Write(b)
	e.sent.Add(int64(n - len(b)))
	return n, err
}

func (c *counted) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return c.Conn.Close()
}

// lines is the listener of a server whose connections are handed to it.
type lines struct {
	next   chan *line
	closed context.Context
}

func (l lines) Accept() (net.Conn, error) {
	select {
	case c := <-l.next:
		return c, nil
	case <-l.closed.Done():
		return nil, net.ErrClosed
	}
}

func (l lines) Close() error   { return nil }
func (l lines) Addr() net.Addr { return nowhere{} }

type nowhere struct{}

func (nowhere) Network() string { return "sandbox" }
func (nowhere) String() string  { return "sandbox" }

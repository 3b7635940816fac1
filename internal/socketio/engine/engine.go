// Package engine is a server for Engine.IO, protocol revision 4: messages in
// both directions over HTTP long-polling or a WebSocket, with a change from the
// first to the second on the way. It knows nothing of what the messages mean.
//
// What waits for a client is bounded by bytes: a Send that finds no room waits. Incoming
// messages are not buffered: they are read when the receiver takes them, so a client that is
// faster than the server is slowed down by its own transport.
//
// A quiet connection costs the goroutine that serves it and, on a WebSocket,
// the one that reads. Writing has a goroutine only while there is something to
// write, and the heartbeat is a timer.
//
// The caller that mounts the server checks keys and origins, with Options.Allow and
// Options.Continue or before the server: to the server, anyone who knows a connection's ID, a
// secret of 130 bits, is the client.
package engine

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// The transports, as the protocol and Conn.Transport spell them.
const (
	Polling   = "polling"
	WebSocket = "websocket"
)

// Options say how a server treats its clients. A zero field takes its default.
type Options struct {
	// PingInterval is how long a connection is quiet before the client is asked
	// for a sign of life, and PingTimeout how long it may take to give one. It
	// is also how long a client may take to read what we write, and a second
	// more for every 64 KiB. 25 s and 20 s.
	PingInterval, PingTimeout time.Duration
	// UpgradeTimeout is how long a change of transport may take. 10 s.
	UpgradeTimeout time.Duration
	// MaxPayload is the largest message or polling body that a client may send,
	// and the largest polling body that it gets unless one message is larger,
	// in bytes. 4 MiB.
	MaxPayload int64
	// Buffer is how many bytes may wait for one client before Send waits; one
	// larger Send may pass alone. 1 MiB.
	Buffer int
	// Transports are those that clients may use. Both.
	Transports []string
	// Allow may refuse a handshake: the client is told the error's words. No
	// one is refused.
	Allow func(r *http.Request) error
	// Continue may refuse a later request of a connection in the same way: a poll,
	// a post, or an upgrade. The connection stays as it is. The first request is
	// the handshake. No one is refused.
	Continue func(first, next *http.Request) error
	// Tag is the end of the IDs of connections, after a dot; "" for none. It says which of several servers has one.
	Tag string
	// Opened is called for each connection before the client knows that it is open. The function
	// that it returns is called once, when the connection ends, and must not call the
	// connection. Optional.
	Opened func(c *Conn) (ended func())
	// GuestPayload is MaxPayload for connections that Conn.Admit was not called
	// for. MaxPayload.
	GuestPayload int64
	Logger       *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.PingInterval <= 0 {
		o.PingInterval = 25 * time.Second
	}
	if o.PingTimeout <= 0 {
		o.PingTimeout = 20 * time.Second
	}
	if o.UpgradeTimeout <= 0 {
		o.UpgradeTimeout = 10 * time.Second
	}
	if o.MaxPayload <= 0 {
		o.MaxPayload = 4 << 20
	}
	if o.Buffer <= 0 {
		o.Buffer = 1 << 20
	}
	if len(o.Transports) == 0 {
		o.Transports = []string{Polling, WebSocket}
	}
	if o.Allow == nil {
		o.Allow = func(*http.Request) error { return nil }
	}
	if o.Continue == nil {
		o.Continue = func(_, _ *http.Request) error { return nil }
	}
	if o.Opened == nil {
		o.Opened = func(*Conn) func() { return func() {} }
	}
	if o.GuestPayload <= 0 || o.GuestPayload > o.MaxPayload {
		o.GuestPayload = o.MaxPayload
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// patience is how long a client may take to read or write so many bytes.
func (o Options) patience(bytes int64) time.Duration {
	return o.PingTimeout + time.Duration(bytes>>16)*time.Second
}

// Message is what travels: a text, which is UTF-8, or bytes.
type Message struct {
	Data   []byte
	Binary bool
}

// Server keeps connections. It is an http.Handler for any path.
type Server struct {
	o     Options
	serve func(ctx context.Context, c *Conn)
	work  sync.WaitGroup // every goroutine that is in here for a connection

	mu     sync.Mutex
	closed bool
	open   int
	conns  map[string]*Conn // with those that have ended but not said all
	owed   map[string]bool  // the ids of those that only have a last poll to answer
}

// A client may poll and close at a time, and the poll arrive last. Its connection is
// kept for that poll, but not for long, nor are many.
const (
	owedTime = 2 * time.Second
	mostOwed = 256
)

// New makes a server. It calls serve in a goroutine of its own for each
// connection: the context ends with the connection, and when serve returns, the
// connection ends after all that was sent.
func New(o Options, serve func(ctx context.Context, c *Conn)) *Server {
	return &Server{o: o.withDefaults(), serve: serve, conns: map[string]*Conn{}, owed: map[string]bool{}}
}

// Len is how many connections are open.
func (s *Server) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// Close ends all connections at once, takes no more, and waits for their
// goroutines. A client that does not answer the goodbye is waited for a second,
// one that does not read the answer to its poll as long as Options allow. It
// may be called twice.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	var all []*Conn
	for _, c := range s.conns {
		all = append(all, c)
	}
	s.mu.Unlock()
	for _, c := range all {
		// Each waits for its client's goodbye, so all do it at the same time.
		s.work.Go(func() { c.end(errServerClosed, websocket.StatusGoingAway) })
	}
	s.work.Wait()
}

var errServerClosed = ended("the server is going away")

// enter counts the calling goroutine among those that Close waits for, unless
// the server is closed.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.work.Add(1)
	return true
}

// start makes the connection known and serves it.
func (s *Server) start(c *Conn) error {
	if err := s.begin(c); err != nil {
		return err
	}
	ended := s.o.Opened(c)
	c.mu.Lock()
	open := c.state == isOpen
	if open {
		c.ended = ended
	}
	c.mu.Unlock()
	if !open {
		ended()
	}
	return nil
}

func (s *Server) begin(c *Conn) error {
	// Before the lock: a connection's is taken first where both are.
	c.mu.Lock()
	c.timer, c.pingAt = time.AfterFunc(s.o.PingInterval, c.beat), time.Now().Add(s.o.PingInterval)
	c.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		c.timer.Stop()
		return errServerClosed
	}
	s.conns[c.id] = c
	s.open++
	s.work.Go(func() {
		defer c.Close("it has been served")
		defer func() {
			// One client's bad luck is not the others'. The same holds for
			// requests, where net/http does this.
			if p := recover(); p != nil {
				s.o.Logger.Error("serving a connection panicked", "panic", p, "stack", string(debug.Stack()))
			}
		}()
		s.serve(c.ctx, c)
	})
	return nil
}

func (s *Server) find(id string) *Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns[id]
}

// left counts a connection out: it is not open any more.
func (s *Server) left() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
}

// forget drops a connection that has nothing more to say.
func (s *Server) forget(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c.id)
	delete(s.owed, c.id)
}

// keep lets a connection be found that only has a last poll to answer, and reports
// whether there is room for it.
func (s *Server) keep(c *Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.owed) >= mostOwed {
		return false
	}
	s.owed[c.id] = true
	return true
}

func (s *Server) allows(transport string) bool { return slices.Contains(s.o.Transports, transport) }

// ErrClosed says that the connection has ended. The error that wraps it says
// why.
var ErrClosed = errors.New("the connection has ended")

// closedError is ErrClosed with a reason.
type closedError struct{ reason string }

func (e *closedError) Error() string        { return ErrClosed.Error() + ": " + e.reason }
func (e *closedError) Is(target error) bool { return target == ErrClosed }

func ended(reason string) error {
	if reason == "" {
		return ErrClosed
	}
	return &closedError{reason}
}

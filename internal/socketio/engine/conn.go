package engine

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
)

// state is how far a connection has come.
type state int

const (
	isOpen     state = iota
	isDraining       // takes nothing any more; what was sent before still goes out
	isOver
)

// Conn is a connection to one client. Its methods may be called concurrently.
type Conn struct {
	server *Server
	id     string
	req    *http.Request
	ctx    context.Context // ends with the connection
	cancel context.CancelCauseFunc

	in    chan Message  // has no buffer: who reads from the client waits until a message is taken
	turn  chan struct{} // held by the one Send that may wait for room, so that the others keep their order
	stuck atomic.Int32  // messages that wait to be taken
	heard atomic.Int64  // when the client last gave a sign of life, in ns
	most  atomic.Int64  // bytes of a message or polling body that the client may send

	mu       sync.Mutex
	state    state
	out      outbox
	ws       *wire         // nil on polling
	flushing bool          // a goroutine writes to ws
	poll     chan struct{} // wakes the poll that waits; nil if none does
	posting  bool
	late     bool // the poll that waits came after the probe
	nudge    bool // the poll that waits is answered, whether there is something or not
	trial    trial
	pinged   bool // the client owes us a sign of life
	pingDue  bool // and has yet to be told so
	pingAt   time.Time
	last     byte // the kind of packet that answers a poll when all is over
	owed     bool // the next poll gets that, although all is over
	timer    *time.Timer
	ended    func() // tells who was told that the connection opened
}

func (s *Server) newConn(r *http.Request) *Conn {
	c := &Conn{
		server: s, id: rand.Text(),
		in: make(chan Message), turn: make(chan struct{}, 1),
		out: outbox{limit: s.o.Buffer}, last: kindClose,
	}
	if s.o.Tag != "" {
		c.id += "." + s.o.Tag
	}
	c.most.Store(s.o.GuestPayload)
	// The connection outlives the request, and so must not hold on to its body.
	base := context.WithoutCancel(r.Context())
	c.req = r.WithContext(base)
	c.req.Body = http.NoBody
	c.ctx, c.cancel = context.WithCancelCause(base)
	return c
}

// ID names the connection. Who knows it can speak as the client.
func (c *Conn) ID() string { return c.id }

// Request is the one that asked for the connection, without its body. Its
// context has that request's values, but not its end.
func (c *Conn) Request() *http.Request { return c.req }

// Transport is what the client uses now: Polling or WebSocket.
func (c *Conn) Transport() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ws != nil {
		return WebSocket
	}
	return Polling
}

// errSeparator says that a text would be taken for two packets.
var errSeparator = errors.New("a text message may not hold the character U+001E")

// Send gives messages to the client, in order and with none of another Send
// between them. It returns when they wait to be written, and waits itself while
// too much does. The data must not be changed afterwards. After the end it
// returns an error that is ErrClosed.
func (c *Conn) Send(ctx context.Context, m ...Message) error {
	total := 0
	for _, m := range m {
		if !m.Binary && bytes.IndexByte(m.Data, separator) >= 0 {
			return errSeparator
		}
		total += packetCost + len(m.Data)
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for {
		room, err := c.enqueue(m, total)
		if room == nil {
			return err
		}
		select {
		case <-room:
		case <-c.ctx.Done():
			return context.Cause(c.ctx)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// enqueue puts messages into the outbox. If they do not fit, it returns what to
// wait for.
func (c *Conn) enqueue(m []Message, total int) (<-chan struct{}, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != isOpen {
		return nil, context.Cause(c.ctx)
	}
	if !c.out.fits(total) {
		return c.out.wait(), nil
	}
	for _, m := range m {
		c.out.push(packet{kind: kindMessage, binary: m.Binary, data: m.Data})
	}
	c.wake()
	return nil, nil
}

// Receive waits for the client's next message. After the end it returns an
// error that is ErrClosed.
func (c *Conn) Receive(ctx context.Context) (Message, error) {
	select {
	case m := <-c.in:
		return m, nil
	case <-c.ctx.Done():
		return Message{}, context.Cause(c.ctx)
	case <-ctx.Done():
		return Message{}, context.Cause(ctx)
	}
}

// Close ends the connection. It returns at once; what was sent before still
// goes out, if the client takes it soon. The reason is for the errors on our
// side and is not told to the client.
func (c *Conn) Close(reason string) {
	c.mu.Lock()
	if c.state != isOpen {
		c.mu.Unlock()
		return
	}
	c.state = isDraining
	why := ended(reason)
	c.leave(why)
	c.timer.Reset(c.server.o.PingTimeout) // for a client that does not poll again
	c.wake()
	c.mu.Unlock()
}

// Discard forgets the messages that wait to be written. Messages that are sent
// afterwards still go out.
func (c *Conn) Discard() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.drop()
	c.out.written(0) // senders that wait for room may continue
}

// Admit lets the client send as much as MaxPayload allows.
func (c *Conn) Admit() {
	c.most.Store(c.server.o.MaxPayload)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ws != nil {
		c.ws.SetReadLimit(c.server.o.MaxPayload)
	}
}

// Drop ends the connection at once, whatever waits.
func (c *Conn) Drop(reason string) { c.end(ended(reason), 0) }

// end is the end, whatever waits. A code other than 0 is told to a client on a
// WebSocket, and its answer is waited for.
func (c *Conn) end(why error, code websocket.StatusCode) {
	c.mu.Lock()
	was := c.state
	if was == isOver {
		c.mu.Unlock()
		return
	}
	c.state = isOver
	if why == errClientClosed {
		c.last = kindNoop // it knows
		c.owed = c.ws == nil && c.poll == nil
	}
	// Before leave: who learns of the end must not find it any more.
	if c.owed && c.server.keep(c) {
		c.timer.Reset(owedTime)
	} else {
		c.server.forget(c)
		c.timer.Stop()
	}
	if was == isOpen {
		c.leave(why)
	}
	c.out.drop()
	c.wake()
	ws, trial := c.ws, c.trial.ws
	c.mu.Unlock()

	if trial != nil {
		_ = trial.CloseNow()
	}
	switch {
	case ws == nil:
	case code == 0:
		_ = ws.CloseNow()
	default:
		ws.goodbye(code)
	}
}

// leave counts the connection out and tells those who wait for its end. The
// caller holds mu.
func (c *Conn) leave(why error) {
	c.server.left()
	c.cancel(why)
	if c.ended != nil {
		c.ended()
	}
	c.server.o.Logger.Debug("connection ended", "why", why)
}

// wake tells the goroutine that writes to the client that there is something to do. The caller
// holds mu.
func (c *Conn) wake() {
	if c.poll != nil {
		select {
		case c.poll <- struct{}{}:
		default: // it has been told
		}
	}
	if c.ws != nil && !c.flushing && c.state != isOver {
		c.flushing = true
		c.server.work.Go(c.flush)
	}
}

var errClientClosed = ended("the client closed it")

// handle does what a packet of the client asks for. A message waits until it is
// received, or the context ends.
func (c *Conn) handle(ctx context.Context, p packet) error {
	c.heard.Store(time.Now().UnixNano())
	switch p.kind {
	case kindMessage:
		return c.deliver(ctx, Message{Data: p.data, Binary: p.binary})
	case kindPong:
		c.pong()
	case kindNoop:
	case kindClose:
		return errClientClosed
	default:
		return errUnexpected
	}
	return nil
}

func (c *Conn) deliver(ctx context.Context, m Message) error {
	c.stuck.Add(1)
	defer func() {
		c.heard.Store(time.Now().UnixNano()) // the client could not be heard while this blocked
		c.stuck.Add(-1)
	}()
	select {
	case c.in <- m:
		return nil
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

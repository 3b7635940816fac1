package socketio

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"deckhand/internal/socketio/engine"
	"deckhand/internal/socketio/wire"
)

// ErrClosed says that the socket has ended. The reason is in the same chain.
var ErrClosed = errors.New("the socket has ended")

// ErrLeft is why a socket has ended whose client left the namespace.
var ErrLeft = errors.New("the client left")

var (
	errEarly  = errors.New("the client is not authenticated yet")
	errTwice  = errors.New("the event was acknowledged before")
	errNaming = errors.New("no event may have a reserved name")
)

const (
	maxPID   = 128             // bytes of a client's recovery id, which is sent back
	farewell = 2 * time.Second // how long a client may take to be told that it is disconnected
)

// offsetEvent is the name of the packets that carry offsets.
const offsetEvent = "offset"

// Socket is a client in one namespace.
type Socket struct {
	conn          *connection
	id, namespace string
	auth          json.RawMessage

	lost   bool
	asks   bool   // the client wants to be recovered when its connection is cut
	pid    string // what the client remembers its state by, sent when it is let in
	before struct{ pid, offset string }

	ctx     context.Context
	end     context.CancelCauseFunc
	mail    *mailbox
	in      bool          // guarded by the connection's lock
	greeted chan struct{} // closed when the client was told that it is in
	done    chan struct{} // closed when the last handler has returned

	mu    sync.Mutex
	calls map[uint64]chan []json.RawMessage
	next  uint64
}

func newSocket(c *connection, p *wire.Packet) *Socket {
	s := &Socket{
		conn: c, id: rand.Text(), namespace: p.Namespace, auth: p.Data, pid: rand.Text(),
		mail: newMailbox(), greeted: make(chan struct{}), done: make(chan struct{}),
	}
	s.ctx, s.end = context.WithCancelCause(c.ctx)
	var lost struct {
		PID    string `json:"pid"`
		Offset string `json:"offset"`
	}
	var wish struct {
		Recover bool `json:"recover"`
	}
	_ = json.Unmarshal(p.Data, &wish) // a client that sends something else does not ask
	wanted := s.Request().URL.Query().Get("recover")
	s.asks = wish.Recover || wanted == "1" || wanted == "true"
	if json.Unmarshal(p.Data, &lost) == nil && lost.PID != "" && len(lost.PID) <= maxPID {
		s.asks = true
		s.lost, s.before.pid, s.before.offset = true, lost.PID, lost.Offset
	}
	return s
}

// ID names the socket as long as it lasts. The client knows it too.
func (s *Socket) ID() string { return s.id }

// Namespace is the one that the client asked for.
func (s *Socket) Namespace() string { return s.namespace }

// Request is the one that the connection began with: its query, headers, remote
// address and the values of its context.
func (s *Socket) Request() *http.Request { return s.conn.engine.Request() }

// Auth is the object that the client sent along when it asked for the namespace,
// nil if none.
func (s *Socket) Auth() json.RawMessage { return s.auth }

// Lost reports a client that says it was here before, and the last offset that
// it knows; that is empty if it was never told one. Both are the client's word
// and prove nothing.
func (s *Socket) Lost() (offset string, ok bool) { return s.before.offset, s.lost }

// Recover tells the client, when it is let in, that it continues where it was.
// It may only be called in the Handler, which has to see to it that nothing is
// missing or comes twice.
func (s *Socket) Recover() {
	if s.lost {
		s.pid = s.before.pid
	}
}

// Emit sends an event. A json.RawMessage is written as it is, a []byte travels
// as an attachment and may not be changed afterwards. Emit waits while too much
// waits for the client. Two calls after each other arrive in that order.
func (s *Socket) Emit(ctx context.Context, name string, args ...any) error {
	p, err := s.event(name, args)
	if err != nil {
		return err
	}
	return s.send(ctx, messages(p))
}

// Offset tells the client what it has seen by now. When it comes back after its
// connection was cut, Lost has the last offset that reached it. Clients that did not
// ask for this, with recover=1 in the query or recover: true in the auth payload, are
// told none, nor a recovery id: the protocol gives them no such field.
//
// The official client remembers the last argument of any event if that is a
// string. The offset is an event of its own, because clients in other languages
// call handlers with exactly the arguments that were sent.
func (s *Socket) Offset(ctx context.Context, offset string) error {
	if !s.asks {
		return nil
	}
	return s.Emit(ctx, offsetEvent, offset)
}

// EmitAt is Emit and Offset in one: both travel together, or neither does.
func (s *Socket) EmitAt(ctx context.Context, offset, name string, args ...any) error {
	p, err := s.event(name, args)
	if err != nil {
		return err
	}
	if !s.asks {
		return s.send(ctx, messages(p))
	}
	at, err := s.event(offsetEvent, []any{offset})
	if err != nil {
		return err
	}
	return s.send(ctx, append(messages(p), messages(at)...))
}

// Call sends an event and waits for the client's acknowledgement. Attachments of
// the answer are left out.
//
// An Event handler that calls waits for a packet behind those that it has not
// worked on, so its context should have a deadline.
func (s *Socket) Call(ctx context.Context, name string, args ...any) ([]json.RawMessage, error) {
	p, err := s.event(name, args)
	if err != nil {
		return nil, err
	}
	answer := make(chan []json.RawMessage, 1)
	s.mu.Lock()
	p.ID, p.HasID = s.next, true
	s.next++
	if s.calls == nil {
		s.calls = map[uint64]chan []json.RawMessage{}
	}
	s.calls[p.ID] = answer
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.calls, p.ID)
		s.mu.Unlock()
	}()
	if err := s.send(ctx, messages(p)); err != nil {
		return nil, err
	}
	select {
	case args := <-answer:
		return args, nil
	case <-s.ctx.Done():
		return nil, s.ended()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// answered hands an acknowledgement to the Call that waits for it, if one does.
func (s *Socket) answered(p *wire.Packet) {
	s.mu.Lock()
	answer := s.calls[p.ID]
	delete(s.calls, p.ID)
	s.mu.Unlock()
	if answer != nil {
		answer <- p.Args
	}
}

// acknowledge makes the function that answers an event.
func (s *Socket) acknowledge(id uint64) func(context.Context, ...any) error {
	var once sync.Once
	return func(ctx context.Context, args ...any) error {
		err := errTwice
		once.Do(func() {
			p := wire.Packet{Type: wire.Ack, Namespace: s.namespace, ID: id, HasID: true}
			if p.Args, p.Attachments, err = wire.Values(args); err == nil {
				err = s.send(ctx, messages(&p))
			}
		})
		return err
	}
}

// Disconnect ends the socket and tells the client, which does not reconnect by itself. Unread
// messages of the client are dropped. The other namespaces of its connection stay. A client that
// cannot be told in time loses its connection.
//
// In the Handler it refuses the client with the reason.
func (s *Socket) Disconnect(reason string) {
	if !s.conn.remove(s, errors.New(reason), true) {
		return
	}
	ctx, cancel := context.WithTimeout(s.conn.ctx, farewell)
	defer cancel()
	select {
	case <-s.greeted:
	case <-ctx.Done():
	}
	p := wire.Packet{Type: wire.Disconnect, Namespace: s.namespace}
	if err := s.conn.engine.Send(ctx, messages(&p)...); err != nil {
		s.conn.engine.Close(reason)
	}
}

// Discard forgets what was emitted on the connection, in any of its namespaces, and
// has not been written yet. A packet whose attachments are being written is torn.
func (s *Socket) Discard() { s.conn.engine.Discard() }

// Cut ends the whole connection without a word, so that the client comes back by
// itself, as it does when the network fails.
func (s *Socket) Cut(reason string) { s.conn.engine.Close(reason) }

// event makes the packet of an event.
func (s *Socket) event(name string, args []any) (*wire.Packet, error) {
	if wire.Reserved(name) {
		return nil, errNaming
	}
	p := &wire.Packet{Type: wire.Event, Namespace: s.namespace, Name: name}
	var err error
	p.Args, p.Attachments, err = wire.Values(args)
	return p, err
}

// send waits until the messages are on their way, the socket ends, or the
// context does.
func (s *Socket) send(ctx context.Context, m []engine.Message) error {
	select {
	case <-s.greeted:
	default:
		return errEarly
	}
	if s.ctx.Err() != nil {
		return s.ended()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })()
	err := s.conn.engine.Send(ctx, m...)
	if err != nil && s.ctx.Err() != nil {
		return s.ended()
	}
	return err
}

// ended is the error for operations on a closed socket.
func (s *Socket) ended() error { return fmt.Errorf("%w: %w", ErrClosed, context.Cause(s.ctx)) }

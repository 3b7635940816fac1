package socketio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"deckhand/internal/socketio/engine"
	"deckhand/internal/socketio/wire"
)

// errProtocol is why a connection ends whose client does what no client may.
var errProtocol = errors.New("the client broke the protocol")

// connection is one client's, with a socket in each namespace that it is in.
type connection struct {
	server *Server
	engine *engine.Conn
	ctx    context.Context // ends with the connection, and all its sockets with it
	end    context.CancelCauseFunc
	work   sync.WaitGroup // the sockets' goroutines

	mu      sync.Mutex
	sockets map[string]*Socket
	inside  int                        // sockets that a handler has let in
	lonely  *time.Timer                // runs while there are none
	gone    map[string]<-chan struct{} // by namespace: closes when the socket that was there has ended
	thrown  map[string]bool            // namespaces that we ended; the client may not know yet
}

func newConnection(ctx context.Context, s *Server, e *engine.Conn) *connection {
	c := &connection{
		server: s, engine: e,
		sockets: map[string]*Socket{}, gone: map[string]<-chan struct{}{}, thrown: map[string]bool{},
	}
	c.ctx, c.end = context.WithCancelCause(ctx)
	c.lonely = time.AfterFunc(s.connectTimeout, func() { e.Close("no namespace was asked for") })
	return c
}

// serve reads what the client sends until the connection ends, and returns when
// all its handlers have.
func (c *connection) serve() {
	err := c.read()
	if errors.Is(err, errProtocol) {
		c.server.log.Debug("a connection was closed", "connection", c.engine.ID(), "why", err)
		c.engine.Close("parse error")
	}
	c.end(err)
	c.mu.Lock()
	for _, s := range c.sockets {
		s.mail.close(false)
	}
	clear(c.sockets)
	c.mu.Unlock()
	c.work.Wait()
	c.lonely.Stop()
}

// read works on packets in their order.
func (c *connection) read() error {
	r := wire.NewReader(c.server.limits)
	for {
		m, err := c.engine.Receive(c.ctx)
		if err != nil {
			return err
		}
		p, err := r.Add(m.Data, m.Binary)
		if err != nil {
			return fmt.Errorf("%w: %w", errProtocol, err)
		}
		if p == nil {
			continue // more is to come
		}
		if err := c.take(p); err != nil {
			return err
		}
	}
}

// take does what one packet asks for, or hands it over.
func (c *connection) take(p *wire.Packet) error {
	if p.Type == wire.Connect {
		return c.ask(p)
	}
	c.mu.Lock()
	s, thrown := c.sockets[p.Namespace], c.thrown[p.Namespace]
	in := s != nil && s.in
	c.mu.Unlock()
	switch {
	case !in && thrown:
		return nil // it was sent before the client knew
	case !in:
		return fmt.Errorf("%w: a packet for a namespace that it is not in", errProtocol)
	}
	switch p.Type {
	case wire.Event:
		s.mail.put(p)
	case wire.Ack:
		s.answered(p)
	case wire.Disconnect:
		c.remove(s, ErrLeft, false)
	default:
		return fmt.Errorf("%w: a packet that only a server may send", errProtocol)
	}
	return nil
}

// ask begins a socket in a namespace.
func (c *connection) ask(p *wire.Packet) error {
	h, known := c.server.namespaces[p.Namespace]
	if !known {
		// A client that asks for many waits here until it has read its answers.
		return c.reply(p.Namespace, wire.ConnectError, refused{Message: "Invalid namespace"})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sockets[p.Namespace] != nil {
		return fmt.Errorf("%w: duplicate connect to a namespace", errProtocol)
	}
	s := newSocket(c, p)
	before := c.gone[p.Namespace]
	c.sockets[p.Namespace] = s
	delete(c.gone, p.Namespace)
	delete(c.thrown, p.Namespace)
	c.work.Go(func() { s.live(h, before) })
	return nil
}

// enter marks a socket as being in, unless it has ended already.
func (c *connection) enter(s *Socket) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sockets[s.namespace] != s {
		return false
	}
	s.in = true
	if c.inside++; c.inside == 1 {
		c.lonely.Stop()
	}
	return true
}

// remove ends a socket, and reports whether it was in. What the client sent
// before is still worked on, unless it is thrown out.
func (c *connection) remove(s *Socket, cause error, thrown bool) (wasIn bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sockets[s.namespace] != s {
		return false
	}
	delete(c.sockets, s.namespace)
	c.gone[s.namespace] = s.done
	if s.in {
		c.thrown[s.namespace] = thrown
		if c.inside--; c.inside == 0 {
			c.lonely.Reset(c.server.connectTimeout)
		}
	}
	s.end(cause)
	s.mail.close(thrown)
	return s.in
}

// reply sends the answer to a client that asked for a namespace.
func (c *connection) reply(namespace string, t wire.Type, content any) error {
	data, err := json.Marshal(content)
	if err != nil {
		return err
	}
	p := wire.Packet{Type: t, Namespace: namespace, Data: data}
	return c.engine.Send(c.ctx, messages(&p)...)
}

// messages are what a packet travels as.
func messages(p *wire.Packet) []engine.Message {
	out := make([]engine.Message, 0, 1+len(p.Attachments))
	out = append(out, engine.Message{Data: p.Text()})
	for _, a := range p.Attachments {
		out = append(out, engine.Message{Data: a, Binary: true})
	}
	return out
}

package socketio

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"deckhand/internal/socketio/wire"
)

// grace is how long the work on what a client sent may go on when the client is
// gone.
const grace = 5 * time.Second

var errPanic = errors.New("a handler panicked")

// refused is what a client reads that may not enter.
type refused struct {
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// admitted is what a client reads that may.
type admitted struct {
	SID string `json:"sid"`
	PID string `json:"pid,omitempty"`
}

// live is the life of a socket, from the moment the client asks for it. A client
// that leaves and comes back is not met before what it did has ended.
func (s *Socket) live(h Handler, before <-chan struct{}) {
	defer close(s.done)
	defer s.end(nil)
	defer s.mail.close(true) // or the reader might wait for room
	if before != nil {
		<-before
	}
	serve, err := s.meet(h)
	if err == nil && !s.conn.enter(s) {
		err = &Refusal{Message: context.Cause(s.ctx).Error()} // disconnected in the Handler
	}
	if err != nil {
		s.refuse(err)
		return
	}
	answer := admitted{SID: s.id}
	if s.asks {
		answer.PID = s.pid
	}
	err = s.conn.reply(s.namespace, wire.Connect, answer)
	close(s.greeted)
	if err != nil {
		return // the connection is over
	}
	var run sync.WaitGroup
	if serve.Run != nil {
		run.Go(func() {
			defer s.calm()
			serve.Run(s.ctx)
		})
	}
	s.work(serve.Event)
	run.Wait()
}

// meet asks the Handler.
func (s *Socket) meet(h Handler) (serve Serve, err error) {
	defer func() {
		if v := recover(); v != nil {
			s.logPanic(v)
			err = errPanic
		}
	}()
	return h(s.ctx, s)
}

// refuse tells a client that it may not enter. It may ask again.
func (s *Socket) refuse(why error) {
	answer := refused{Message: "internal error"}
	var r *Refusal
	switch {
	case errors.As(why, &r):
		answer = refused{r.Message, r.Data}
	case s.ctx.Err() == nil && !errors.Is(why, errPanic):
		s.conn.server.log.Error("a client could not be let in", "namespace", s.namespace, "socket", s.id, "error", why)
	}
	s.conn.remove(s, why, false)
	if err := s.conn.reply(s.namespace, wire.ConnectError, answer); err != nil && s.conn.ctx.Err() == nil {
		s.conn.server.log.Error("a refusal could not be sent", "namespace", s.namespace, "socket", s.id, "error", err)
		s.conn.engine.Close("internal error")
	}
}

// work calls the Event handler, one packet after the other. Its context outlives
// the socket for a while: a client may send something and leave at once.
func (s *Socket) work(handle func(context.Context, Event)) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(s.ctx))
	defer cancel(nil)
	defer context.AfterFunc(s.ctx, func() {
		t := time.NewTimer(grace)
		defer t.Stop()
		select {
		case <-t.C:
			cancel(s.ended())
		case <-ctx.Done():
		}
	})()
	for {
		p, ok := s.mail.take(ctx.Done())
		if !ok {
			return
		}
		if handle != nil {
			s.handle(ctx, handle, p)
		}
	}
}

// handle works on one event.
func (s *Socket) handle(ctx context.Context, handle func(context.Context, Event), p *wire.Packet) {
	defer s.calm()
	e := Event{Name: p.Name, Args: p.Args, Attachments: p.Attachments}
	if p.HasID {
		e.Ack = s.acknowledge(p.ID)
	}
	handle(ctx, e)
}

// calm ends the socket whose handler panicked, and nothing else.
func (s *Socket) calm() {
	if v := recover(); v != nil {
		s.logPanic(v)
		s.Disconnect("internal error")
	}
}

func (s *Socket) logPanic(v any) {
	s.conn.server.log.Error("a socket's handler panicked",
		"namespace", s.namespace, "socket", s.id, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
}

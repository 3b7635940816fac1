package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"
)

// queueSize is how many messages may wait for a server that does not read.
const queueSize = 64

// session is one run of a server.
type session struct {
	name  string
	proc  *process
	queue chan []byte
	grace time.Duration
	// changed is called when the server says that its tools are others now.
	changed func(*session)
	// over is closed when the session has ended; then why says how.
	over chan struct{}
	why  string
	work sync.WaitGroup

	mu      sync.Mutex
	last    int64
	pending map[string]chan message
	noise   int
	sample  string // the first line that was none of the protocol
}

// talk begins to speak with a process. The session ends with it.
func talk(name string, p *process, changed func(*session), grace time.Duration) *session {
	s := &session{name: name, proc: p, queue: make(chan []byte, queueSize), changed: changed, grace: grace,
		over: make(chan struct{}), pending: map[string]chan message{}}
	silent := make(chan struct{})
	s.work.Go(s.write)
	s.work.Go(func() { defer close(silent); s.read() })
	s.work.Go(func() {
		select {
		case <-p.ended:
		case <-silent: // it closed its output: nothing comes of it any more
			p.stop(s.grace)
		}
		<-silent
		s.finish()
	})
	return s
}

// end stops the process and waits for everything of the session.
func (s *session) end() {
	s.proc.stop(s.grace)
	s.work.Wait()
}

// alive is false once it has ended.
func (s *session) alive() bool {
	select {
	case <-s.over:
		return false
	default:
		return true
	}
}

// finish makes the end known.
func (s *session) finish() {
	s.why = fmt.Sprintf("the MCP server %q %s", s.name, s.proc.status())
	if words := s.proc.stderr.lastWords(); words != "" {
		s.why += "; its last output was:\n" + words
	}
	close(s.over)
}

// write sends what is queued.
func (s *session) write() {
	for {
		select {
		case line := <-s.queue:
			if _, err := s.proc.stdin.Write(line); err != nil {
				s.proc.stop(s.grace) // it does not listen any more
				return
			}
		case <-s.proc.ended:
			return
		}
	}
}

// read takes what comes until the output ends.
func (s *session) read() {
	defer s.proc.stdout.Close()
	in := bufio.NewReaderSize(s.proc.stdout, 16<<10)
	for {
		line, err := readLine(in, maxLine)
		switch {
		case errors.Is(err, errLong):
			// It is unknown which call it answers, and that call would wait forever.
			s.giveUp(fmt.Sprintf("the MCP server %q sent a message of more than %d MiB", s.name, maxLine>>20))
			continue
		case err != nil:
			return
		case len(line) == 0:
			continue
		}
		all, ok := parse(line)
		if !ok {
			s.heard(line)
			continue
		}
		for _, m := range all {
			s.take(m)
		}
	}
}

// heard counts a line that is none of the protocol's: many servers print a greeting.
func (s *session) heard(line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.noise++; s.noise == 1 {
		s.sample = string(line[:min(len(line), 200)])
	}
}

// remark tells people about such lines.
func (s *session) remark() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.noise == 0 {
		return ""
	}
	return fmt.Sprintf("[passed over on stdout: %d lines that are not of the protocol, the first is %q]\n", s.noise, s.sample)
}

// take deals with one message.
func (s *session) take(m message) {
	switch {
	case m.Method == "": // an answer; one without a waiting call came too late
		s.mu.Lock()
		waiter := s.pending[string(m.ID)]
		delete(s.pending, string(m.ID))
		s.mu.Unlock()
		if waiter != nil {
			waiter <- m
		}
	case m.ID == nil:
		if m.Method == "notifications/tools/list_changed" {
			s.changed(s)
		}
	case m.Method == "ping":
		s.offer(message{ID: m.ID, Result: json.RawMessage("{}")})
	default:
		s.offer(message{ID: m.ID, Error: &problem{Code: noSuchMethod, Message: "this client has no method " + strconv.Quote(m.Method)}})
	}
}

// giveUp fails everything that waits.
func (s *session) giveUp(why string) {
	s.mu.Lock()
	waiters := s.pending
	s.pending = map[string]chan message{}
	s.mu.Unlock()
	for _, w := range waiters {
		w <- message{Error: &problem{Message: why, Code: tooLong}}
	}
}

// tooLong marks our own problem among those of the server.
const tooLong = -1

func encode(m message) ([]byte, error) {
	m.Version = "2.0"
	b, err := json.Marshal(m)
	return append(b, '\n'), err
}

// offer sends a message if there is room for it. A server that asks and does not
// listen must not hold us up.
func (s *session) offer(m message) {
	if b, err := encode(m); err == nil {
		select {
		case s.queue <- b:
		default:
		}
	}
}

// notify sends a notification.
func (s *session) notify(method string, params any) {
	b, err := json.Marshal(params)
	if err == nil {
		s.offer(message{Method: method, Params: b})
	}
}

// busy is true while something waits for an answer.
func (s *session) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending) > 0
}

// errEnded says that the session ended before there was an answer.
var errEnded = errors.New("the MCP server has ended")

// call sends a request and waits for its answer. An error of the server is a
// *problem.
func (s *session) call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	body, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	answer := make(chan message, 1)
	s.mu.Lock()
	s.last++
	id := strconv.FormatInt(s.last, 10)
	s.pending[id] = answer
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.pending, id)
	}()
	line, err := encode(message{ID: json.RawMessage(id), Method: method, Params: body})
	if err != nil {
		return nil, err
	}
	select {
	case s.queue <- line:
	case <-s.over:
		return nil, fmt.Errorf("%w: %s", errEnded, s.why)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case m := <-answer:
		return result(m)
	case <-s.over:
		select { // its last words may have been our answer
		case m := <-answer:
			return result(m)
		default:
			return nil, fmt.Errorf("%w: %s", errEnded, s.why)
		}
	case <-ctx.Done():
		s.notify("notifications/cancelled", map[string]any{"requestId": json.RawMessage(id), "reason": "it took too long"})
		return nil, ctx.Err()
	}
}

func result(m message) (json.RawMessage, error) {
	if m.Error != nil {
		return nil, m.Error
	}
	if len(m.Result) == 0 {
		return nil, &problem{Message: "the answer has no result"}
	}
	return m.Result, nil
}

package mcp

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// DefaultIdle is how long unused connections are kept.
const DefaultIdle = 5 * time.Minute

// How long servers are waited for before the model is asked without them.
const (
	remoteWait = 10 * time.Second
	stdioWait  = 60 * time.Second // it may have to be downloaded
	quietWait  = 5 * time.Second  // after which the wait is reported
)

// Pool keeps the tool servers of all sessions, so that connections last from one
// turn to the next.
type Pool struct {
	idle                  time.Duration
	remoteWait, stdioWait time.Duration
	quietWait             time.Duration
	now                   func() time.Time

	mu     sync.Mutex
	sets   map[string]*Set
	closed bool
}

// NewPool makes a pool that closes connections after they were idle for so long; 0
// is DefaultIdle. Close it.
func NewPool(idle time.Duration) *Pool {
	if idle <= 0 {
		idle = DefaultIdle
	}
	return &Pool{idle: idle, remoteWait: remoteWait, stdioWait: stdioWait, quietWait: quietWait, now: time.Now, sets: map[string]*Set{}}
}

// Set is the set of a session with this configuration: always the same one. What
// changed since the last time is started and stopped, what did not goes on.
func (p *Pool) Set(session string, c Config) *Set {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.sets[session]
	if s == nil {
		s = newSet(p, session)
		if p.closed { // it is stillborn: it offers nothing
			s.close()
			return s
		}
		p.sets[session] = s
	}
	s.update(c)
	return s
}

// States says where the servers of a session stand, nil if it has none.
func (p *Pool) States(session string) []Status {
	p.mu.Lock()
	s := p.sets[session]
	p.mu.Unlock()
	if s == nil {
		return nil
	}
	return s.States()
}

// Forget ends the connections of a session, and waits until they have ended.
func (p *Pool) Forget(session string) {
	p.mu.Lock()
	s := p.sets[session]
	delete(p.sets, session)
	p.mu.Unlock()
	if s != nil {
		s.close()
	}
}

// Close ends all connections and waits until they have ended.
func (p *Pool) Close() {
	p.mu.Lock()
	all := p.sets
	p.sets, p.closed = map[string]*Set{}, true
	p.mu.Unlock()
	var ending sync.WaitGroup
	for _, s := range all {
		ending.Go(s.close)
	}
	ending.Wait()
}

// Probe tries all servers once and says how it went. Those in a sandbox are only
// tried if the configuration has one.
func Probe(ctx context.Context, c Config) []Status {
	p := NewPool(0)
	defer p.Close()
	s := p.Set("", c)
	s.Tools(ctx)
	out := s.States()
	for i, st := range out {
		if st.State == Ready || st.State == Failed {
			continue
		}
		wait := p.remoteWait
		if st.Kind == Stdio {
			wait = p.stdioWait
		}
		out[i].State, out[i].Error = Failed, fmt.Sprintf("It did not answer within %v.", wait)
	}
	return out
}

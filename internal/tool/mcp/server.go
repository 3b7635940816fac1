package mcp

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"deckhand/internal/tool"
)

// link is the connection to a server.
type link interface {
	// tools connects if need be and asks for the tools. The note is about what was left out.
	tools(ctx context.Context) (offers []offer, note string, err error)
	// alive is false when there is a connection to be made first.
	alive() bool
	// fresh is true if asking again would give the same.
	fresh() bool
	// call calls a tool. An error is not about the tool: ctx ended or the sandbox was lost.
	call(ctx context.Context, box tool.Box, name string, call tool.Call) (answer, error)
	// rest lets the connection go until it is needed again, close for good.
	rest()
	close()
}

// answer is what became of a call.
type answer struct {
	// raw is the result as the server sent it.
	raw []byte
	// failed is a sentence about why there is none.
	failed string
	// unknown means that the call may or may not have run; unsent that it did not, and that
	// another connection may help.
	unknown, unsent bool
}

// The pauses between two tries of a server that fails: twice as long each time.
const (
	firstPause = time.Second
	lastPause  = 5 * time.Minute
)

// server is one server of a set, and where it stands.
type server struct {
	def  Server
	link link
	set  *Set

	mu     sync.Mutex
	state  State
	since  time.Time
	err    string
	offers []offer
	// starting is closed when the start that is under way has ended; nil if none is.
	starting chan struct{}
	// slow is a start that callers no longer wait for: it failed, or took too long.
	slow    bool
	fails   int
	next    time.Time // when to try again after a failure
	removed bool
}

// begin starts it, or asks for its tools anew, if there is need. It gives what to
// wait for, nil for nothing. With force, one that just failed is tried at once.
func (s *server) begin(force bool) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.starting != nil:
		return s.starting
	case s.removed, s.state == Ready && s.link.fresh():
		return nil
	case s.state == Failed && !force && s.set.pool.now().Before(s.next):
		return nil
	}
	done := make(chan struct{})
	if !s.set.background(func() { s.start(done) }) {
		return nil
	}
	if s.starting = done; s.state != Ready { // a server that is only refreshed stays usable
		s.become(Starting)
	}
	return done
}

// start does one try and says how it went.
func (s *server) start(done chan struct{}) {
	offers, note, err := s.link.tools(s.set.ctx)
	s.mu.Lock()
	failedBefore, before := s.fails > 0 || s.slow, s.err
	_, kept := errors.AsType[withheld](err)
	switch {
	case s.removed || s.set.ctx.Err() != nil:
		s.become(Stopped)
	case err != nil:
		s.become(Failed)
		s.err, s.offers, s.slow = s.def.sentence(err.Error()), nil, !kept
		if s.next = s.set.pool.now(); !kept { // asking whether it may start costs nothing
			s.next = s.next.Add(pause(s.fails))
		}
		s.fails++
	default:
		s.become(Ready)
		s.err, s.offers, s.slow, s.fails = note, offers, false, 0
	}
	news := s.state == Failed && !(kept && failedBefore && s.err == before) || s.state == Ready && failedBefore
	s.starting = nil
	close(done)
	s.mu.Unlock()
	if news {
		s.set.report(s, false)
	}
}

// pause is how long to wait after so many failures: not all at the same time.
func pause(fails int) time.Duration {
	d := min(firstPause<<min(fails, 16), lastPause)
	return d/2 + rand.N(d/2)
}

// become changes the state. The caller has the lock.
func (s *server) become(state State) {
	if s.state != state {
		s.state, s.since = state, s.set.pool.now()
	}
}

// patience is how long a server is waited for before the model is asked without it.
func (s *server) patience() time.Duration {
	if s.def.Kind == Stdio {
		return s.set.pool.stdioWait
	}
	return s.set.pool.remoteWait
}

// await waits for a start that began then, as long as patience says. Who is too late is not waited for
// again before it was ready.
func (s *server) await(ctx context.Context, started <-chan struct{}, begun time.Time) {
	s.mu.Lock()
	slow := s.slow
	s.mu.Unlock()
	if started == nil || slow {
		return
	}
	quiet, last := time.NewTimer(time.Until(begun.Add(s.set.pool.quietWait))), time.NewTimer(time.Until(begun.Add(s.patience())))
	defer quiet.Stop()
	defer last.Stop()
	for {
		select {
		case <-started:
			return
		case <-ctx.Done():
			return
		case <-quiet.C:
			s.reportStart(started, false)
		case <-last.C:
			s.reportStart(started, true)
			return
		}
	}
}

// reportStart reports a start that takes long, unless it has just ended. late means that it is no longer waited for.
func (s *server) reportStart(started <-chan struct{}, late bool) {
	s.mu.Lock()
	under := s.starting == started && s.state == Starting
	s.slow = s.slow || late && s.starting == started
	s.mu.Unlock()
	if under {
		s.set.background(func() { s.set.report(s, late) })
	}
}

// reach makes sure that there is a connection for a call, and says what is wrong if there is none.
func (s *server) reach(ctx context.Context) (problem string, err error) {
	if started := s.begin(true); started != nil {
		limited, cancel := context.WithTimeout(ctx, s.patience())
		defer cancel()
		select {
		case <-started:
		case <-limited.Done():
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case s.removed:
		return "It is not configured any more.", nil
	case s.state == Ready:
		return "", nil
	case s.state == Failed:
		return s.err, nil
	}
	return "It has not started yet; try again in a moment.", nil
}

// rest lets it go until it is needed again.
func (s *server) rest() {
	s.mu.Lock()
	busy := s.starting != nil
	if !busy && s.state == Ready {
		s.become(Stopped)
		s.offers, s.err = nil, ""
	}
	s.mu.Unlock()
	if !busy {
		s.link.rest()
	}
}

// remove says that it is not to be used any more; its link is still to be closed.
func (s *server) remove() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removed = true
	s.become(Stopped)
	s.offers = nil
}

// offered are its tools and where it stands, without their names.
func (s *server) offered() ([]offer, Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{Name: s.def.Name, Kind: s.def.Kind, Address: s.def.address(), State: s.state, Error: s.err, Since: s.since}
	if s.state == Ready && s.starting == nil && !s.link.alive() {
		st.State, st.Error = Stopped, "The server closed the connection; a new one is made when it is needed."
		return nil, st
	}
	return s.offers, st
}

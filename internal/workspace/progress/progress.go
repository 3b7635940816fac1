// Package progress limits how often the progress of a sandbox start is recorded.
package progress

import (
	"sync"
	"time"

	"deckhand/internal/sandbox"
)

// stepEvery is how often a step's message may change in the log: a pull reports progress many
// times a second, and the log is permanent.
const stepEvery = 2 * time.Second

// patience is how long a start may take before its progress is recorded. Most sandboxes start faster than a page
// can show it.
const patience = 100 * time.Millisecond

// Steps writes a start's progress into the log, without holding it up.
type Steps struct {
	record func(sandbox.Progress)

	mu      sync.Mutex
	next    *sandbox.Progress
	step    sandbox.Step
	last    time.Time
	writing bool
	ended   chan struct{}
	waiting sync.Once
	writers sync.WaitGroup
}

// New returns the Steps of one start. record writes one of them.
func New(record func(sandbox.Progress)) *Steps {
	return &Steps{record: record, ended: make(chan struct{})}
}

// Tell is the driver's progress function: it never blocks.
func (s *Steps) Tell(p sandbox.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isOver() || p.Step == s.step && time.Since(s.last) < stepEvery {
		return
	}
	s.step, s.last, s.next = p.Step, time.Now(), &p
	if !s.writing {
		s.writing = true
		s.writers.Go(s.write)
	}
}

func (s *Steps) write() {
	s.waiting.Do(func() {
		select {
		case <-time.After(patience):
		case <-s.ended:
			s.mu.Lock()
			s.next = nil
			s.mu.Unlock()
		}
	})
	for {
		s.mu.Lock()
		p := s.next
		s.next = nil
		if p == nil {
			s.writing = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		s.record(*p)
	}
}

// End waits until everything is written, so that no step follows the end of the start.
func (s *Steps) End() {
	s.mu.Lock()
	if !s.isOver() {
		close(s.ended)
	}
	s.mu.Unlock()
	s.writers.Wait()
}

func (s *Steps) isOver() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// Any reports whether there was progress: a sandbox that is found running makes none.
func (s *Steps) Any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.step != ""
}

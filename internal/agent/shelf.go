package agent

import (
	"container/list"
	"sync"
	"time"

	"deckhand/internal/session"
)

// The bounds of a shelf: how long a transcript is kept, how large it may be, and
// how large all of them together. One must fit that fills the window of a large
// model: to read it again takes longer than all the rest of a turn.
const (
	keptFor   = time.Minute
	keptSize  = 16 << 20
	keptTotal = 32 << 20
)

// shelf keeps transcripts for a while after their turn, so that the next turn of
// a lively conversation reads only what is new. What is not there is read from
// the log, so it may forget at any time; an idle conversation takes up nothing.
type shelf struct {
	mu     sync.Mutex
	places map[session.ID]*list.Element
	order  list.List // of resting, oldest first
	size   int64
	armed  bool
}

// resting is a transcript on the shelf.
type resting struct {
	*transcript
	size  int64
	since time.Time
}

// take returns a transcript that the caller may change; nil if there is none.
func (s *shelf) take(id session.ID) *transcript {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.places[id]; e != nil {
		return s.remove(e)
	}
	return nil
}

// put lays a transcript down. The caller does not use it any more.
func (s *shelf) put(t *transcript) {
	r := resting{t, t.weight(), time.Now()}
	if r.size > keptSize {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.places == nil {
		s.places = map[session.ID]*list.Element{}
	}
	s.places[t.id] = s.order.PushBack(r)
	s.size += r.size
	for s.size > keptTotal {
		s.remove(s.order.Front())
	}
	s.arm()
}

func (s *shelf) remove(e *list.Element) *transcript {
	r := s.order.Remove(e).(resting)
	delete(s.places, r.id)
	s.size -= r.size
	return r.transcript
}

// arm has the old ones forgotten in time.
func (s *shelf) arm() {
	if s.armed || s.order.Len() == 0 {
		return
	}
	s.armed = true
	time.AfterFunc(keptFor, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.armed = false
		for e := s.order.Front(); e != nil && time.Since(e.Value.(resting).since) >= keptFor; e = s.order.Front() {
			s.remove(e)
		}
		s.arm()
	})
}

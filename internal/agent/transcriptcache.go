package agent

import (
	"container/list"
	"sync"
	"time"

	"deckhand/internal/session"
)

// Limits of the cache: how long a transcript is kept, its size, and the size of all together,
// unless the machine has much memory: several hundred agents at work need more. A transcript that
// fills the context window of a large model must fit: reading it again takes longer than the rest
// of a turn. A person who answers later does not notice that.
const (
	keptFor   = 15 * time.Second
	keptSize  = 16 << 20
	keptTotal = 32 << 20
	keptPart  = 256 // of the memory
)

// transcriptCache keeps transcripts for a short time after their turn, so that the next turn
// of an active conversation reads only new events. A missing transcript is read from the log,
// so entries may be dropped at any time. Idle conversations use no memory.
type transcriptCache struct {
	mu      sync.Mutex
	entries map[session.ID]*list.Element
	order   list.List // of cachedTranscript, oldest first
	size    int64
	armed   bool
	limit   int64 // of size, if it is above keptTotal
}

// cachedTranscript is an entry of the cache.
type cachedTranscript struct {
	*transcript
	size  int64
	since time.Time
}

// take removes and returns a transcript; nil if there is none. The caller owns it.
func (s *transcriptCache) take(id session.ID) *transcript {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[id]; e != nil {
		return s.remove(e)
	}
	return nil
}

// put stores a transcript. The caller must not use it afterwards.
func (s *transcriptCache) put(t *transcript) {
	r := cachedTranscript{t, t.weight(), time.Now()}
	if r.size > keptSize {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries == nil {
		s.entries = map[session.ID]*list.Element{}
	}
	s.entries[t.id] = s.order.PushBack(r)
	s.size += r.size
	for s.size > max(s.limit, keptTotal) {
		s.remove(s.order.Front())
	}
	s.arm()
}

func (s *transcriptCache) remove(e *list.Element) *transcript {
	r := s.order.Remove(e).(cachedTranscript)
	delete(s.entries, r.id)
	s.size -= r.size
	return r.transcript
}

// arm schedules the removal of expired entries.
func (s *transcriptCache) arm() {
	if s.armed || s.order.Len() == 0 {
		return
	}
	s.armed = true
	time.AfterFunc(keptFor, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.armed = false
		for e := s.order.Front(); e != nil && time.Since(e.Value.(cachedTranscript).since) >= keptFor; e = s.order.Front() {
			s.remove(e)
		}
		s.arm()
	})
}

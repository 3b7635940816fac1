// Package lately keeps what belongs to conversations for a short time after their turns, within
// limits on memory. Anything may be dropped at any time.
package lately

import (
	"container/list"
	"sync"
	"time"

	"deckhand/internal/machine"
	"deckhand/internal/session"
)

// Limits: how long a value is kept, its size, and the size of all together, unless the machine
// has much memory: several hundred agents at work need more. A transcript that fills the context
// window of a large model must fit: reading it again takes longer than the rest of a turn. A
// person who answers later does not notice that.
const (
	keptFor   = 15 * time.Second
	keptSize  = 16 << 20
	keptTotal = 32 << 20
	keptPart  = 256 // of the memory
)

// Cache keeps values of conversations.
type Cache[T any] struct {
	mu      sync.Mutex
	entries map[session.ID]*list.Element
	order   list.List // of entry, oldest first
	size    int64
	armed   bool
	limit   int64 // of size
}

type entry[T any] struct {
	id    session.ID
	value T
	size  int64
	since time.Time
}

// New returns a cache for this machine.
func New[T any]() *Cache[T] {
	return &Cache[T]{entries: map[session.ID]*list.Element{}, limit: max(keptTotal, machine.Memory()/keptPart)}
}

// Take removes and returns what is kept of a conversation; ok is false if nothing is.
func (c *Cache[T]) Take(id session.ID) (value T, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[id]; e != nil {
		return c.remove(e), true
	}
	return value, false
}

// Put keeps a value of about so many bytes. The caller must not use it afterwards.
func (c *Cache[T]) Put(id session.ID, value T, size int64) {
	if size > keptSize {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries[id] = c.order.PushBack(entry[T]{id, value, size, time.Now()})
	c.size += size
	for c.size > c.limit {
		c.remove(c.order.Front())
	}
	c.arm()
}

func (c *Cache[T]) remove(e *list.Element) T {
	r := c.order.Remove(e).(entry[T])
	delete(c.entries, r.id)
	c.size -= r.size
	return r.value
}

// arm schedules the removal of what was kept for long enough.
func (c *Cache[T]) arm() {
	if c.armed || c.order.Len() == 0 {
		return
	}
	c.armed = true
	time.AfterFunc(keptFor, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.armed = false
		for e := c.order.Front(); e != nil && time.Since(e.Value.(entry[T]).since) >= keptFor; e = c.order.Front() {
			c.remove(e)
		}
		c.arm()
	})
}

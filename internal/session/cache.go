package session

import (
	"container/list"
	"context"
	"sync"
)

// cache keeps the folds of sessions that were changed lately, so that a step costs the same at the thousandth event as
// at the first. It is bounded; entries in use are never dropped.
type cache struct {
	mu      sync.Mutex
	limit   int
	entries map[ID]*entry
	idle    *list.List // of *entry, least recently used first
}

// entry is one session's fold. Its lock makes changes of one session take turns in this process, instead of colliding in the store.
type entry struct {
	id     ID
	turn   chan struct{}
	state  State
	loaded bool

	users int           // guarded by cache.mu
	place *list.Element // in idle, when users is 0
}

func newCache(limit int) *cache {
	return &cache{limit: limit, entries: map[ID]*entry{}, idle: list.New()}
}

func (c *cache) get(id ID) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[id]
	if e == nil {
		e = &entry{id: id, turn: make(chan struct{}, 1)}
		c.entries[id] = e
	}
	if e.place != nil {
		c.idle.Remove(e.place)
		e.place = nil
	}
	e.users++
	return e
}

func (c *cache) put(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.users--; e.users > 0 {
		return
	}
	if !e.loaded || !e.state.Exists() { // nothing worth keeping
		delete(c.entries, e.id)
		return
	}
	e.place = c.idle.PushBack(e)
	for c.idle.Len() > c.limit {
		old := c.idle.Remove(c.idle.Front()).(*entry)
		delete(c.entries, old.id)
	}
}

func (e *entry) lock(ctx context.Context) error {
	select {
	case e.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case e.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *entry) unlock() { <-e.turn }

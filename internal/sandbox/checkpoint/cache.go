package checkpoint

import (
	"container/list"
	"sync"
	"sync/atomic"

	"deckhand/internal/sandbox/checkpoint/record"
	"deckhand/internal/sandbox/checkpoint/watch"
)

// cache holds the newest checkpoint of a store in memory, so that Take need not read it.
type cache struct {
	number int
	state  record.State
	chain  int
	blobs  map[[32]byte]record.Blob
	watch  *watch.Watcher
	// linked are files with several hard links.
	linked map[string]bool
	// leftOut is the number of files that the last full scan could not store.
	leftOut int
	// vacant is the workspace if it was empty at the last full scan.
	vacant  vacancy
	size    atomic.Int64 // entries
	watched atomic.Bool
}

func (c *cache) set(number int, st record.State, parent, chain int, blobs map[[32]byte]record.Blob) {
	if parent == 0 {
		chain = 0
	}
	c.number, c.state, c.chain, c.blobs = number, st, chain+1, blobs
	c.size.Store(int64(len(st) + len(blobs)))
}

func (c *cache) drop() {
	c.watch.Close()
	c.watch = nil
	c.watched.Store(false)
	c.number, c.state, c.chain, c.blobs, c.vacant = 0, nil, 0, nil, vacancy{}
	c.size.Store(0)
}

// newest returns the state of the newest checkpoint, the number of records that it is read from, and the contents in the
// store, nil if they are not known.
func (s *Store) newest(n int) (record.State, int, map[[32]byte]record.Blob, error) {
	if c := &s.cache; n > 0 && c.number == n {
		return c.state, c.chain, c.blobs, nil
	}
	s.cache.drop()
	st, chain, err := s.load(n)
	return st, chain, nil, err
}

// Limits on what is kept in memory for all stores. The kernel allows a user about 128 watchers, of which others need some.
const (
	maxStores   = 512
	maxEntries  = 400_000
	maxWatchers = 64
)

// Stores caches the most recently used stores.
type Stores struct {
	mu    sync.Mutex
	known map[string]*list.Element
	order list.List // of *Store, the most recently used one first
}

// Of returns the store in a folder, with its cache.
func (s *Stores) Of(dir string) *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.known[dir]; e != nil {
		s.order.MoveToFront(e)
		s.limit()
		return e.Value.(*Store)
	}
	if s.known == nil {
		s.known = map[string]*list.Element{}
	}
	found := Open(dir)
	s.known[dir] = s.order.PushFront(found)
	s.limit()
	return found
}

// limit drops the least recently used stores. It is called with mu held.
func (s *Stores) limit() {
	var stores, watchers int
	var entries int64
	for e := s.order.Front(); e != nil; {
		k, next := e.Value.(*Store), e.Next()
		stores++
		entries += k.cache.size.Load()
		if k.cache.watched.Load() {
			watchers++
		}
		if stores > 1 && (stores > maxStores || entries > maxEntries || watchers > maxWatchers) {
			s.drop(e)
			stores--
			entries -= k.cache.size.Load()
			if k.cache.watched.Load() {
				watchers--
			}
		}
		e = next
	}
}

// drop is called with mu held.
func (s *Stores) drop(e *list.Element) { delete(s.known, s.order.Remove(e).(*Store).dir) }

// Forget drops the cache of a store whose folder is removed.
func (s *Stores) Forget(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.known[dir]; e != nil {
		s.drop(e)
	}
}

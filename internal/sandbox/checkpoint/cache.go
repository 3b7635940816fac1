package checkpoint

import (
	"slices"
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
	size    atomic.Int64 // entries
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
	c.number, c.state, c.chain, c.blobs = 0, nil, 0, nil
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

// Limits on what is kept in memory for all stores.
const (
	maxStores  = 64
	maxEntries = 400_000
)

// Stores caches the most recently used stores.
type Stores struct {
	mu    sync.Mutex
	known []*Store // the most recently used one is last
}

// Of returns the store in a folder, with its cache.
func (s *Stores) Of(dir string) *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found *Store
	var size int64
	s.known = slices.DeleteFunc(s.known, func(k *Store) bool {
		if k.dir == dir {
			found = k
			return true
		}
		size += k.cache.size.Load()
		return false
	})
	if found == nil {
		found = Open(dir)
	}
	for len(s.known) > 0 && (len(s.known) >= maxStores || size > maxEntries) {
		size -= s.known[0].cache.size.Load()
		s.known = s.known[1:]
	}
	s.known = append(s.known, found)
	return found
}

// Forget drops the cache of a store whose folder is removed.
func (s *Stores) Forget(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = slices.DeleteFunc(s.known, func(k *Store) bool { return k.dir == dir })
}

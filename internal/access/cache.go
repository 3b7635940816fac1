package access

import "sync"

// maxCached bounds the cache: more than the keys of the largest team, a few megabytes at most.
const maxCached = 10_000

// cache remembers good identities by a hash. Only good ones: strangers cannot fill it.
//
// A cache is replaced as a whole. Callers that fill it take the pointer before they read the store, so a value
// read before a change only lands in a cache that the change has already replaced.
type cache struct {
	mu  sync.RWMutex
	m   map[[32]byte]Identity
	max int
}

func newCache(max int) *cache { return &cache{m: map[[32]byte]Identity{}, max: max} }

func (c *cache) get(hash [32]byte) (Identity, bool) {
	c.mu.RLock()
	id, ok := c.m[hash]
	c.mu.RUnlock()
	return id, ok
}

func (c *cache) put(hash [32]byte, id Identity) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.m) >= c.max {
		for victim := range c.m { // any: the next use of a forgotten key costs one store read
			delete(c.m, victim)
			break
		}
	}
	c.m[hash] = id
}

package live

import (
	"sync"
	"weak"
)

// Large frames are shared. A reader that does not read holds what it was about
// to write; if every such reader held a copy of its own, a thousand of them and
// one picture would be gigabytes. And readers who come at the same time need not
// encode it anew each. The cache is weak: it keeps nothing alive, it only finds
// what some reader holds, or held until the last collection of garbage.
type large struct {
	mu      sync.Mutex
	items   map[largeKey]weak.Pointer[item]
	sweepAt int // how many entries there are when those of no use are swept out
}

type largeKey struct {
	feedKey
	number int64
}

const (
	// largeFrame is from which size on sharing is worth a look.
	largeFrame = 4 << 10
	// minLarge is the least number of entries that is swept.
	minLarge = 1024
)

// get returns a frame that is still in use.
func (l *large) get(of feedKey, number int64) *item {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.items[largeKey{of, number}].Value()
}

// put stores a frame and returns the one to use: another reader may have stored the same frame
// first.
func (l *large) put(of feedKey, it *item) *item {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := largeKey{of, it.number}
	if other := l.items[key].Value(); other != nil {
		return other
	}
	if l.items == nil {
		l.items = map[largeKey]weak.Pointer[item]{}
	}
	if len(l.items) >= max(l.sweepAt, minLarge) {
		for k, p := range l.items {
			if p.Value() == nil {
				delete(l.items, k)
			}
		}
		l.sweepAt = 2 * len(l.items) // a sweep costs no more than the entries since the last one
	}
	l.items[key] = weak.Make(it)
	return it
}

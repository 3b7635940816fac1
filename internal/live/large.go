package live

import (
	"sync"
	"weak"
)

// Large frames are shared. A reader that does not read holds what it was about
// to write; if every such reader held a copy of its own, a thousand of them and
// one picture would be gigabytes. The cache is weak: it keeps nothing alive, it
// only finds what some reader holds already.
type large struct {
	mu    sync.Mutex
	items map[largeKey]weak.Pointer[item]
}

type largeKey struct {
	feedKey
	number int64
}

const (
	// largeFrame is from which size on sharing is worth a look.
	largeFrame = 32 << 10
	// maxLarge is when entries whose readers are gone are swept out.
	maxLarge = 1024
)

// get returns a frame that is still in use.
func (l *large) get(of feedKey, number int64) *item {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.items[largeKey{of, number}].Value()
}

// put makes a frame findable, and returns the one to use: another reader may
// have made the same meanwhile.
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
	if len(l.items) >= maxLarge {
		for k, p := range l.items {
			if p.Value() == nil {
				delete(l.items, k)
			}
		}
	}
	l.items[key] = weak.Make(it)
	return it
}

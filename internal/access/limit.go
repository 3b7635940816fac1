package access

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	failuresPerSecond = 5
	failuresBurst     = 20
	// A user who names ids that others have learns that they exist. So often they may, and then again after a while.
	conflictsPerSecond = 1.0 / 30
	conflictsBurst     = 50
	// maxBuckets bounds what strangers can make us remember.
	maxBuckets = 1 << 16
)

// Decision is the answer of a rate limit, with what the RateLimit-* and Retry-After headers need.
type Decision struct {
	OK         bool
	Limit      int           // requests in a burst
	Remaining  int           // requests left right now
	Reset      time.Duration // until the whole burst is there again
	RetryAfter time.Duration // until one request is, when not OK
}

// Allow counts one request of a key.
func (g *Gate) Allow(keyID string, now time.Time) Decision { return g.requests.take(keyID, now) }

// AllowUser counts one request of a user, over all their keys and logins.
func (g *Gate) AllowUser(user string, now time.Time) Decision { return g.users.take(user, now) }

// Conflict counts one request of a user that named an object of another user.
func (g *Gate) Conflict(user string) { g.conflicts.take(user, g.now()) }

// MayConflict reports whether a user may name an object that could belong to another user. If not, the answer is the
// same for existing and missing objects.
func (g *Gate) MayConflict(user string) Decision { return g.conflicts.look(user, g.now()) }

// AllowFailure counts one failed authentication of a client address, with or without its port. Not OK means that the
// address has failed too often, and that the answer is 429 instead of 401. Good keys from the same address are not
// affected, so a stranger behind the same router cannot lock out other users.
func (g *Gate) AllowFailure(remoteAddr string) Decision {
	return g.failures.take(clientNetwork(remoteAddr), g.now())
}

// clientNetwork is what one client controls: an IPv4 address, or the /64 that an IPv6 host picks its addresses from.
// What is no address shares the zero Addr.
func clientNetwork(remoteAddr string) netip.Addr {
	addr, err := netip.ParseAddr(remoteAddr)
	if err != nil {
		withPort, err := netip.ParseAddrPort(remoteAddr)
		if err != nil {
			return netip.Addr{}
		}
		addr = withPort.Addr()
	}
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		if network, err := addr.Prefix(64); err == nil {
			return network.Addr()
		}
	}
	return addr
}

// buckets is a bounded map of token buckets. A full bucket remembers nothing, so it is what gets dropped; when none is
// full, newcomers share one bucket rather than evict a client that is being limited.
type buckets[K comparable] struct {
	limit rate.Limit
	burst int
	max   int

	mu     sync.RWMutex
	m      map[K]*rate.Limiter
	swept  time.Time
	shared *rate.Limiter

	// counts are to be sent to other servers; nil for a single server.
	counts   map[K]int
	countsMu sync.Mutex
}

func newBuckets[K comparable](perSecond float64, burst int) *buckets[K] {
	limit := rate.Limit(perSecond)
	return &buckets[K]{
		limit: limit, burst: burst, max: maxBuckets,
		m: map[K]*rate.Limiter{}, shared: rate.NewLimiter(limit, burst),
	}
}

func (b *buckets[K]) take(key K, now time.Time) Decision {
	l := b.bucket(key, now)
	ok := l.AllowN(now, 1)
	if ok {
		b.count(key)
	}
	return b.decide(ok, l.TokensAt(now))
}

// look is what take would say of a request, without counting one.
func (b *buckets[K]) look(key K, now time.Time) Decision {
	left := b.bucket(key, now).TokensAt(now)
	return b.decide(left >= 1, left)
}

// decide returns the Decision for a bucket with that many tokens, which is negative if other servers allowed too many requests.
func (b *buckets[K]) decide(ok bool, left float64) Decision {
	d := Decision{OK: ok, Limit: b.burst, Remaining: int(max(left, 0)), Reset: b.refill(float64(b.burst) - left)}
	if !ok {
		d.RetryAfter = b.refill(1 - left)
	}
	return d
}

// refill is how long it takes until there are that many tokens more.
func (b *buckets[K]) refill(tokens float64) time.Duration {
	return time.Duration(max(tokens, 0) / float64(b.limit) * float64(time.Second))
}

func (b *buckets[K]) bucket(key K, now time.Time) *rate.Limiter {
	b.mu.RLock()
	l := b.m[key]
	b.mu.RUnlock()
	if l != nil {
		return l
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if l := b.m[key]; l != nil {
		return l
	}
	if len(b.m) >= b.max && !b.sweep(now) {
		return b.shared
	}
	l = rate.NewLimiter(b.limit, b.burst)
	b.m[key] = l
	return l
}

// sweep drops full buckets and says whether there is room now. It looks at all of them, so it does so at most once
// in the time in which an empty bucket fills.
func (b *buckets[K]) sweep(now time.Time) bool {
	if now.Sub(b.swept) < b.refill(float64(b.burst)) {
		return false
	}
	b.swept = now
	for key, l := range b.m {
		if l.TokensAt(now) >= float64(b.burst) {
			delete(b.m, key)
		}
	}
	return len(b.m) < b.max
}

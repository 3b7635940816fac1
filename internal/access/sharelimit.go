package access

import (
	"maps"
	"net/netip"
	"time"
)

// maxCounts is the maximum number of keys for each limit that TakeCounts returns. Other keys are counted on this server only.
const maxCounts = 1 << 12

// Count is how often a rate limit counted a key on a server.
type Count struct {
	Limit string `json:"limit"`
	Key   string `json:"key"`
	Count int    `json:"count"`
}

// Names of the limits in a Count.
const (
	keyLimit, userLimit, conflictLimit, failureLimit = "key", "user", "conflict", "failure"
)

// ShareLimits makes the Gate record counts for other servers, which TakeCounts returns. Call it before the Gate is used.
func (g *Gate) ShareLimits() {
	for _, b := range []*buckets[string]{g.requests, g.users, g.conflicts} {
		b.counts = map[string]int{}
	}
	g.failures.counts = map[netip.Addr]int{}
}

// TakeCounts returns the counts since the last call.
func (g *Gate) TakeCounts() (out []Count) {
	for limit, b := range g.limits() {
		for key, n := range b.takeCounts() {
			out = append(out, Count{limit, key, n})
		}
	}
	for addr, n := range g.failures.takeCounts() {
		out = append(out, Count{failureLimit, addr.String(), n})
	}
	return out
}

// ApplyCounts takes the counts of other servers into account.
func (g *Gate) ApplyCounts(counts []Count) {
	limits, now := g.limits(), g.now()
	for _, c := range counts {
		if b := limits[c.Limit]; b != nil {
			b.apply(c.Key, c.Count, now)
		} else if addr, err := netip.ParseAddr(c.Key); c.Limit == failureLimit && err == nil {
			g.failures.apply(addr, c.Count, now)
		}
	}
}

func (g *Gate) limits() map[string]*buckets[string] {
	return map[string]*buckets[string]{keyLimit: g.requests, userLimit: g.users, conflictLimit: g.conflicts}
}

// count counts a key for takeCounts.
func (b *buckets[K]) count(key K) {
	if b.counts == nil {
		return
	}
	b.countsMu.Lock()
	defer b.countsMu.Unlock()
	if n := b.counts[key]; n > 0 || len(b.counts) < maxCounts {
		b.counts[key] = n + 1
	}
}

// takeCounts returns the counts since its last call.
func (b *buckets[K]) takeCounts() map[K]int {
	b.countsMu.Lock()
	defer b.countsMu.Unlock()
	out := maps.Clone(b.counts)
	clear(b.counts)
	return out
}

// apply takes tokens for the counts of other servers. Each server may have allowed a whole burst before it knew of the others, so a
// bucket can owe tokens, but at most one burst.
func (b *buckets[K]) apply(key K, n int, now time.Time) {
	l := b.bucket(key, now)
	if n = min(n, b.burst, b.burst+int(l.TokensAt(now))); n > 0 {
		l.ReserveN(now, n)
	}
}

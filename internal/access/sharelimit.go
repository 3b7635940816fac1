package access

import (
	"maps"
	"net/netip"
	"time"
)

// maxUses is the maximum number of keys in a report for each limit. Uses of other keys are counted on this server only.
const maxUses = 1 << 12

// Use is how often a limited key was used on a server.
type Use struct {
	Limit string `json:"limit"`
	Key   string `json:"key"`
	Count int    `json:"count"`
}

// Names of the limits in a Use.
const (
	keyLimit, userLimit, conflictLimit, failureLimit = "key", "user", "conflict", "failure"
)

// ShareLimits makes the Gate record the uses that Uses returns for other servers. Call it before the Gate is used.
func (g *Gate) ShareLimits() {
	for _, b := range []*buckets[string]{g.requests, g.users, g.conflicts} {
		b.uses = map[string]int{}
	}
	g.failures.uses = map[netip.Addr]int{}
}

// Uses returns how often keys were used since the last call.
func (g *Gate) Uses() (out []Use) {
	for limit, b := range g.limits() {
		for key, n := range b.report() {
			out = append(out, Use{limit, key, n})
		}
	}
	for addr, n := range g.failures.report() {
		out = append(out, Use{failureLimit, addr.String(), n})
	}
	return out
}

// Charge counts uses on other servers.
func (g *Gate) Charge(uses []Use) {
	limits, now := g.limits(), g.now()
	for _, u := range uses {
		if b := limits[u.Limit]; b != nil {
			b.charge(u.Key, u.Count, now)
		} else if addr, err := netip.ParseAddr(u.Key); u.Limit == failureLimit && err == nil {
			g.failures.charge(addr, u.Count, now)
		}
	}
}

func (g *Gate) limits() map[string]*buckets[string] {
	return map[string]*buckets[string]{keyLimit: g.requests, userLimit: g.users, conflictLimit: g.conflicts}
}

// used counts a use, which report returns.
func (b *buckets[K]) used(key K) {
	if b.uses == nil {
		return
	}
	b.usesMu.Lock()
	defer b.usesMu.Unlock()
	if n := b.uses[key]; n > 0 || len(b.uses) < maxUses {
		b.uses[key] = n + 1
	}
}

// report returns the uses since its last call.
func (b *buckets[K]) report() map[K]int {
	b.usesMu.Lock()
	defer b.usesMu.Unlock()
	out := maps.Clone(b.uses)
	clear(b.uses)
	return out
}

// charge takes tokens for uses on other servers. Each server may have allowed a whole burst before it knew of the others, so a
// bucket can owe tokens, but at most one burst.
func (b *buckets[K]) charge(key K, n int, now time.Time) {
	l := b.bucket(key, now)
	if n = min(n, b.burst, b.burst+int(l.TokensAt(now))); n > 0 {
		l.ReserveN(now, n)
	}
}

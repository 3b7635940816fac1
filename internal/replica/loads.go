package replica

import (
	"context"
	"sync"
	"time"

	"deckhand/internal/cluster"
	"deckhand/internal/session"
)

const (
	// loadEvery is how often members publish their loads, and loadStale how long a load is valid.
	loadEvery = time.Second
	loadStale = 5 * time.Second
	// enough is the minimum difference of loads for handing over a conversation: below, the handover costs more time than it
	// saves.
	enough = 2
	// acceptedFor is how long after a request of another member a conversation is taken without comparing loads.
	acceptedFor = time.Minute
)

// loads are the members, and the conversations that each works on or has queued.
type loads struct {
	mu       sync.Mutex
	members  []cluster.Info
	read     time.Time
	known    map[string]load
	accepted map[session.ID]time.Time
}

type load struct {
	at    time.Time
	count int64
	given int64 // handed over since then
}

// heard stores the load that a member published.
func (l *loads) heard(member string, count int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		l.known = map[string]load{}
	}
	l.known[member] = load{at: time.Now(), count: count}
}

// accept stores that another member asked this one to work on a conversation.
func (l *loads) accept(id session.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.accepted == nil {
		l.accepted = map[session.ID]time.Time{}
	}
	for old, at := range l.accepted {
		if time.Since(at) > acceptedFor {
			delete(l.accepted, old)
		}
	}
	l.accepted[id] = time.Now()
}

// accepts reports whether accept was called for a conversation lately.
func (l *loads) accepts(id session.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.accepted[id]
	return ok && time.Since(at) < acceptedFor
}

// lightest returns the worker that should take a conversation: self, unless it is no worker or another one has a much
// lower load; "" if there is none.
func (l *loads) lightest(all []cluster.Info, self string, mine int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	best, least, works := "", int64(0), false
	for _, m := range cluster.Workers(all) {
		if m.Name == self {
			works = true
			continue
		}
		k, ok := l.known[m.Name]
		if ok = ok && time.Since(k.at) < loadStale; !ok {
			continue
		}
		if n := k.count + k.given; best == "" || n < least {
			best, least = m.Name, n
		}
	}
	if works && (best == "" || int64(mine) < least+enough) {
		return self
	}
	if best == "" { // no loads are known yet
		for _, m := range cluster.Workers(all) {
			return m.Name
		}
		return ""
	}
	k := l.known[best]
	k.given++
	l.known[best] = k
	return best
}

// Run publishes the load of this server every second, and records for which conversations no server runs on their machine,
// until ctx ends.
func (c *Claimer) Run(ctx context.Context) error {
	if c.Alone() {
		return nil
	}
	tick := time.NewTicker(loadEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if c.Works() {
				c.Publish(cluster.Wake{Kind: cluster.Load, From: c.Member, Last: int64(c.Load())})
			}
		case g := <-c.gone:
			if err := c.noteMissing(ctx, g.st, g.at); err != nil && ctx.Err() == nil {
				c.Logger.Error("cannot record that the machine of a conversation is missing", "session", g.st.ID, "error", err)
			}
		}
	}
}

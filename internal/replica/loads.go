package replica

import (
	"context"
	"sync"
	"time"

	"deckhand/internal/cluster"
	"deckhand/internal/session"
)

const (
	// loadEvery is how often members say how much they have to do, and loadStale for how long that is believed.
	loadEvery = time.Second
	loadStale = 5 * time.Second
	// enough is the difference of loads from which on a conversation is given away: below, asking another one takes longer
	// than it saves.
	enough = 2
	// acceptedFor is how long a conversation is taken here without looking for a better place, once we were asked.
	acceptedFor = time.Minute
)

// loads is how much the members have to do.
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
	given int64 // since it was heard
}

// heard notes what a member said.
func (l *loads) heard(member string, count int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		l.known = map[string]load{}
	}
	l.known[member] = load{at: time.Now(), count: count}
}

// accept notes that we were asked to work on a conversation.
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

func (l *loads) accepts(id session.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.accepted[id]
	return ok && time.Since(at) < acceptedFor
}

// lightest is the worker that should take a conversation: this one, unless it does not work or another has much less to
// do; "" if there is none.
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
	if best == "" { // none has said anything yet
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

// Run says every second how much this server has to do, and records which conversations have lost their machine, until
// ctx ends.
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

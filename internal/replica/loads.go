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
	free  int64 // slots; unknown for members that did not publish them
	slots bool
	given int64 // handed over since then
}

// full reports whether a member has no free slot.
func (k load) full() bool { return k.slots && k.free <= k.given }

// heard stores the load that a member published.
func (l *loads) heard(member string, count int64) {
	l.learn(member, func(k *load) { k.count = count })
}

// slots stores how many slots a member has free.
func (l *loads) slots(member string, free int) {
	l.learn(member, func(k *load) { k.free, k.slots = int64(free), true })
}

func (l *loads) learn(member string, change func(*load)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		l.known = map[string]load{}
	}
	k := l.known[member]
	change(&k)
	k.at, k.given = time.Now(), 0
	l.known[member] = k
}

// room returns how many slots of a member are free for conversations of this server.
func (l *loads) room(member string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.known[member]
	if !k.slots || time.Since(k.at) >= loadStale {
		return 0
	}
	return int(max(0, k.free-k.given))
}

// give counts a conversation as handed over to a member. It is called with mu held.
func (l *loads) give(member string) {
	k := l.known[member]
	k.given++
	l.known[member] = k
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

// lightest returns the worker that should take a conversation: self, unless it is not a worker, has no free slot while another
// worker has one, or has a much higher load than another one; "" if there is no worker.
func (l *loads) lightest(all []cluster.Info, self string, mine int, full bool) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	best, least, bestFull, works := "", int64(0), false, false
	for _, m := range cluster.Workers(all) {
		if m.Name == self {
			works = true
			continue
		}
		k, ok := l.known[m.Name]
		if ok = ok && time.Since(k.at) < loadStale; !ok {
			continue
		}
		n := k.count + k.given
		if best == "" || k.full() == bestFull && n < least || bestFull && !k.full() {
			best, least, bestFull = m.Name, n, k.full()
		}
	}
	if works && (best == "" || bestFull && !full || bestFull == full && int64(mine) < least+enough) {
		return self
	}
	if best == "" { // no loads are known yet
		for _, m := range cluster.Workers(all) {
			return m.Name
		}
		return ""
	}
	l.give(best)
	return best
}

// Run publishes the load of this server every second, asks servers with free slots to take conversations that wait here, and
// records which conversations no server can continue, until ctx ends.
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
		case <-c.freed:
			c.spread(ctx)
		case g := <-c.gone:
			if err := c.noteMissing(ctx, g.st, g.at); err != nil && ctx.Err() == nil {
				c.Logger.Error("cannot record that the machine of a conversation is missing", "session", g.st.ID, "error", err)
			}
		}
	}
}

// spread asks servers with free slots to take conversations that wait for a slot here.
func (c *Claimer) spread(ctx context.Context) {
	all, err := c.members(ctx)
	if err != nil {
		return // they stay in the queue
	}
	for _, m := range cluster.Workers(all) {
		if m.Name == c.Member {
			continue
		}
		for _, e := range c.Gate.Surplus(c.loads.room(m.Name)) {
			c.loads.mu.Lock()
			c.loads.give(m.Name)
			c.loads.mu.Unlock()
			c.Gate.Hand(e.ID, e.Owner)
			c.ask(m.Name, session.State{ID: e.ID, Owner: e.Owner})
		}
	}
}

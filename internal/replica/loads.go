package replica

import (
	"context"
	"slices"
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
	// handOverEvery is the minimum time between two attempts to hand over conversations that wait.
	handOverEvery = 100 * time.Millisecond
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
	// free are the free slots for any user, and kept those for users without a slot; both are unknown if slots is false.
	free, kept int64
	slots      bool
	given      int64 // handed over since then
}

// full reports whether a member has no free slot for a user. first is true if the user has no slot on any server.
func (k load) full(first bool) bool {
	free := k.free
	if first {
		free += k.kept
	}
	return k.slots && free <= k.given
}

// setCount stores the load that a member published.
func (l *loads) setCount(member string, count int64) {
	l.change(member, func(k *load) { k.count = count })
}

// setFree stores how many slots a member has free.
func (l *loads) setFree(member string, free, kept int) {
	l.change(member, func(k *load) { k.free, k.kept, k.slots = int64(free), int64(kept), true })
}

func (l *loads) change(member string, change func(*load)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		l.known = map[string]load{}
	}
	for name, k := range l.known {
		if time.Since(k.at) > loadStale {
			delete(l.known, name)
		}
	}
	k := l.known[member]
	change(&k)
	k.at, k.given = time.Now(), 0
	l.known[member] = k
}

// freeSlots returns how many slots of a member are free for conversations of this server: for any user, and for users without a slot.
func (l *loads) freeSlots(member string) (free, kept int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.known[member]
	if !k.slots || time.Since(k.at) >= loadStale {
		return 0, 0
	}
	return int(max(0, k.free-k.given)), int(max(0, k.kept-max(0, k.given-k.free)))
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
// worker has one, or has a much higher load than another one; "" if there is no worker. full and first are as in Gate.Need.
func (l *loads) lightest(all []cluster.Info, self string, mine int, full, first bool) string {
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
		if isFull := k.full(first); best == "" || isFull == bestFull && n < least || bestFull && !isFull {
			best, least, bestFull = m.Name, n, isFull
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
	var last time.Time
	var due, sure <-chan time.Time
	unsure := map[session.ID]bool{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if c.Works() {
				c.Publish(cluster.Wake{Kind: cluster.Load, From: c.Member, Last: int64(c.Load())})
			}
		case <-c.freed:
			if due == nil {
				due = time.After(handOverEvery - time.Since(last))
			}
		case <-due:
			last, due = time.Now(), nil
			c.handOver(ctx)
		case <-sure:
			sure = nil
			c.checkGone(ctx, unsure)
			clear(unsure)
		case g := <-c.gone:
			if wait := c.held.unsure(); wait > 0 && g.ended {
				unsure[g.st.ID] = true
				if sure == nil {
					sure = time.After(wait)
				}
				continue
			}
			if err := c.noteMissing(ctx, g.st, g.at); err != nil && ctx.Err() == nil {
				c.Logger.Error("cannot record that the machine of a conversation is missing", "session", g.st.ID, "error", err)
			}
		}
	}
}

// handOver asks servers with free slots to take conversations that wait for a slot here.
func (c *Claimer) handOver(ctx context.Context) {
	all, err := c.members(ctx)
	if err != nil {
		return // they stay in the queue
	}
	type room struct {
		name       string
		free, kept int
	}
	var rooms []room
	var total room
	for _, m := range cluster.Workers(all) {
		if m.Name != c.Member {
			free, kept := c.loads.freeSlots(m.Name)
			rooms = append(rooms, room{m.Name, free, kept})
			total.free, total.kept = total.free+free, total.kept+kept
		}
	}
	for _, e := range c.Gate.Movable(total.free, total.kept) {
		at := slices.IndexFunc(rooms, func(r room) bool { return r.free > 0 })
		if at >= 0 {
			rooms[at].free--
		} else if at = slices.IndexFunc(rooms, func(r room) bool { return r.kept > 0 }); at >= 0 {
			rooms[at].kept--
		} else {
			return
		}
		c.loads.mu.Lock()
		c.loads.give(rooms[at].name)
		c.loads.mu.Unlock()
		c.Gate.HandOver(e.ID, e.Owner)
		c.ask(rooms[at].name, session.State{ID: e.ID, Owner: e.Owner})
	}
}

package admission

import (
	"slices"
	"time"

	"deckhand/internal/session"
)

// handedTime is how long a conversation that was handed over to another server counts as arriving, if no server reports it.
const handedTime = 3 * time.Second

// fleet is the state of a gate that is one of several. Servers publish which conversations they run and queue: changes at once,
// and the whole list every few seconds, because messages can be lost. Without messages, each server only knows its own.
type fleet struct {
	// news has a value when there are changes to publish; nil for a single server.
	news  chan struct{}
	works bool
	// handed are conversations that were handed over to other servers, until one of those reports them.
	handed map[session.ID]handed
	// said and free are the conversations and free slots last published, and round the number of the last complete list.
	said  map[session.ID]Slot
	free  int
	round int64
}

type handed struct {
	owner string
	at    time.Time
}

func (f *fleet) poke() {
	select {
	case f.news <- struct{}{}:
	default: // nil for a single server
	}
}

// Slot is a conversation that runs or waits on a server.
type Slot struct {
	ID    session.ID `json:"id"`
	Owner string     `json:"owner,omitempty"`
	// Position is its position in the queue of the server, 0 if it runs. The next three fields are as in Place.
	Position int    `json:"position,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Running  int    `json:"running,omitempty"`
	Limit    int    `json:"limit,omitempty"`
	// Shared is true for a delegated task in the slot of another conversation.
	Shared bool `json:"shared,omitempty"`
	// Gone is true if it no longer runs or waits there.
	Gone bool `json:"gone,omitempty"`
}

func (s Slot) place() Place { return placeAt(s.Position, s.Reason, s.Running, s.Limit) }

// News is a message with which a server publishes its queue.
type News struct {
	From string `json:"from"`
	// Slots is the number of slots of the server, and Free the number of free ones that are not kept for users without a slot.
	Slots int `json:"slots"`
	Free  int `json:"free"`
	// Round numbers complete lists, and Last ends one: conversations that were not in it are gone.
	Round    int64  `json:"round"`
	Last     bool   `json:"last,omitempty"`
	Sessions []Slot `json:"sessions,omitempty"`
}

// table has the running and queued conversations of another server.
type table struct {
	heard            time.Time
	slots, free      int
	sessions         map[session.ID]listed
	running, waiting counts
}

type listed struct {
	Slot
	round int64
}

func (t *table) set(s Slot, round int64) {
	t.remove(s.ID)
	t.sessions[s.ID] = listed{s, round}
	t.count(s, 1)
}

func (t *table) remove(id session.ID) {
	if s, ok := t.sessions[id]; ok {
		delete(t.sessions, id)
		t.count(s.Slot, -1)
	}
}

func (t *table) count(s Slot, n int) {
	switch {
	case s.Shared:
	case s.Position > 0:
		t.waiting.add(s.Owner, n)
	default:
		t.running.add(s.Owner, n)
	}
}

// Join makes the gate one of several. self is the name of this server, and works is false if it runs no agents. Call it before the
// first Enter. Then publish News whenever Changed has a value.
func (g *Gate) Join(self string, works bool) {
	g.line.self = self
	g.fleet = fleet{news: make(chan struct{}, 1), works: works, handed: map[session.ID]handed{}}
	g.SetLimits(g.line.limits)
}

// Changed returns a channel that has a value when News has changes; nil for a single server.
func (g *Gate) Changed() <-chan struct{} { return g.fleet.news }

// News returns the changes that were not published yet, in messages of at most most conversations. If all is true, it returns the
// complete list.
func (g *Gate) News(all bool, most int) []News {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := make(map[session.ID]Slot, len(g.members))
	add := func(f *family, s Slot) {
		s.ID, s.Owner = f.Root, f.Owner
		now[s.ID] = s
		for id := range f.members {
			if id != f.Root {
				s.ID, s.Shared = id, true
				now[id] = s
			}
		}
	}
	for _, f := range g.line.running {
		add(f, Slot{})
	}
	order := g.order()
	for root, f := range g.line.waiting {
		p := order[root]
		add(f, Slot{Position: p.Position, Reason: p.Reason, Running: p.Running, Limit: p.Limit})
	}
	var changed []Slot
	for id, s := range now {
		if all || g.fleet.said[id] != s {
			changed = append(changed, s)
		}
	}
	for id := range g.fleet.said {
		if _, ok := now[id]; !ok {
			changed = append(changed, Slot{ID: id, Gone: true})
		}
	}
	if all {
		g.fleet.round++
	}
	free := g.free()
	if !all && len(changed) == 0 && free == g.fleet.free {
		return nil
	}
	g.fleet.said, g.fleet.free = now, free
	var out []News
	for first := true; first || len(changed) > 0; first = false {
		n := min(most, len(changed))
		out = append(out, News{From: g.line.self, Slots: g.line.limits.Running, Free: free, Round: g.fleet.round, Sessions: changed[:n]})
		changed = changed[n:]
	}
	out[len(out)-1].Last = all
	return out
}

// Beat returns News without conversations, which only shows that the server is alive.
func (g *Gate) Beat() News {
	g.mu.Lock()
	defer g.mu.Unlock()
	return News{From: g.line.self, Slots: g.line.limits.Running, Free: g.free(), Round: g.fleet.round}
}

// free returns the number of free slots that are not kept for users without a slot. It is called with mu held.
func (g *Gate) free() int {
	if g.paused != nil {
		return 0
	}
	return max(0, g.line.limits.Running-g.line.used.total-g.line.limits.Kept)
}

// Heard stores news of another server.
func (g *Gate) Heard(n News) {
	g.mu.Lock()
	t := g.line.others[n.From]
	same := t != nil && !n.Last && len(n.Sessions) == 0 && t.slots == n.Slots && t.free == n.Free
	if same {
		t.heard = time.Now()
	}
	g.mu.Unlock()
	if same {
		return
	}
	g.change("", func() []*family {
		t := g.line.others[n.From]
		if t == nil {
			t = &table{sessions: map[session.ID]listed{}, running: counts{users: map[string]int{}}, waiting: counts{users: map[string]int{}}}
			g.line.others[n.From] = t
		}
		t.heard, t.slots, t.free = time.Now(), n.Slots, n.Free
		for _, s := range n.Sessions {
			if delete(g.fleet.handed, s.ID); s.Gone {
				t.remove(s.ID)
			} else {
				t.set(s, n.Round)
			}
		}
		if n.Last {
			for id, s := range t.sessions {
				if s.round < n.Round {
					t.remove(id)
				}
			}
		}
		return g.fill()
	})
}

// Forget drops the table of a server that has ended.
func (g *Gate) Forget(member string) {
	g.forget(func(name string, _ *table) bool { return name == member })
}

// Keep drops the tables of servers that are not in live.
func (g *Gate) Keep(live []string) {
	g.forget(func(name string, _ *table) bool { return !slices.Contains(live, name) })
}

// Expire drops the tables of servers that have sent no news for some time.
func (g *Gate) Expire(after time.Duration) {
	g.forget(func(_ string, t *table) bool { return time.Since(t.heard) > after })
}

func (g *Gate) forget(which func(name string, t *table) bool) {
	if g == nil {
		return
	}
	g.mu.Lock()
	found := false
	for name, t := range g.line.others {
		if which(name, t) {
			delete(g.line.others, name)
			found = true
		}
	}
	g.mu.Unlock()
	if found {
		g.change("", g.fill)
	}
}

// Elsewhere reports whether a session runs or waits on another server.
func (g *Gate) Elsewhere(id session.ID) bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.members[id] == nil && g.elsewhere(id, "")
}

// elsewhere reports whether a session of a user, or of any user for "", runs or waits on another server. It is called with mu held.
func (g *Gate) elsewhere(id session.ID, user string) bool {
	for _, o := range g.line.others {
		if s, ok := o.sessions[id]; ok && (user == "" || s.Owner == user) {
			return true
		}
	}
	return false
}

// placeElsewhere returns the position of a session in the queue of another server. It is called with mu held.
func (g *Gate) placeElsewhere(id session.ID) *Place {
	for _, o := range g.line.others {
		if s, ok := o.sessions[id]; ok && s.Position > 0 {
			p := s.place()
			return &p
		}
	}
	return nil
}

// waitElsewhere returns the number of families in the queues of other servers. It is called with mu held.
func (g *Gate) waitElsewhere() (n int) {
	for _, o := range g.line.others {
		n += o.waiting.total
	}
	return n
}

// together has the totals of all servers, as far as they concern a user.
type together struct{ slots, running, free, waiting, queued int }

// together returns the totals. It is called with mu held.
func (g *Gate) together(user string) together {
	l := g.line
	t := together{slots: l.limits.Running, running: l.used.total, waiting: len(l.waiting), queued: len(l.queues[people][user]) + len(l.queues[automations][user])}
	t.free = l.limits.Running - l.used.total
	if l.runs(user) > 0 || t.free > l.limits.Kept { // the first slot of a user may be a kept one
		t.free -= l.limits.Kept
	}
	t.free = max(0, t.free)
	for _, o := range l.others {
		t.slots += o.slots
		t.running += o.running.total
		t.free += o.free
		t.waiting += o.waiting.total
		t.queued += o.waiting.users[user]
	}
	return t
}

// keeps reports whether a session that arrived is queued here at once: this server runs agents, and no other server has the
// session or could take it.
func (g *Gate) keeps(e Entry, holder string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fleet.news == nil || g.members[e.ID] != nil {
		return true
	}
	if !g.fleet.works || g.elsewhere(e.ID, "") {
		return false
	}
	if e.Bound {
		return holder == g.line.self
	}
	for _, o := range g.line.others {
		if o.free > 0 {
			return g.free() > 0
		}
	}
	return true
}

// Hand hands a session over to another server. It counts as arriving until a server reports it.
func (g *Gate) Hand(id session.ID, owner string) {
	g.Leave(id)
	if g != nil {
		g.hand(id, owner)
	}
}

func (g *Gate) hand(id session.ID, owner string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fleet.news != nil && g.members[id] == nil && !g.elsewhere(id, "") {
		g.fleet.handed[id] = handed{owner, time.Now()}
	}
}

// Full reports whether a session would have to wait for a slot of this server.
func (g *Gate) Full(id session.ID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.members[id]
	return g.free() == 0 && (f == nil || g.line.running[f.Root] != f)
}

// Surplus returns the next sessions that wait for a slot of this server and that any other server could work on.
func (g *Gate) Surplus(most int) (out []Entry) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.paused != nil || len(g.line.waiting) == 0 {
		return nil
	}
	sim := g.line.simulate()
	for len(out) < most {
		f := sim.take()
		if f == nil {
			break
		}
		if !f.Bound && len(f.members) == 1 {
			out = append(out, f.Entry)
		}
	}
	return out
}

package admission

import (
	"slices"
	"time"

	"deckhand/internal/session"
)

// handoverTime is how long a conversation that was handed over to another server counts as queued, if no server reports it.
const handoverTime = 3 * time.Second

// fleet is the state of a gate that is one of several. Servers publish which conversations they run and queue: see Share.
type fleet struct {
	// changed has a value when there are changes to publish; nil for a single server.
	changed chan struct{}
	worker  bool
	// handovers are conversations that were handed over to other servers, until one of those reports them.
	handovers map[session.ID]handover
	// awaited are the owners of conversations that AwaitRelease returned true for.
	awaited map[session.ID]string
	// ended are servers that have ended. Updates that were sent before may still arrive.
	ended map[string]bool
	// items, free and kept are what was last published, and list is the number of the last complete list.
	items      map[session.ID]Item
	free, kept int
	list       int64
	// newPeer is true after the first update of a server, until the complete list is published.
	newPeer bool
}

type handover struct {
	owner string
	at    time.Time
}

func (f *fleet) signal() {
	select {
	case f.changed <- struct{}{}:
	default: // nil for a single server
	}
}

// Item is a conversation that runs or waits on a server.
type Item struct {
	ID    session.ID `json:"id"`
	Owner string     `json:"owner,omitempty"`
	// position is the zero value if the conversation runs.
	position
	// Shared is true for a delegated task in the slot of another conversation.
	Shared bool `json:"shared,omitempty"`
	// Gone is true if it no longer runs or waits there.
	Gone bool `json:"gone,omitempty"`
}

// Update is a message with which a server publishes its queue.
type Update struct {
	From string `json:"from"`
	// Slots is the number of slots of the server. Free are those that any user may have, and Kept those for users without a slot.
	Slots int `json:"slots"`
	Free  int `json:"free"`
	Kept  int `json:"kept"`
	// List numbers complete lists, and Last ends one: conversations that were not in it are gone.
	List  int64  `json:"list"`
	Last  bool   `json:"last,omitempty"`
	Items []Item `json:"items,omitempty"`
}

// peer is another server, as known from its updates.
type peer struct {
	line              *line
	updated           time.Time
	slots, free, kept int
	items             map[session.ID]listed
	running, waiting  counts
}

type listed struct {
	Item
	list int64
}

func (p *peer) set(i Item, list int64) {
	p.remove(i.ID)
	p.items[i.ID] = listed{i, list}
	p.count(i, 1)
}

func (p *peer) remove(id session.ID) {
	if i, ok := p.items[id]; ok {
		delete(p.items, id)
		p.count(i.Item, -1)
	}
}

func (p *peer) count(i Item, n int) {
	switch {
	case i.Shared:
	case i.Position > 0:
		p.waiting.add(i.Owner, n)
	default:
		p.running.add(i.Owner, n)
		p.line.runs.add(i.Owner, n)
	}
}

// Join makes the gate one of several. self is the name of this server, and worker is false if it runs no agents. Call it before the
// first Enter, and then Share.
func (g *Gate) Join(self string, worker bool) {
	g.line.self = self
	g.fleet = fleet{changed: make(chan struct{}, 1), worker: worker, handovers: map[session.ID]handover{}, awaited: map[session.ID]string{}, ended: map[string]bool{}}
	g.SetLimits(g.line.limits)
}

// updates returns the changes that were not published yet, in messages of at most most conversations. If all is true, it returns the
// complete list.
func (g *Gate) updates(all bool, most int) []Update {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := make(map[session.ID]Item, len(g.members))
	add := func(f *family, p position) {
		now[f.Root] = Item{ID: f.Root, Owner: f.Owner, position: p}
		for id := range f.members {
			if id != f.Root {
				now[id] = Item{ID: id, Owner: f.Owner, position: p, Shared: true}
			}
		}
	}
	for _, f := range g.line.running {
		add(f, position{})
	}
	order := g.order()
	for root, f := range g.line.waiting {
		add(f, order[root])
	}
	all, g.fleet.newPeer = all || g.fleet.newPeer, false
	var changed []Item
	for id, i := range now {
		if all || g.fleet.items[id] != i {
			changed = append(changed, i)
		}
	}
	for id := range g.fleet.items {
		if _, ok := now[id]; !ok {
			changed = append(changed, Item{ID: id, Gone: true})
		}
	}
	if all {
		g.fleet.list++
	}
	free, kept := g.free()
	if !all && len(changed) == 0 && free == g.fleet.free && kept == g.fleet.kept {
		return nil
	}
	g.fleet.items, g.fleet.free, g.fleet.kept = now, free, kept
	var out []Update
	for first := true; first || len(changed) > 0; first = false {
		n := min(most, len(changed))
		u := g.heartbeat()
		u.Items, changed = changed[:n], changed[n:]
		out = append(out, u)
	}
	out[len(out)-1].Last = all
	return out
}

// heartbeat returns an Update without conversations, which shows that the server is alive. It is called with mu held.
func (g *Gate) heartbeat() Update {
	free, kept := g.free()
	return Update{From: g.line.self, Slots: g.line.limits.Running, Free: free, Kept: kept, List: g.fleet.list}
}

// free returns how many slots are free: for any user, and only for users without a slot. It is called with mu held.
func (g *Gate) free() (free, kept int) {
	if g.paused != nil {
		return 0, 0
	}
	n := max(0, g.line.limits.Running-g.line.used.total)
	kept = min(n, g.line.limits.Kept)
	return n - kept, kept
}

// Receive stores an Update of another server.
func (g *Gate) Receive(u Update) {
	u.Slots, u.Free, u.Kept = max(0, u.Slots), max(0, u.Free), max(0, u.Kept)
	g.mu.Lock()
	p := g.line.others[u.From]
	same := p != nil && !u.Last && len(u.Items) == 0 && p.slots == u.Slots && p.free == u.Free && p.kept == u.Kept
	if same {
		p.updated = time.Now()
	}
	g.mu.Unlock()
	if same {
		return
	}
	g.change("", func() []*family {
		if g.fleet.ended[u.From] || u.From == g.line.self {
			return nil
		}
		p := g.line.others[u.From]
		if p == nil {
			p = &peer{line: g.line, items: map[session.ID]listed{}, running: newCounts(), waiting: newCounts()}
			g.line.others[u.From], g.fleet.newPeer = p, true
		}
		p.updated, p.slots, p.free, p.kept = time.Now(), u.Slots, u.Free, u.Kept
		for _, i := range u.Items {
			delete(g.fleet.handovers, i.ID)
			if !i.Gone {
				p.set(i, u.List)
				g.leaveTo(u.From, i)
				continue
			}
			p.remove(i.ID)
			g.released(i.ID)
		}
		if u.Last {
			for id, i := range p.items {
				if i.list < u.List {
					p.remove(id)
					g.released(id)
				}
			}
		}
		return g.fill()
	})
}

// leaveTo removes a session from the queue if another server runs or queues it, too: servers that start find the same sessions. If both
// queue it, the one whose name comes first keeps it. It is called by change.
func (g *Gate) leaveTo(server string, i Item) {
	f := g.members[i.ID]
	if f == nil || g.line.waiting[f.Root] != f || f.Bound || len(f.members) > 1 || i.Shared || i.Position > 0 && server > g.line.self {
		return
	}
	delete(g.members, i.ID)
	g.remove(f)
	g.fleet.awaited[i.ID] = f.Owner
}

// ServerEnded removes what is known of a server that has ended.
func (g *Gate) ServerEnded(name string) {
	g.removePeers(func(other string, _ *peer) bool { return other == name }, name)
}

// SetLiveServers sets which servers are alive, and removes what is known of others.
func (g *Gate) SetLiveServers(live []string) {
	if g == nil {
		return
	}
	g.mu.Lock()
	for _, name := range live { // a lease that has ended can be taken again
		delete(g.fleet.ended, name)
	}
	var ended []string
	for name := range g.line.others {
		if !slices.Contains(live, name) {
			ended = append(ended, name)
		}
	}
	g.mu.Unlock()
	if len(ended) > 0 {
		g.removePeers(func(name string, _ *peer) bool { return slices.Contains(ended, name) }, ended...)
	}
}

// expire removes what is known of servers that have sent no updates for some time, and old handovers.
func (g *Gate) expire(after time.Duration) {
	g.mu.Lock()
	for id, h := range g.fleet.handovers {
		if time.Since(h.at) > handoverTime {
			delete(g.fleet.handovers, id)
		}
	}
	g.mu.Unlock()
	g.removePeers(func(_ string, p *peer) bool { return time.Since(p.updated) > after })
}

// removePeers removes what is known of some servers. Later updates of those in ended are ignored.
func (g *Gate) removePeers(which func(name string, p *peer) bool, ended ...string) {
	if g == nil || g.fleet.changed == nil {
		return
	}
	g.mu.Lock()
	for _, name := range ended {
		g.fleet.ended[name] = true
	}
	found := false
	for name, p := range g.line.others {
		if which(name, p) {
			delete(g.line.others, name)
			for user, n := range p.running.users {
				g.line.runs.add(user, -n)
			}
			found = true
		}
	}
	g.mu.Unlock()
	if found {
		g.change("", func() []*family {
			for id := range g.fleet.awaited {
				g.released(id)
			}
			return g.fill()
		})
	}
}

// OnOtherServer reports whether a session runs or waits on another server.
func (g *Gate) OnOtherServer(id session.ID) bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.members[id] == nil && g.elsewhere(id, "")
}

// AwaitRelease is OnOtherServer, but if it returns true, the function of OnGrant is called when the session no longer runs or waits
// there. What is known of other servers may be old: the session may need this server.
func (g *Gate) AwaitRelease(id session.ID, owner string) bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.members[id] != nil || !g.elsewhere(id, "") {
		return false
	}
	g.fleet.awaited[id] = owner
	return true
}

// released arranges the call that AwaitRelease promised, if no other server has the session any more. It is called by change.
func (g *Gate) released(id session.ID) {
	if owner, ok := g.fleet.awaited[id]; ok && !g.elsewhere(id, "") {
		delete(g.fleet.awaited, id)
		g.toGrant = append(g.toGrant, grant{id, owner})
	}
}

// elsewhere reports whether a session of a user, or of any user for "", runs or waits on another server. It is called with mu held.
func (g *Gate) elsewhere(id session.ID, user string) bool {
	for _, p := range g.line.others {
		if i, ok := p.items[id]; ok && (user == "" || i.Owner == user) {
			return true
		}
	}
	return false
}

// placeElsewhere returns the position of a session in the queue of another server. It is called with mu held.
func (g *Gate) placeElsewhere(id session.ID) *Place {
	for _, p := range g.line.others {
		if i, ok := p.items[id]; ok && i.Position > 0 {
			return i.place()
		}
	}
	return nil
}

// waitElsewhere returns the number of families in the queues of other servers. It is called with mu held.
func (g *Gate) waitElsewhere() (n int) {
	for _, p := range g.line.others {
		n += p.waiting.total
	}
	return n
}

// totals are numbers of all servers. free are the slots that a user may have, and queued the conversations of the user.
type totals struct{ slots, running, free, waiting, queued int }

// totals returns the totals for a user. It is called with mu held.
func (g *Gate) totals(user string) totals {
	l := g.line
	t := totals{slots: l.limits.Running, running: l.used.total, waiting: len(l.waiting), queued: len(l.queues[people][user]) + len(l.queues[automations][user])}
	t.free = l.limits.Running - l.used.total
	if l.runs.users[user] > 0 || t.free > l.limits.Kept { // the first slot of a user may be a kept one
		t.free -= l.limits.Kept
	}
	t.free = max(0, t.free)
	for _, p := range l.others {
		t.slots += p.slots
		t.running += p.running.total
		t.free += p.free
		t.waiting += p.waiting.total
		t.queued += p.waiting.users[user]
	}
	return t
}

// queuesHere reports whether a session that arrived is queued here at once: this server runs agents, and no other server has the
// session or could take it.
func (g *Gate) queuesHere(e Entry, holder string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fleet.changed == nil || g.members[e.ID] != nil {
		return true
	}
	if !g.fleet.worker || g.elsewhere(e.ID, "") {
		return false
	}
	if e.Bound {
		return holder == g.line.self
	}
	first := g.line.runs.users[e.Owner] == 0
	for _, p := range g.line.others {
		if p.free > 0 || first && p.kept > 0 {
			return g.hasSlot(e.Owner)
		}
	}
	return true
}

// hasSlot reports whether a slot of this server is free for a user. It is called with mu held.
func (g *Gate) hasSlot(user string) bool {
	free, kept := g.free()
	return free > 0 || kept > 0 && g.line.runs.users[user] == 0
}

// HandOver removes a session that another server was asked to work on. It counts as queued until a server reports it.
func (g *Gate) HandOver(id session.ID, owner string) {
	g.Leave(id)
	if g != nil {
		g.handOver(id, owner)
	}
}

func (g *Gate) handOver(id session.ID, owner string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fleet.changed != nil && g.members[id] == nil && !g.elsewhere(id, "") {
		g.fleet.handovers[id] = handover{owner, time.Now()}
	}
}

// Need returns what a session needs: full is true if it would have to wait for a slot of this server, and first is true if its owner
// has no slot on any server.
func (g *Gate) Need(id session.ID, owner string) (full, first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.members[id]
	return !g.hasSlot(owner) && (f == nil || g.line.running[f.Root] != f), g.line.runs.users[owner] == 0
}

// Movable returns the next sessions that wait for a slot of this server and that any other server could work on: at most free ones
// of any users, and at most kept ones of users without a slot.
func (g *Gate) Movable(free, kept int) (out []Entry) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.paused != nil || g.line.unbound == 0 || free == 0 && !g.line.waitsForFirst() {
		return nil
	}
	served := map[string]bool{}
	sim := g.line.simulate()
	for left := g.line.unbound; left > 0 && free+kept > 0; {
		f := sim.take()
		if f == nil {
			break
		}
		if f.Bound {
			continue
		}
		left--
		first := g.line.runs.users[f.Owner] == 0 && !served[f.Owner]
		switch {
		case len(f.members) > 1:
			continue
		case free > 0:
			free--
		case first:
			kept--
		default:
			continue
		}
		served[f.Owner] = true
		out = append(out, f.Entry)
	}
	return out
}

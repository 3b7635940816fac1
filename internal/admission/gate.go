package admission

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"deckhand/internal/session"
)

// Limits are the maximum numbers of running and queued conversations. Running applies to this server, the others to all servers
// together.
type Limits struct {
	Running, RunningPerUser int
	Queued, QueuedPerUser   int
	// Kept is how many slots are only for users without a slot, so that long turns of a few users do not keep others waiting.
	Kept int
}

// Slice is the minimum time that a turn keeps its slot while users with fewer slots wait.
const Slice = time.Minute

// tellEvery is the minimum time between two notifications of followers of the queue.
const tellEvery = 500 * time.Millisecond

// Gate is the queue of a process. A nil Gate admits everything. Methods never block.
type Gate struct {
	stats stats

	mu   sync.Mutex
	line *line
	// members maps sessions that run or wait to their families.
	members map[session.ID]*family
	// arriving counts the messages that are being stored, by user and session, and coming is their total.
	arriving map[string]map[session.ID]int
	coming   int
	// granted is called for sessions that got a slot after waiting.
	granted func(id session.ID, owner string)
	// moved is called for sessions whose position in the queue changed.
	moved func(owner string, id session.ID, place []byte)

	// places are the positions of the families by root, as of ordered; changed is true if the line has changed since.
	places  map[session.ID]position
	ordered time.Time
	changed bool
	told    map[session.ID]toldPlace
	timer   *time.Timer
	toldAt  time.Time
	// paused is the timer of Pause while no slots are granted, nil otherwise.
	paused *time.Timer
	// held is a moving average of how long a slot is kept.
	held time.Duration

	fleet fleet
	// toGrant are sessions that granted is called for after a change, although they got no slot in it.
	toGrant []grant
}

type toldPlace struct {
	owner string
	position
}

// grant is a call of granted.
type grant struct {
	id    session.ID
	owner string
}

// New returns an empty Gate.
func New(l Limits) *Gate {
	return &Gate{stats: newStats(), line: newLine(l), members: map[session.ID]*family{}, arriving: map[string]map[session.ID]int{}, told: map[session.ID]toldPlace{}, held: 10 * time.Second}
}

// OnGrant sets a function that is called for each session that gets a slot after waiting. Call it before the first Enter.
func (g *Gate) OnGrant(told func(id session.ID, owner string)) {
	if g != nil {
		g.granted = told
	}
}

// OnMove sets a function that is called for sessions whose position in the queue changed, at most twice a second. place is
// a Place as JSON, or nil for a session that no longer waits. Call it before the first Enter.
func (g *Gate) OnMove(told func(owner string, id session.ID, place []byte)) { g.moved = told }

// SetLimits changes the limits. Running conversations keep their slots.
func (g *Gate) SetLimits(l Limits) {
	g.change("", func() []*family {
		if g.line.limits = l; g.fleet.changed != nil && !g.fleet.worker {
			g.line.limits.Running = 0
		}
		return g.fill()
	})
}

// Pause grants no slots until Resume, or for longest. It is used at start, when waiting sessions are read in any order:
// none must get a slot just because it was read first.
func (g *Gate) Pause(longest time.Duration) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.paused == nil {
		g.paused = time.AfterFunc(longest, g.Resume)
	}
}

// Resume ends a Pause.
func (g *Gate) Resume() {
	if g == nil {
		return
	}
	g.mu.Lock()
	pausing := g.paused != nil
	g.mu.Unlock()
	if pausing {
		g.change("", func() []*family {
			if g.paused != nil {
				g.paused.Stop()
			}
			g.paused = nil
			return g.fill()
		})
	}
}

// Enter requests a slot for a session. If it returns false, the session waits, and the function of OnGrant is called when it
// gets one. Entering again changes nothing, except that a message from a person makes an automated session a person's.
func (g *Gate) Enter(e Entry) (entered bool) {
	if g == nil {
		return true
	}
	return g.enter(e, e.ID)
}

func (g *Gate) enter(e Entry, knows session.ID) (entered bool) {
	g.change(knows, func() []*family {
		f := g.line.running[e.Root]
		if f == nil {
			f = g.line.waiting[e.Root]
		}
		switch {
		case f == nil:
			f = &family{Entry: e, members: map[session.ID]bool{}}
			g.line.push(f, time.Now())
		case f.Automated && !e.Automated && g.line.waiting[e.Root] == f:
			g.line.drop(f)
			f.Automated = false
			g.line.insert(f)
		}
		f.members[e.ID] = true
		g.members[e.ID] = f
		delete(g.fleet.handovers, e.ID)
		delete(g.fleet.awaited, e.ID)
		others := g.fill()
		entered = g.line.running[e.Root] == f
		return others
	})
	return entered
}

// Leave releases the slot of a session, or removes it from the queue. It may be called for any session.
func (g *Gate) Leave(id session.ID) {
	if g == nil {
		return
	}
	g.change("", func() []*family {
		delete(g.fleet.handovers, id)
		f := g.members[id]
		if f == nil {
			return nil
		}
		delete(g.members, id)
		if delete(f.members, id); len(f.members) > 0 {
			return nil
		}
		g.remove(f)
		return g.fill()
	})
}

// remove removes a family that runs or waits. It is called with mu held.
func (g *Gate) remove(f *family) {
	if g.line.running[f.Root] == f {
		g.held = (7*g.held + time.Since(f.since)) / 8
		g.line.release(f)
		return
	}
	g.line.drop(f)
	delete(g.line.waiting, f.Root)
	g.line.forget(f.Owner)
}

// Idle reports whether no session waits for a slot.
func (g *Gate) Idle() bool {
	if g == nil {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.line.waiting) == 0
}

// GiveWay releases the slot of a session if another one should have it now, and reports whether the session waits again.
// betweenTurns is true when its turn has ended and another one follows. A session keeps its slot while other members of
// its family need it.
func (g *Gate) GiveWay(e Entry, betweenTurns bool) (gave bool) {
	if g.Idle() { // the usual case, made cheap
		return false
	}
	g.change(e.ID, func() []*family {
		f := g.line.running[e.Root]
		if f == nil || len(f.members) > 1 || !f.members[e.ID] || !betweenTurns && time.Since(f.since) < Slice {
			return nil
		}
		next := g.line.yields(f, betweenTurns)
		if next == nil {
			return nil
		}
		g.remove(f)
		g.grant(next)
		f.Entry = e
		g.line.push(f, time.Now())
		granted := append(g.fill(), next)
		gave = g.line.waiting[e.Root] == f // otherwise it has a slot again
		g.stats.yielded(gave)
		return granted
	})
	return gave
}

// Waits reports whether a session is in the queue.
func (g *Gate) Waits(id session.ID) bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.members[id]
	return f != nil && g.line.waiting[f.Root] == f
}

// Waiting returns the number of families in the queue.
func (g *Gate) Waiting() int {
	if g == nil {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.line.waiting)
}

// Place returns the position of a session in the queue, nil if it does not wait.
func (g *Gate) Place(id session.ID) *Place {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.members[id]
	if f == nil {
		return g.placeElsewhere(id)
	}
	if g.line.waiting[f.Root] != f {
		return nil
	}
	return g.place(f).place()
}

// place returns the position of a family. In a long line it may be up to tellEvery old, so that frequent calls stay cheap.
// It is called with mu held.
func (g *Gate) place(f *family) position {
	const short = 100
	if len(g.line.waiting) <= short || time.Since(g.ordered) >= tellEvery {
		return g.order()[f.Root]
	}
	if p, ok := g.places[f.Root]; ok {
		return p
	}
	if runs := g.line.runs.users[f.Owner]; runs >= g.line.limits.RunningPerUser { // it is newer than places
		return position{len(g.line.queues[f.class()][f.Owner]), UserLimit, runs, g.line.limits.RunningPerUser}
	}
	return g.line.serverPlace(len(g.line.waiting))
}

// order returns the positions of all families that wait. It is called with mu held.
func (g *Gate) order() map[session.ID]position {
	if g.changed {
		g.places, g.ordered, g.changed = g.line.places(), time.Now(), false
	}
	return g.places
}

// fill grants the free slots and returns the families that got one. It is called with mu held.
func (g *Gate) fill() (granted []*family) {
	for f := g.line.next(); f != nil && g.paused == nil; f = g.line.next() {
		g.grant(f)
		granted = append(granted, f)
	}
	return granted
}

func (g *Gate) grant(f *family) {
	g.stats.waited(f.class(), time.Since(f.since))
	g.line.grant(f, time.Now())
}

// change calls do with mu held, and then granted for the sessions of the families that do returns, except for one session.
func (g *Gate) change(except session.ID, do func() []*family) {
	g.mu.Lock()
	granted := do()
	grants := g.toGrant
	g.toGrant = nil
	for _, f := range granted {
		for id := range f.members {
			if id != except {
				grants = append(grants, grant{id, f.Owner})
			}
		}
	}
	g.changed = true
	g.arm()
	g.fleet.signal()
	g.mu.Unlock()
	for _, one := range grants {
		if g.granted != nil {
			g.granted(one.id, one.owner)
		}
	}
}

// arm schedules tell, if there is something to tell. It is called with mu held.
func (g *Gate) arm() {
	if g.moved != nil && g.timer == nil && len(g.line.waiting)+len(g.told)+g.waitElsewhere() > 0 {
		g.timer = time.AfterFunc(max(0, tellEvery-time.Since(g.toldAt)), g.tell)
	}
}

// tell calls moved for the positions that changed since its last call.
func (g *Gate) tell() {
	type move struct {
		id session.ID
		toldPlace
	}
	var moves []move
	g.mu.Lock()
	g.timer, g.toldAt = nil, time.Now()
	order, now := g.order(), make(map[session.ID]toldPlace, len(g.told))
	at := func(id session.ID, p toldPlace) {
		if now[id] = p; g.told[id] != p {
			moves = append(moves, move{id, p})
		}
	}
	for root, f := range g.line.waiting {
		for id := range f.members {
			at(id, toldPlace{f.Owner, order[root]})
		}
	}
	for _, p := range g.line.others {
		for id, i := range p.items {
			if i.Position > 0 && g.members[id] == nil {
				at(id, toldPlace{i.Owner, i.position})
			}
		}
	}
	for id, p := range g.told {
		if _, waits := now[id]; !waits {
			moves = append(moves, move{id, toldPlace{owner: p.owner}})
		}
	}
	g.told = now
	g.mu.Unlock()
	for _, m := range moves {
		var text []byte
		if m.Position > 0 {
			text, _ = json.Marshal(m.place()) // strings and numbers always encode
		}
		g.moved(m.owner, m.id, text)
	}
}

// FullError is the error of a message that was refused because the queue is full.
type FullError struct {
	// User is true if the limit per user was reached.
	User bool
	// Queued is the limit on queued conversations; Running and Limit are the running conversations and their limit.
	Queued, Running, Limit int
	// RetryAfter is an estimate of when there is room again.
	RetryAfter time.Duration
}

func (e *FullError) Error() string {
	if e.User {
		return fmt.Sprintf("You have reached the limit of queued conversations per user (queued: %d of %d, running: %d of %d). Wait until some finish, or stop some.", e.Queued, e.Queued, e.Running, e.Limit)
	}
	return fmt.Sprintf("The server has reached its limit of queued conversations (queued: %d of %d, running: %d of %d).", e.Queued, e.Queued, e.Running, e.Limit)
}

// QueueFull returns RetryAfter. Callers that do not import this package recognise the error by this method.
func (e *FullError) QueueFull() time.Duration { return e.RetryAfter }

// Reserve reserves room in the queue for messages that are about to be stored, one for each session. Without room, the
// error is a *FullError. A session that runs or waits needs no room. release must be called after the messages were
// stored and Arrived was called; it may be called twice.
func (g *Gate) Reserve(user string, ids ...session.ID) (release func(), err error) {
	if g == nil {
		return func() {}, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	var needed []session.ID
	for _, id := range ids {
		if f := g.members[id]; (f == nil || f.Owner != user) && g.arriving[user][id] == 0 && !g.elsewhere(id, user) {
			needed = append(needed, id)
		}
	}
	if err := g.room(user, len(needed)); err != nil {
		g.stats.refused(err.User)
		return func() {}, err
	}
	for _, id := range needed {
		if g.arriving[user] == nil {
			g.arriving[user] = map[session.ID]int{}
		}
		g.arriving[user][id]++
	}
	g.coming += len(needed)
	var once sync.Once
	return func() {
		once.Do(func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.coming -= len(needed)
			for _, id := range needed {
				delete(g.arriving[user], id)
			}
			if len(g.arriving[user]) == 0 {
				delete(g.arriving, user)
			}
		})
	}, nil
}

// room returns an error if the queue has no room for more sessions of a user. It is called with mu held.
func (g *Gate) room(user string, more int) *FullError {
	l := g.line
	if more == 0 {
		return nil
	}
	all, handovers, byUser := g.totals(user), 0, 0
	for _, h := range g.fleet.handovers {
		if time.Since(h.at) > handoverTime {
			continue
		}
		if handovers++; h.owner == user {
			byUser++
		}
	}
	runs, arriving := l.runs.users[user], len(g.arriving[user])+byUser+more
	free := max(0, min(all.free, l.limits.RunningPerUser-runs))
	if all.queued+max(0, arriving-free) > l.limits.QueuedPerUser {
		return &FullError{User: true, Queued: l.limits.QueuedPerUser, Running: runs, Limit: l.limits.RunningPerUser, RetryAfter: g.soon(runs)}
	}
	// Each user may queue one, however full the queue is: others cannot lock a user out.
	if all.queued+arriving > 1 && all.waiting+max(0, g.coming+handovers+more-free) > l.limits.Queued {
		return &FullError{Queued: l.limits.Queued, Running: all.running, Limit: all.slots, RetryAfter: g.soon(all.running)}
	}
	return nil
}

// soon estimates when one of the used slots becomes free.
func (g *Gate) soon(used int) time.Duration {
	return min(max(g.held/time.Duration(max(used, 1)), time.Second), time.Minute)
}

// Arrived queues a session whose message is stored, so that its position is known before the loop looks at it. Sessions that
// another server may work on are left to the loop.
func (g *Gate) Arrived(st session.State) {
	if g == nil || st.Created.Parent != "" || !Needs(st) {
		return
	}
	if e := EntryOf(st, st.ID); g.queuesHere(e, st.ClaimedBy) {
		g.enter(e, "")
	} else {
		g.handOver(e.ID, e.Owner)
	}
}

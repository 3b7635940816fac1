package admission

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"deckhand/internal/session"
)

// Limits are how many conversations run and wait. All are at least 1.
type Limits struct {
	Running, RunningPerUser int
	Queued, QueuedPerUser   int
}

// Slice is how long a turn keeps its place, at least, while users with fewer places wait.
const Slice = time.Minute

// tellEvery is how often those who follow the queue are told of it at most.
const tellEvery = 500 * time.Millisecond

// Gate is the queue of a process. A nil Gate admits everything. Methods never block.
type Gate struct {
	stats stats

	mu   sync.Mutex
	line *line
	// members finds the family of a session that runs or waits.
	members map[session.ID]*family
	// arriving are the sessions whose message is being stored, by user.
	arriving map[string]map[session.ID]int
	coming   int
	// granted is told which sessions got a place after they had waited.
	granted func(id session.ID, owner string)
	// moved is told of sessions whose place in the queue changed.
	moved func(owner string, id session.ID, place []byte)

	// places are those of the families by root as of ordered; changed is true if the line changed since.
	places  map[session.ID]Place
	ordered time.Time
	changed bool
	told    map[session.ID]toldPlace
	timer   *time.Timer
	toldAt  time.Time
	// paused is the timer of Pause while no places are given away, nil otherwise.
	paused *time.Timer
	// held is about how long a place is kept.
	held time.Duration
}

type toldPlace struct {
	owner string
	Place
}

// New makes a Gate.
func New(l Limits) *Gate {
	return &Gate{stats: newStats(), line: newLine(l), members: map[session.ID]*family{}, arriving: map[string]map[session.ID]int{}, told: map[session.ID]toldPlace{}, held: 10 * time.Second}
}

// OnGrant sets who is told which sessions got a place after they had waited. Call it before the first Enter.
func (g *Gate) OnGrant(told func(id session.ID, owner string)) {
	if g != nil {
		g.granted = told
	}
}

// OnMove sets who is told of sessions whose place in the queue changed, at most twice a second. place is a Place as JSON, nil
// for a session that waits no more. Call it before the first Enter.
func (g *Gate) OnMove(told func(owner string, id session.ID, place []byte)) { g.moved = told }

// SetLimits changes the limits. Conversations that run go on.
func (g *Gate) SetLimits(l Limits) {
	g.change("", func() []*family {
		g.line.limits = l
		return g.fill()
	})
}

// SetElsewhere sets how many places are in use in other processes that share the limits, by user.
func (g *Gate) SetElsewhere(users map[string]int) {
	g.change("", func() []*family {
		g.line.elsewhere = counts{users: users}
		for _, n := range users {
			g.line.elsewhere.total += n
		}
		return g.fill()
	})
}

// Pause gives away no places until Resume, or for so long. After a start the sessions that wait come one by one in any
// order: the first one must not get a place because it was read first.
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

// Enter asks for a place for a session. False means that it waits: OnGrant is told when it has one. Entering again changes
// nothing, except that a message of a person brings an automated session forward.
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
		others := g.fill()
		entered = g.line.running[e.Root] == f
		return others
	})
	return entered
}

// Leave gives up the place of a session, or its place in the queue. It may be called for any session.
func (g *Gate) Leave(id session.ID) {
	if g == nil {
		return
	}
	g.change("", func() []*family {
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

// remove takes a family out. It is called with mu held.
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

// GiveWay gives up the place of a session if another one should have it now. True means that the session waits again.
// betweenTurns is true when its turn has ended and another one follows. A session during whose turn others of its family
// run keeps its place.
func (g *Gate) GiveWay(e Entry, betweenTurns bool) (gave bool) {
	if g == nil {
		return false
	}
	g.mu.Lock()
	idle := len(g.line.waiting) == 0 // by far the usual case
	g.mu.Unlock()
	if idle {
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
		gave = g.line.waiting[e.Root] == f // otherwise it has a place again
		g.stats.yielded(gave)
		return granted
	})
	return gave
}

// Waits is true for a session in the queue.
func (g *Gate) Waits(id session.ID) bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.members[id]
	return f != nil && g.line.waiting[f.Root] == f
}

// Waiting is how many sessions wait for a place.
func (g *Gate) Waiting() int {
	if g == nil {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.line.waiting)
}

// Place is where a session stands in the queue; nil if it does not wait.
func (g *Gate) Place(id session.ID) *Place {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.members[id]
	if f == nil || g.line.waiting[f.Root] != f {
		return nil
	}
	p := g.place(f)
	return &p
}

// place is where a family stands. In a long line it may be a moment old, so that its cost does not grow with how often it is
// asked for. It is called with mu held.
func (g *Gate) place(f *family) Place {
	const short = 100
	if len(g.line.waiting) <= short || time.Since(g.ordered) >= tellEvery {
		return g.order()[f.Root]
	}
	if p, ok := g.places[f.Root]; ok {
		return p
	}
	if runs := g.line.runs(f.Owner); runs >= g.line.limits.RunningPerUser { // it came a moment ago
		return placeAt(len(g.line.queues[f.class()][f.Owner]), UserLimit, runs, g.line.limits.RunningPerUser)
	}
	return placeAt(len(g.line.waiting), ServerLimit, g.line.total(), g.line.limits.Running)
}

// order is called with mu held.
func (g *Gate) order() map[session.ID]Place {
	if g.changed {
		g.places, g.ordered, g.changed = g.line.places(), time.Now(), false
	}
	return g.places
}

// fill gives away the free places and returns who got one. It is called with mu held.
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

// change makes a change, and tells those who got a place by it after mu is free, except one who knows.
func (g *Gate) change(except session.ID, do func() []*family) {
	type grant struct {
		id    session.ID
		owner string
	}
	var grants []grant
	g.mu.Lock()
	for _, f := range do() {
		for id := range f.members {
			if id != except {
				grants = append(grants, grant{id, f.Owner})
			}
		}
	}
	g.changed = true
	g.arm()
	g.mu.Unlock()
	for _, one := range grants {
		if g.granted != nil {
			g.granted(one.id, one.owner)
		}
	}
}

// arm has moved told soon, if there is something to tell. It is called with mu held.
func (g *Gate) arm() {
	if g.moved != nil && g.timer == nil && len(g.line.waiting)+len(g.told) > 0 {
		g.timer = time.AfterFunc(max(0, tellEvery-time.Since(g.toldAt)), g.tell)
	}
}

// tell tells what changed since the last time.
func (g *Gate) tell() {
	type move struct {
		id    session.ID
		owner string
		place *Place
	}
	var moves []move
	g.mu.Lock()
	g.timer, g.toldAt = nil, time.Now()
	order, now := g.order(), make(map[session.ID]toldPlace, len(g.told))
	for root, f := range g.line.waiting {
		for id := range f.members {
			p := toldPlace{f.Owner, order[root]}
			if now[id] = p; g.told[id] != p {
				moves = append(moves, move{id, f.Owner, &p.Place})
			}
		}
	}
	for id, p := range g.told {
		if _, waits := now[id]; !waits {
			moves = append(moves, move{id, p.owner, nil})
		}
	}
	g.told = now
	g.mu.Unlock()
	for _, m := range moves {
		var text []byte
		if m.place != nil {
			text, _ = json.Marshal(m.place) // strings and numbers always encode
		}
		g.moved(m.owner, m.id, text)
	}
}

// FullError says that the queue is full.
type FullError struct {
	// User is true if the limit is that of the user.
	User bool
	// Queued is that limit, and Running and Limit are how many conversations run that the limit on running ones counts.
	Queued, Running, Limit int
	// RetryAfter is about when there is room again.
	RetryAfter time.Duration
}

func (e *FullError) Error() string {
	if e.User {
		return fmt.Sprintf("You have reached the limit of queued conversations per user (queued: %d of %d, running: %d of %d). Wait until some have finished, or stop some.", e.Queued, e.Queued, e.Running, e.Limit)
	}
	return fmt.Sprintf("The server has reached its limit of queued conversations (queued: %d of %d, running: %d of %d).", e.Queued, e.Queued, e.Running, e.Limit)
}

// QueueFull says when to try again.
func (e *FullError) QueueFull() time.Duration { return e.RetryAfter }

// Reserve reserves room in the queue for messages that are about to be stored, one for each session. It is a *FullError if
// there is none. A session that runs or waits needs no more room. release must be called after the messages were stored,
// and after Arrived; it may be called twice.
func (g *Gate) Reserve(user string, ids ...session.ID) (release func(), err error) {
	if g == nil {
		return func() {}, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	var needed []session.ID
	for _, id := range ids {
		if f := g.members[id]; (f == nil || f.Owner != user) && g.arriving[user][id] == 0 {
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

// room says whether so many more sessions of a user may come. It is called with mu held.
func (g *Gate) room(user string, more int) *FullError {
	l := g.line
	if more == 0 {
		return nil
	}
	free := max(0, min(l.limits.Running-l.total(), l.limits.RunningPerUser-l.runs(user)))
	queued := len(l.queues[people][user]) + len(l.queues[automations][user])
	if queued+max(0, len(g.arriving[user])+more-free) > l.limits.QueuedPerUser {
		return &FullError{User: true, Queued: l.limits.QueuedPerUser, Running: l.runs(user), Limit: l.limits.RunningPerUser, RetryAfter: g.soon(l.runs(user))}
	}
	if len(l.waiting)+max(0, g.coming+more-free) > l.limits.Queued {
		return &FullError{Queued: l.limits.Queued, Running: l.total(), Limit: l.limits.Running, RetryAfter: g.soon(l.total())}
	}
	return nil
}

// soon is about when one of so many places becomes free.
func (g *Gate) soon(places int) time.Duration {
	return min(max(g.held/time.Duration(max(places, 1)), time.Second), time.Minute)
}

// Arrived queues a session as soon as its message is stored, so that its place is known before the loop looks at it.
func (g *Gate) Arrived(st session.State) {
	if g != nil && st.Created.Parent == "" && Needs(st) {
		g.enter(EntryOf(st, st.ID), "")
	}
}

package admission

import (
	"cmp"
	"slices"
	"time"

	"deckhand/internal/session"
)

// Entry is a session that needs a slot.
type Entry struct {
	ID session.ID
	// Root is the topmost ancestor of the session, or the session itself. All sessions below a root share its slot.
	Root  session.ID
	Owner string
	// Automated is true if an integration or an attempt sent the message.
	Automated bool
	// Began is true if the turn is in progress. Such turns go before the user's other turns.
	Began bool
	// Since is when the session last changed. It orders the sessions of a user.
	Since time.Time
	// Bound is true if only some servers can work on the session: it was claimed, or its workspace is elsewhere.
	Bound bool
}

// class is the kind of sender of a message.
type class int

const (
	people class = iota
	automations
	classes
)

// peopleFirst is how many slots in a row go to people while automations wait; the next one goes to an automation.
const peopleFirst = 4

// family is a root session and the sessions below it that need a slot.
type family struct {
	Entry
	members map[session.ID]bool
	// number breaks ties between families with the same Since; since is when the family began to wait or to run here.
	number int64
	since  time.Time
}

func (f *family) class() class {
	if f.Automated {
		return automations
	}
	return people
}

// before orders the families of one user in one class.
func (f *family) before(o *family) int {
	if f.Began != o.Began {
		if f.Began {
			return -1
		}
		return 1
	}
	return cmp.Or(f.Since.Compare(o.Since), cmp.Compare(f.number, o.number))
}

func newCounts() counts { return counts{users: map[string]int{}} }

// counts has numbers of families, in total and by user.
type counts struct {
	total int
	users map[string]int
}

func (c *counts) add(user string, n int) {
	c.total += n
	if c.users[user] += n; c.users[user] == 0 {
		delete(c.users, user)
	}
}

// line is the queue and the rule of who is next. It is not safe for concurrent use.
type line struct {
	limits  Limits
	waiting map[session.ID]*family // by root
	running map[session.ID]*family
	// queues are the waiting families of each user, next first.
	queues [classes]map[string][]*family
	used   counts
	// unbound is the number of waiting families that are not Bound.
	unbound int
	// runs has the slots in use on all servers.
	runs counts
	// others are the other servers by name, and self is the name of this one; both are empty for a single server.
	others map[string]*peer
	self   string
	// served is the number of each user's last grant.
	served map[string]int64
	grants int64
	// streak is how many slots in a row went to people while automations waited.
	streak int
	number int64
}

func newLine(l Limits) *line {
	out := &line{limits: l, waiting: map[session.ID]*family{}, running: map[session.ID]*family{}, used: newCounts(), runs: newCounts(), others: map[string]*peer{}, served: map[string]int64{}}
	for c := range out.queues {
		out.queues[c] = map[string][]*family{}
	}
	return out
}

// use changes the number of slots that a user has on this server.
func (l *line) use(user string, n int) {
	l.used.add(user, n)
	l.runs.add(user, n)
}

// push adds a family to its user's queue.
func (l *line) push(f *family, now time.Time) {
	l.number++
	f.number, f.since = l.number, now
	l.waiting[f.Root] = f
	l.insert(f)
}

func (l *line) insert(f *family) {
	q := l.queues[f.class()]
	at, _ := slices.BinarySearchFunc(q[f.Owner], f, (*family).before)
	q[f.Owner] = slices.Insert(q[f.Owner], at, f)
	if !f.Bound {
		l.unbound++
	}
}

// drop removes a waiting family from its user's queue.
func (l *line) drop(f *family) {
	if !f.Bound {
		l.unbound--
	}
	q := l.queues[f.class()]
	rest := slices.DeleteFunc(q[f.Owner], func(o *family) bool { return o == f })
	if q[f.Owner] = rest; len(rest) == 0 {
		delete(q, f.Owner)
	}
}

// next returns the family that gets the next free slot, nil if none may have one now.
//
// People go before automations, but every fifth slot goes to an automation if one waits. Among the users of a class, the
// one with the fewest slots is next, then the one whose last slot was longest ago. Users at their limit are skipped, and for the
// kept slots also those who have one.
func (l *line) next() *family {
	free := l.limits.Running - l.used.total
	if free <= 0 {
		return nil
	}
	kept := free <= l.limits.Kept
	person, automation := l.best(people, kept), l.best(automations, kept)
	if person == nil || automation != nil && l.streak >= peopleFirst {
		return automation
	}
	return person
}

// best returns the first family of a class that may have a slot. If kept is true, only families of users without a slot may.
func (l *line) best(c class, kept bool) *family {
	var found candidate
	for user, q := range l.queues[c] {
		one := candidate{q[0], l.runs.users[user], l.served[user]}
		if one.runs < l.limits.RunningPerUser && (one.runs == 0 || !kept) && (found.family == nil || one.compare(found) < 0) && l.turn(user, one.runs) {
			found = one
		}
	}
	return found.family
}

// waitsForFirst reports whether a user without a slot on any server waits.
func (l *line) waitsForFirst() bool {
	for _, queues := range l.queues {
		for user := range queues {
			if l.runs.users[user] == 0 {
				return true
			}
		}
	}
	return false
}

// turn reports whether this server may give a user the next slot. Servers that have free slots and queued conversations of the
// user take turns, so that not all of them give the user a slot when one becomes free.
func (l *line) turn(user string, runs int) bool {
	rank, n := 0, 1
	for name, o := range l.others {
		if (o.free > 0 || runs == 0 && o.kept > 0) && o.waiting.users[user] > 0 {
			if n++; name < l.self {
				rank++
			}
		}
	}
	return runs%n == rank
}

// candidate is the first family of a user's queue, with the user's slots and last grant.
type candidate struct {
	*family
	runs   int
	served int64
}

// compare orders the candidates of a class: the first one is next.
func (a candidate) compare(b candidate) int {
	return cmp.Or(cmp.Compare(a.runs, b.runs), cmp.Compare(a.served, b.served), a.before(b.family), cmp.Compare(a.Root, b.Root))
}

// grant gives a slot to a waiting family.
func (l *line) grant(f *family, now time.Time) {
	l.drop(f)
	delete(l.waiting, f.Root)
	l.grants++
	l.served[f.Owner] = l.grants
	l.use(f.Owner, 1)
	l.running[f.Root] = f
	f.since = now
	if l.streak++; f.Automated || l.best(automations, false) == nil {
		l.streak = 0
	}
}

// release frees the slot of a family.
func (l *line) release(f *family) {
	delete(l.running, f.Root)
	l.use(f.Owner, -1)
	l.forget(f.Owner)
}

// forget removes what is stored about a user without conversations.
func (l *line) forget(user string) {
	if l.used.users[user] == 0 && len(l.queues[people][user])+len(l.queues[automations][user]) == 0 {
		delete(l.served, user)
	}
}

// yields returns the family to which f should give its slot, nil if there is none. Between two turns that is any family
// that may have the slot. During a turn it is one of a user with fewer slots, or a person's if f is automated.
func (l *line) yields(f *family, betweenTurns bool) *family {
	mine := l.runs.users[f.Owner]
	l.use(f.Owner, -1)
	next := l.next()
	l.use(f.Owner, 1)
	if next == nil || betweenTurns || f.Automated && !next.Automated || next.Owner != f.Owner && l.runs.users[next.Owner] < mine {
		return next
	}
	return nil
}

package admission

import (
	"cmp"
	"slices"
	"time"

	"deckhand/internal/session"
)

// Entry is a session that needs a place.
type Entry struct {
	ID session.ID
	// Root is the topmost session above this one: they share a place.
	Root  session.ID
	Owner string
	// Automated is true if no person sent the message that the turn answers.
	Automated bool
	// Began is true if the turn has begun: it goes before the user's turns that have not.
	Began bool
	// Since orders the sessions of a user: since when it waits, as far as the log tells.
	Since time.Time
}

// class is people or automations.
type class int

const (
	people class = iota
	automations
	classes
)

// peopleFirst is how many places in a row go to people while automations wait; the next one goes to an automation.
const peopleFirst = 4

// family is a root session with those below it that need a place too.
type family struct {
	Entry
	members map[session.ID]bool
	// number orders families that wait since the same moment, and since is when it began to wait or to run here.
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

// counts are how many places are in use, by user and in all.
type counts struct {
	total int
	users map[string]int
}

// line is the queue and the rule by which it is served. It is not safe for concurrent use.
type line struct {
	limits  Limits
	waiting map[session.ID]*family // by root
	running map[session.ID]*family
	// queues are the waiting families of each user, next first.
	queues [classes]map[string][]*family
	used   counts
	// elsewhere are the places in use in other processes.
	elsewhere counts
	// served says when each user got a place last, by the number of the grant.
	served map[string]int64
	grants int64
	// streak is how many places in a row went to people while automations waited.
	streak int
	number int64
}

func newLine(l Limits) *line {
	out := &line{limits: l, waiting: map[session.ID]*family{}, running: map[session.ID]*family{}, used: counts{users: map[string]int{}}, served: map[string]int64{}}
	for c := range out.queues {
		out.queues[c] = map[string][]*family{}
	}
	return out
}

// runs is how many places a user has, here and elsewhere.
func (l *line) runs(user string) int { return l.used.users[user] + l.elsewhere.users[user] }

func (l *line) total() int { return l.used.total + l.elsewhere.total }

// push appends a family to its user's queue.
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
}

// drop removes a family that waits from its user's queue.
func (l *line) drop(f *family) {
	q := l.queues[f.class()]
	rest := slices.DeleteFunc(q[f.Owner], func(o *family) bool { return o == f })
	if q[f.Owner] = rest; len(rest) == 0 {
		delete(q, f.Owner)
	}
}

// next is the family that gets the next free place, nil if none may have one now.
//
// People go before automations, but every fifth place goes to an automation if one waits. Among the users of a class, the
// one with the fewest places is next, then the one who got a place the longest time ago. A user who has as many places as
// allowed is passed over.
func (l *line) next() *family {
	if l.total() >= l.limits.Running {
		return nil
	}
	person, automation := l.best(people), l.best(automations)
	if person == nil || automation != nil && l.streak >= peopleFirst {
		return automation
	}
	return person
}

func (l *line) best(c class) *family {
	var found candidate
	for user, q := range l.queues[c] {
		one := candidate{q[0], l.runs(user), l.served[user]}
		if one.runs < l.limits.RunningPerUser && (found.family == nil || one.compare(found) < 0) {
			found = one
		}
	}
	return found.family
}

// candidate is the first family of a user's queue, with how many places the user has and when the user got one last.
type candidate struct {
	*family
	runs   int
	served int64
}

// compare orders the candidates of a class: the first one is next.
func (a candidate) compare(b candidate) int {
	return cmp.Or(cmp.Compare(a.runs, b.runs), cmp.Compare(a.served, b.served), a.before(b.family), cmp.Compare(a.Root, b.Root))
}

// grant gives a family that waits a place.
func (l *line) grant(f *family, now time.Time) {
	l.drop(f)
	delete(l.waiting, f.Root)
	l.grants++
	l.served[f.Owner] = l.grants
	l.used.total++
	l.used.users[f.Owner]++
	l.running[f.Root] = f
	f.since = now
	if l.streak++; f.Automated || l.best(automations) == nil {
		l.streak = 0
	}
}

// release frees the place of a family.
func (l *line) release(f *family) {
	delete(l.running, f.Root)
	l.used.total--
	if l.used.users[f.Owner]--; l.used.users[f.Owner] == 0 {
		delete(l.used.users, f.Owner)
	}
	l.forget(f.Owner)
}

// forget keeps nothing about users without conversations.
func (l *line) forget(user string) {
	if l.used.users[user] == 0 && len(l.queues[people][user])+len(l.queues[automations][user]) == 0 {
		delete(l.served, user)
	}
}

// yields is the family for which another one should give up its place, nil if there is none. Between two turns that is any
// family that may have the place. During a turn it is one of a user with fewer places, or a person's if f is automated.
func (l *line) yields(f *family, betweenTurns bool) *family {
	mine := l.runs(f.Owner)
	l.used.total--
	l.used.users[f.Owner]--
	next := l.next()
	l.used.total++
	l.used.users[f.Owner]++
	if next == nil || betweenTurns || f.Automated && !next.Automated || next.Owner != f.Owner && l.runs(next.Owner) < mine {
		return next
	}
	return nil
}

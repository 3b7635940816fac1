// Package backlog is the queue of sessions that a loop is about to take up. It is
// in memory, bounded, and fair: owners take turns, so that a thousand sessions of
// one do not hold up the only one of another, and what a person did to a running
// conversation does not wait behind conversations that are being started.
package backlog

import (
	"container/list"

	"deckhand/internal/admission"
	"deckhand/internal/session"
)

// Gate limits how many of the sessions run that a loop takes up.
type Gate = admission.Gate

// Needs reports whether a session runs or waits for a slot.
func Needs(st session.State) bool { return admission.Needs(st) }

// Wanted returns the entry of a session that needs a slot. root is the topmost session above it, or itself.
func Wanted(st session.State, root session.ID) admission.Entry { return admission.EntryOf(st, root) }

// Entry is a session in the queue.
type Entry struct {
	ID    session.ID
	Owner string
	// Last is the newest event that is known of; 0 if none is.
	Last int64
	// Urgent is true when a session changed that was taken up before.
	Urgent bool
}

// Queue holds each session once. Make it with New. It is not safe for concurrent use.
type Queue struct {
	limit  int
	byID   map[session.ID]*list.Element // of *Entry
	urgent line
	first  line // the others: sessions to be started, and those found in the index
	// yields is true after an urgent entry was taken: then it is the others' turn.
	yields bool
	// granted are sessions that got a slot and were not taken up yet. There are at most as many as slots.
	granted []Entry
}

// New makes a queue for at most limit sessions.
func New(limit int) *Queue {
	return &Queue{limit: limit, byID: map[session.ID]*list.Element{}, urgent: line{owners: map[string]*owner{}}, first: line{owners: map[string]*owner{}}}
}

// Len is how many sessions are queued.
func (q *Queue) Len() int { return len(q.byID) + len(q.granted) }

// Grant queues a session that got a slot. It is taken before all others and never dropped. False means that it was queued already.
func (q *Queue) Grant(e Entry) bool {
	at, queued := q.byID[e.ID]
	if queued {
		q.remove(at)
	}
	q.granted = append(q.granted, e)
	return !queued
}

// Add queues a session. One that is queued already becomes urgent with newer events:
// a person is at it. False means that there was no room: either for the session, or
// for one of the owner who has most, which had to leave in its favour.
func (q *Queue) Add(e Entry) bool {
	if at, ok := q.byID[e.ID]; ok {
		known := at.Value.(*Entry)
		urgent := e.Urgent || known.Last > 0 && e.Last > known.Last
		known.Last = max(known.Last, e.Last)
		if urgent && !known.Urgent {
			q.remove(at)
			q.add(Entry{ID: known.ID, Owner: known.Owner, Last: known.Last, Urgent: true})
		}
		return true
	}
	full := len(q.byID) >= q.limit
	if full && !q.makeRoom(e) {
		return false
	}
	q.add(e)
	return !full
}

// Next takes a session out of the queue: those with a slot first, then urgent ones and others in turn, and the
// owners of either in turn.
func (q *Queue) Next() (Entry, bool) {
	if len(q.granted) > 0 {
		e := q.granted[0]
		q.granted = q.granted[1:]
		return e, true
	}
	if len(q.byID) == 0 {
		return Entry{}, false
	}
	from := &q.urgent
	if q.urgent.empty() || q.yields && !q.first.empty() {
		from = &q.first
	}
	q.yields = from == &q.urgent
	o := from.turns.Front().Value.(*owner)
	from.turns.MoveToBack(o.turn)
	e := *o.entries.Front().Value.(*Entry)
	q.remove(o.entries.Front())
	return e, true
}

// makeRoom removes the newest session of the owner who has most, unless e would then
// be of that owner itself. Urgent ones are removed only for urgent ones.
func (q *Queue) makeRoom(e Entry) bool {
	from := &q.first
	if e.Urgent && q.first.empty() {
		from = &q.urgent
	}
	has, owners := 0, len(from.owners)
	if e.Urgent && from == &q.first {
		has = -1 // it goes before those of all owners
	} else if o := from.owners[e.Owner]; o != nil {
		has = o.entries.Len()
	} else {
		owners++
	}
	if (has+1)*owners > q.limit { // its owner has a full share
		return false
	}
	var most *owner
	for _, o := range from.owners {
		if most == nil || o.entries.Len() > most.entries.Len() {
			most = o
		}
	}
	if most == nil || most.entries.Len() <= has+1 {
		return false
	}
	q.remove(most.entries.Back())
	return true
}

func (q *Queue) lineOf(e *Entry) *line {
	if e.Urgent {
		return &q.urgent
	}
	return &q.first
}

func (q *Queue) add(e Entry) {
	l := q.lineOf(&e)
	o := l.owners[e.Owner]
	if o == nil {
		o = &owner{name: e.Owner}
		o.turn = l.turns.PushBack(o)
		l.owners[e.Owner] = o
	}
	q.byID[e.ID] = o.entries.PushBack(&e)
}

func (q *Queue) remove(at *list.Element) {
	e := at.Value.(*Entry)
	l := q.lineOf(e)
	o := l.owners[e.Owner]
	o.entries.Remove(at)
	if o.entries.Len() == 0 {
		l.turns.Remove(o.turn)
		delete(l.owners, o.name)
	}
	delete(q.byID, e.ID)
}

// line is a queue in which owners take turns.
type line struct {
	owners map[string]*owner
	turns  list.List // of *owner; the first is next
}

func (l *line) empty() bool { return len(l.owners) == 0 }

// owner is one who has sessions in a line.
type owner struct {
	name    string
	entries list.List // of *Entry, the oldest first
	turn    *list.Element
}

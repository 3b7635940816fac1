// Package queue is the durable queue for what must be done after a commit, and again if the
// process dies before it is done: webhooks to send, deliveries of git providers to act upon.
//
// An Item belongs to an owner (a webhook, an integration) and stands in a lane. Items of one
// lane are worked on one at a time, those that are due first before the others. A Runner
// claims lanes for a while, has the work done and gives them back; a lane whose holder died
// is claimed again, so work is done at least once. What a lane's claim has decided is stored
// with the number of the claim: a holder that was taken for dead cannot overwrite what
// another has done since.
//
// The rules are here and in the packages that own the items. A database only stores rows and
// finds them by their columns: it implements Tx, and passes queuetest.
package queue

import (
	"context"
	"time"
)

// Item is one thing to do, or that was done.
type Item struct {
	// Owner is who it belongs to: it is removed with its owner.
	Owner string
	// Seq is its place among its owner's, without gaps.
	Seq int64
	// ID and Print are its names among its owner's. Neither comes twice; Print may be empty.
	ID, Print string
	Lane      string
	// Session is the conversation that it is about, if any.
	Session string
	// Kind, State, Body and Details are for the package that it comes from.
	Kind, State   string
	Body, Details []byte
	// Open is true until nothing more will be done about it.
	Open      bool
	Attempts  int
	CreatedAt time.Time
	// NextAt is when it is taken up; zero if it is not to be, now.
	NextAt time.Time
}

// Lane is what is known of a lane. It is stored while something waits in it or it is held.
type Lane struct {
	// User is whose lane it is. Nothing is due for a user who is disabled.
	Name, User string
	// Waiting is how many of its items have a NextAt.
	Waiting int
	// DueAt is when it may be worked on; zero if it may not.
	DueAt time.Time
	// Holder has claimed it until a moment; "" if it is not claimed. Claim is the number of the
	// last claim, and grows.
	Holder string
	Until  time.Time
	Claim  int64
}

// ReadyAt is when the lane can be claimed; zero if nothing is to be done in it.
func (l Lane) ReadyAt() time.Time {
	if l.DueAt.IsZero() || l.Until.Before(l.DueAt) {
		return l.DueAt
	}
	return l.Until
}

// Tx is a queue in a transaction. Times are stored to the microsecond. Those that decide when work is done (NextAt, DueAt, Until)
// mean the same moment to all processes that share the queue, even if their clocks differ.
type Tx interface {
	Owners
	Items
	Waiting
	History
	Lanes
}

// Owners stores the owners of items.
type Owners interface {
	AddOwner(id, user string) error
	// RemoveOwner removes an owner with its items.
	RemoveOwner(id string) error
}

// Items are the queue's.
type Items interface {
	// Add stores an item and gives it its Seq; false if there is no such owner, or it has an
	// item of this ID or Print.
	Add(it Item) (Item, bool, error)
	// Put stores what may change of an item: all but Owner, Seq, ID, Print, Kind and
	// CreatedAt. False if it was removed.
	Put(it Item) (bool, error)
	Find(owner, id string) (Item, bool, error)
	// Page lists an owner's, newest first, below a Seq.
	Page(owner string, below int64, limit int) ([]Item, error)
	// Opened lists those that are Open and about a session, or about any if it is "", by
	// session, owner and Seq.
	Opened(session string) ([]Item, error)
}

// Waiting are the items of a lane that have a NextAt.
type Waiting interface {
	// First is the one that is taken up first: by NextAt, owner and Seq.
	First(lane string) (Item, bool, error)
	Count(lane string) (int, error)
	// Advance makes those due at a moment that would be later.
	Advance(lane string, at time.Time) error
}

// History is what was done, which is kept for a while.
type History interface {
	// Last is the highest Seq of an owner; 0 if it has no items.
	Last(owner string) (int64, error)
	// Drop removes those of an owner that are not Open, up to a Seq, made before a moment.
	Drop(owner string, upTo int64, before time.Time) error
	// Older lists items made before a moment, the oldest first, without their Body and Details.
	Older(before time.Time, limit int) ([]Item, error)
	Remove(it Item) error
}

// Lanes are the queue's.
type Lanes interface {
	Lane(name string) (Lane, bool, error)
	// PutLane stores a lane. One that is not held and in which nothing waits is removed.
	PutLane(l Lane) error
	// Ready lists the lanes of users who are not disabled whose ReadyAt has come, longest ready
	// first, and says when there will be another; zero if none will.
	Ready(now time.Time, limit int) (ready []Lane, next time.Time, err error)
	// Held lists the lanes that have a holder.
	Held() ([]Lane, error)
}

// Store is a queue in a database.
type Store interface {
	// Update runs fn in a transaction, which is durable when Update returns nil. An error of
	// fn is returned and must come before anything was stored. fn may be run more than once,
	// and must not block.
	Update(ctx context.Context, fn func(Tx) error) error
	// View runs fn on what is stored; fn must not change it.
	View(ctx context.Context, fn func(Tx) error) error
}

// Gate is when an owner lets its items be worked on.
type Gate struct {
	Closed    bool
	NotBefore time.Time
}

// due is when a lane is due whose first item is due at a moment; zero is never.
func (g Gate) due(first time.Time) time.Time {
	switch {
	case g.Closed || first.IsZero():
		return time.Time{}
	case first.Before(g.NotBefore):
		return g.NotBefore
	}
	return first
}

// Push adds an item to its lane. The lane is as it is then; false if the item was not added.
func Push(tx Tx, it Item, user string, g Gate) (Item, Lane, bool, error) {
	it, added, err := tx.Add(it)
	if err != nil || !added || it.NextAt.IsZero() {
		return it, Lane{}, added, err
	}
	l, _, err := tx.Lane(it.Lane)
	if err != nil {
		return it, l, false, err
	}
	l.Name, l.User = it.Lane, user
	l.Waiting++
	first := it.NextAt
	if !l.DueAt.IsZero() && l.DueAt.Before(first) {
		first = l.DueAt
	}
	l.DueAt = g.due(first)
	return it, l, true, tx.PutLane(l)
}

// Arm brings a lane up to date with what waits in it.
func Arm(tx Tx, lane, user string, g Gate) error {
	l, known, err := tx.Lane(lane)
	if err != nil {
		return err
	}
	first, waits, err := tx.First(lane)
	if err != nil || !waits && !known {
		return err
	}
	l.Name, l.User, l.Waiting, l.DueAt = lane, user, 0, g.due(first.NextAt)
	if waits {
		if l.Waiting, err = tx.Count(lane); err != nil {
			return err
		}
	}
	return tx.PutLane(l)
}

// Claim is a right to work on a lane. The zero Claim cannot be lost.
type Claim struct {
	Lane   string
	Number int64
}

// Claimed is the claim under which a lane is held.
func (l Lane) Claimed() Claim { return Claim{l.Name, l.Claim} }

// Holds is false when the lane was claimed by another since.
func (c Claim) Holds(tx Tx) (bool, error) {
	if c == (Claim{}) {
		return true, nil
	}
	l, found, err := tx.Lane(c.Lane)
	return found && l.Claim == c.Number && l.Holder != "", err
}

// Release gives a lane back, if the claim holds.
func (c Claim) Release(tx Tx) error {
	l, found, err := tx.Lane(c.Lane)
	if err != nil || !found || l.Claim != c.Number {
		return err
	}
	l.Holder, l.Until = "", time.Time{}
	return tx.PutLane(l)
}

// Take claims lanes for a holder until a moment, and returns those that it got: another may
// have been faster. A lane need not be due, nor be known.
func Take(tx Tx, holder string, now, until time.Time, lanes ...Lane) ([]Lane, error) {
	var taken []Lane
	for _, want := range lanes {
		l, found, err := tx.Lane(want.Name)
		if err != nil {
			return nil, err
		}
		if !found {
			l = Lane{Name: want.Name, User: want.User}
		}
		if l.Holder != "" && l.Until.After(now) {
			continue
		}
		l.Holder, l.Until, l.Claim = holder, until, max(now.UnixMicro(), l.Claim+1)
		if err := tx.PutLane(l); err != nil {
			return nil, err
		}
		taken = append(taken, l)
	}
	return taken, nil
}

// Free takes their lanes from holders that are not alive.
func Free(tx Tx, alive func(holder string) bool) error {
	held, err := tx.Held()
	for _, l := range held {
		if err != nil {
			return err
		}
		if !alive(l.Holder) {
			l.Holder, l.Until = "", time.Time{}
			err = tx.PutLane(l)
		}
	}
	return err
}

// Renew makes claims last until a moment, as far as they hold.
func Renew(tx Tx, until time.Time, claims ...Claim) error {
	for _, c := range claims {
		l, found, err := tx.Lane(c.Lane)
		if err == nil && found && l.Claim == c.Number && l.Holder != "" {
			l.Until = until
			err = tx.PutLane(l)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

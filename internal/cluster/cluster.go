// Package cluster lets several processes work on one store: Leases say which of
// them are alive, and Wakes tell the others what one of them has changed. A
// process is a member. It holds a session while its name is the last that claimed
// it in the log and its lease has not ended.
//
// The log decides what is true, and nothing here is needed for it to be: a member
// whose lease ended although it works on finds, with its next append, that the
// session was claimed by another. Leases decide when a session may be taken over.
// A wake that is lost costs time, because every member also asks the index.
package cluster

import (
	"context"
	"errors"
	"slices"
	"time"

	"deckhand/internal/session"
)

// ErrExpired says that a lease has ended, or that there was none.
var ErrExpired = errors.New("the lease has ended")

// Leases say which members are alive. A member is named by a text that no other
// process has or had: a process that was restarted is another member.
// Implementations pass clustertest.
type Leases interface {
	// Hold starts a member's lease, or renews it. A member calls it before it
	// claims its first session.
	Hold(ctx context.Context, member string) error
	// Renew makes a lease last for another Duration from now. If it has ended, the
	// error is ErrExpired: others may have taken over the member's sessions, and
	// Hold starts a new lease.
	Renew(ctx context.Context, member string) error
	// Release ends a lease at once. It is no error if it has ended before.
	Release(ctx context.Context, member string) error
	// Live lists the members whose lease has not ended, sorted. All others are
	// dead. The answer is the one of now, never an older one.
	Live(ctx context.Context) ([]string, error)
	// Duration is how long a lease lasts without Renew; 0 if it never ends by
	// itself, so that it need not be renewed.
	Duration() time.Duration
}

// Others lists the live members without one.
func Others(ctx context.Context, l Leases, member string) ([]string, error) {
	live, err := l.Live(ctx)
	return slices.DeleteFunc(live, func(name string) bool { return name == member }), err
}

// Kind says what a Wake is about.
type Kind string

// The kinds.
const (
	// Grew says that events were appended to a session.
	Grew Kind = "grew"
	// RowChanged says that lists know something new of a session, and who holds it.
	RowChanged Kind = "row_changed"
	// Interrupt asks the holder of a session to look at it at once.
	Interrupt Kind = "interrupt"
	// MemberLeft says that a member has released its lease.
	MemberLeft Kind = "member_left"
	// Take asks one member, To, to work on a session.
	Take Kind = "take"
	// Load announces how many sessions a member works on or has queued, in Last.
	Load Kind = "load"
)

// Wake is what one member tells the others.
type Wake struct {
	Kind Kind
	// From is the member that published it.
	From string
	// Session and Last are the session and its last event; empty for MemberLeft.
	Session session.ID
	Last    int64
	// Owner and Holder are the session's, for RowChanged.
	Owner  string
	Holder string
	// To is the member that a Take is for.
	To string
}

// Wakes carry wakes between members. Implementations pass clustertest.
type Wakes interface {
	// Publish tells all members but w.From. It does not block. A wake reaches each
	// subscriber at most once, those of one member in the order in which they were
	// published; when a subscriber is slow or out of reach, it is lost.
	Publish(w Wake)
	// Subscribe calls handle for the wakes of other members, one after the other,
	// until stop is called. stop waits for handle to return, so handle must not
	// call it. It may be called twice.
	Subscribe(member string, handle func(Wake)) (stop func(), err error)
}

// Announcer publishes what the Sessions of one member append. It is a
// session.Observer and a session.Watcher.
type Announcer struct {
	Wakes  Wakes
	Member string
}

// Appended implements session.Observer.
func (a Announcer) Appended(id session.ID, last int64) {
	a.Wakes.Publish(Wake{Kind: Grew, From: a.Member, Session: id, Last: last})
}

// Changed implements session.Watcher.
func (a Announcer) Changed(r session.Row) {
	a.Wakes.Publish(Wake{Kind: RowChanged, From: a.Member, Session: r.ID, Last: r.Last, Owner: r.Owner, Holder: r.Holder})
}

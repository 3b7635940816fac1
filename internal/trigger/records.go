package trigger

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"time"

	"deckhand/internal/queue"
	"deckhand/internal/session"
)

// Queue is the name of the queue of deliveries.
const Queue = "triggers"

// Database is what a database does for integrations. Times survive to the microsecond.
type Database interface {
	// Update and View are as in queue.Store.
	Update(ctx context.Context, fn func(Tx) error) error
	View(ctx context.Context, fn func(Tx) error) error
}

// Tx is a transaction.
type Tx interface {
	queue.Tx
	Rows
	// SessionOf is the session of a thread, "" if it has none.
	SessionOf(integration string, t Thread) (session.ID, error)
	PutThread(integration string, t Thread, id session.ID) error
}

// Rows are the stored integrations.
type Rows interface {
	// Integrations lists a user's, the oldest first.
	Integrations(user string) ([]Integration, error)
	Integration(id string) (Integration, bool, error)
	// Listening lists the enabled ones with a provider of users who are not disabled, by ID.
	Listening(provider string) ([]Integration, error)
	// PutIntegration stores one, which may be new.
	PutIntegration(in Integration) error
	// RemoveIntegration removes one with its threads.
	RemoveIntegration(id string) error
}

// Records keeps integrations and what comes for them: the rules about them, on any Database.
type Records struct{ db Database }

// NewRecords makes one.
func NewRecords(db Database) *Records { return &Records{db} }

var (
	_ Store = (*Records)(nil)
	_ Inbox = (*Records)(nil)
)

// own reads an integration of a user's.
func own(tx Tx, user, id string) (Integration, error) {
	in, found, err := tx.Integration(id)
	if err == nil && (!found || in.User != user) {
		err = ErrNotFound
	}
	return in, err
}

// AddIntegration implements Store.
func (r *Records) AddIntegration(ctx context.Context, in Integration) error {
	return r.db.Update(ctx, func(tx Tx) error {
		has, err := tx.Integrations(in.User)
		if err != nil {
			return err
		}
		if len(has) >= MaxIntegrations {
			return ErrTooMany
		}
		if err := tx.PutIntegration(in); err != nil {
			return err
		}
		return tx.AddOwner(in.ID, in.User)
	})
}

// Integrations implements Store.
func (r *Records) Integrations(ctx context.Context, user string) (found []Integration, err error) {
	err = r.db.View(ctx, func(tx Tx) (err error) {
		found, err = tx.Integrations(user)
		return err
	})
	return found, err
}

// ChangeIntegration implements Store.
func (r *Records) ChangeIntegration(ctx context.Context, user, id string, at time.Time, change func(*Integration) error) (Integration, error) {
	var changed Integration
	err := r.db.Update(ctx, func(tx Tx) error {
		in, err := own(tx, user, id)
		if err != nil {
			return err
		}
		before := in.ChangedAt
		if err := change(&in); err != nil {
			return err
		}
		in.ChangedAt = queue.Later(at, before)
		changed = in
		return tx.PutIntegration(in)
	})
	if err != nil {
		return Integration{}, err
	}
	return changed, nil
}

// RemoveIntegration implements Store. A conversation's lane may be shared with another
// integration, so lanes are brought up to date and not removed.
func (r *Records) RemoveIntegration(ctx context.Context, user, id string) error {
	return r.db.Update(ctx, func(tx Tx) error {
		in, err := own(tx, user, id)
		if err != nil {
			return err
		}
		open, err := tx.Opened("")
		if err == nil {
			err = tx.RemoveIntegration(id)
		}
		if err == nil {
			err = tx.RemoveOwner(id)
		}
		for _, it := range open {
			if err == nil && it.Owner == id {
				err = queue.Arm(tx, it.Lane, in.User, queue.Gate{})
			}
		}
		return err
	})
}

// Deliveries implements Store.
func (r *Records) Deliveries(ctx context.Context, user, integration string, before int64, limit int) (found []Delivery, err error) {
	if before <= 0 {
		before = math.MaxInt64
	}
	err = r.db.View(ctx, func(tx Tx) error {
		if _, err := own(tx, user, integration); err != nil || limit <= 0 {
			return err
		}
		items, err := tx.Page(integration, before, limit)
		found = deliveriesOf(items)
		return err
	})
	return found, err
}

// Listening implements Inbox.
func (r *Records) Listening(ctx context.Context, provider, id string) (found []Integration, err error) {
	err = r.db.View(ctx, func(tx Tx) (err error) {
		found, err = tx.Listening(provider)
		return err
	})
	if id == "" || err != nil {
		return found, err
	}
	if i := slices.IndexFunc(found, func(in Integration) bool { return in.ID == id }); i >= 0 {
		return found[i : i+1], nil
	}
	return nil, nil
}

// Integration implements Inbox.
func (r *Records) Integration(ctx context.Context, id string) (in Integration, err error) {
	err = r.db.View(ctx, func(tx Tx) error {
		var found bool
		var err error
		if in, found, err = tx.Integration(id); err == nil && !found {
			err = ErrNotFound
		}
		return err
	})
	return in, err
}

// Record implements Inbox.
func (r *Records) Record(ctx context.Context, d Delivery) (fresh bool, err error) {
	err = r.db.Update(ctx, func(tx Tx) error {
		fresh = false
		in, found, err := tx.Integration(d.Integration)
		if err != nil || !found {
			return err
		}
		it, _, added, err := queue.Push(tx, d.item(), in.User, queue.Gate{})
		if fresh = added; err != nil || !added {
			return err
		}
		return tx.Drop(in.ID, it.Seq-KeptDeliveries, d.CreatedAt.Add(-KeptFor))
	})
	if err != nil {
		return false, err
	}
	return fresh, nil
}

// Update implements queue.Store.
func (r *Records) Update(ctx context.Context, fn func(queue.Tx) error) error {
	return r.db.Update(ctx, func(tx Tx) error { return fn(tx) })
}

// View implements queue.Store.
func (r *Records) View(ctx context.Context, fn func(queue.Tx) error) error {
	return r.db.View(ctx, func(tx Tx) error { return fn(tx) })
}

// Next implements Inbox.
func (r *Records) Next(ctx context.Context, lane string, now time.Time) (d Delivery, found bool, err error) {
	err = r.db.View(ctx, func(tx Tx) error {
		var it queue.Item
		var err error
		it, found, err = tx.First(lane)
		if found = found && !it.NextAt.After(now); found {
			d = deliveryOf(it)
		}
		return err
	})
	return d, found, err
}

// AtWork implements Inbox.
func (r *Records) AtWork(ctx context.Context, id session.ID) (found []Delivery, err error) {
	err = r.db.View(ctx, func(tx Tx) error {
		items, err := tx.Opened(string(id))
		found = deliveriesOf(slices.DeleteFunc(items, func(it queue.Item) bool { return it.State != string(Working) }))
		return err
	})
	return found, err
}

// Settle implements Inbox. It does not restore removed records.
func (r *Records) Settle(ctx context.Context, ds ...Delivery) error {
	return r.db.Update(ctx, func(tx Tx) error {
		for _, d := range ds {
			if err := settle(tx, d); err != nil {
				return err
			}
		}
		return nil
	})
}

func settle(tx Tx, d Delivery) error {
	if holds, err := d.Claim.Holds(tx); err != nil || !holds {
		return err
	}
	in, known, err := tx.Integration(d.Integration)
	if err != nil || !known {
		return err
	}
	was, found, err := tx.Find(d.Integration, d.ID)
	if err != nil || !found || was.Seq != d.Seq {
		return err
	}
	is := d.item()
	if _, err := tx.Put(is); err != nil {
		return err
	}
	if d.State == Working {
		if err := tx.PutThread(d.Integration, d.Thread, d.Session); err != nil {
			return err
		}
	}
	err = queue.Arm(tx, was.Lane, in.User, queue.Gate{})
	if err == nil && is.Lane != was.Lane {
		err = queue.Arm(tx, is.Lane, in.User, queue.Gate{})
	}
	return err
}

// SessionOf implements Inbox.
func (r *Records) SessionOf(ctx context.Context, integration string, t Thread) (id session.ID, err error) {
	err = r.db.View(ctx, func(tx Tx) (err error) {
		id, err = tx.SessionOf(integration, t)
		return err
	})
	return id, err
}

// sessionLane is where the deliveries stand that a conversation was told of, before the
// name of the conversation.
const sessionLane = "session "

// lane is what the delivery shares with others that must be dealt with one after the other:
// the issue, and then the conversation.
func (d Delivery) lane() string {
	if d.State == Working {
		return sessionLane + string(d.Session)
	}
	return threadOf(d)
}

// threadOf names the issue or the pull request of a delivery.
func threadOf(d Delivery) string {
	kind := "issue "
	if d.Pull {
		kind = "pull "
	}
	return kind + d.Integration + " " + d.Repository + " " + itoa(d.Number)
}

// details is what the queue keeps of a delivery for us. DoneAt is microseconds since 1970, 0 for none.
type details struct {
	Repository string `json:"repository"`
	Pull       bool   `json:"pull"`
	Number     int    `json:"number"`
	Actor      string `json:"actor"`
	Reason     string `json:"reason"`
	Said       int64  `json:"said"`
	Posting    int64  `json:"posting"`
	DoneAt     int64  `json:"done_at"`
}

// item is the delivery as the queue keeps it.
func (d Delivery) item() queue.Item {
	more := details{Repository: d.Repository, Pull: d.Pull, Number: d.Number, Actor: d.Actor, Reason: d.Reason, Said: d.Said, Posting: d.Posting}
	if !d.DoneAt.IsZero() {
		more.DoneAt = d.DoneAt.UnixMicro()
	}
	b, _ := json.Marshal(more) // texts and numbers can always be written
	return queue.Item{Owner: d.Integration, Seq: d.Seq, ID: d.ID, Print: d.Print, Lane: d.lane(), Session: string(d.Session), Kind: d.Event, State: string(d.State),
		Open: !d.NextAt.IsZero() || d.State == Working, Attempts: d.Attempts, CreatedAt: d.CreatedAt, NextAt: d.NextAt, Body: d.Task, Details: b}
}

func deliveryOf(it queue.Item) Delivery {
	var more details
	_ = json.Unmarshal(it.Details, &more) // ours
	d := Delivery{Integration: it.Owner, Seq: it.Seq, ID: it.ID, Print: it.Print, Event: it.Kind, Actor: more.Actor, CreatedAt: it.CreatedAt,
		Thread: Thread{Repository: more.Repository, Pull: more.Pull, Number: more.Number}, State: State(it.State), Reason: more.Reason, Task: it.Body,
		Session: session.ID(it.Session), Said: more.Said, Posting: more.Posting, Attempts: it.Attempts, NextAt: it.NextAt}
	if more.DoneAt != 0 {
		d.DoneAt = time.UnixMicro(more.DoneAt).UTC()
	}
	return d
}

func deliveriesOf(items []queue.Item) (found []Delivery) {
	for _, it := range items {
		found = append(found, deliveryOf(it))
	}
	return found
}

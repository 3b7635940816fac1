package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"deckhand/internal/queue"
	"deckhand/internal/session"
)

// Queue is the name of the queue of deliveries.
const Queue = "webhooks"

// Database is what a database does for webhooks. Times survive to the microsecond.
type Database interface {
	// Update and View are as in queue.Store.
	Update(ctx context.Context, fn func(Tx) error) error
	View(ctx context.Context, fn func(Tx) error) error
	// Added has a value when something may have become due, after the commit.
	Added() <-chan struct{}
}

// Tx is a transaction.
type Tx interface {
	queue.Tx
	// Webhooks lists a user's, the oldest first. Waiting is not set, here and in Webhook.
	Webhooks(user string) ([]Webhook, error)
	Webhook(id string) (Webhook, bool, error)
	// PutWebhook stores one, which may be new.
	PutWebhook(w Webhook) error
	RemoveWebhook(id string) error
}

// Records keeps webhooks and what they are told: the rules about them, on any Database.
// Each webhook is a lane of the queue.
type Records struct{ db Database }

// NewRecords makes one.
func NewRecords(db Database) *Records { return &Records{db} }

var (
	_ Store      = (*Records)(nil)
	_ Deliveries = (*Records)(nil)
	_ Outbox     = (*Records)(nil)
)

// gate is when the webhook may be sent to.
func (w Webhook) gate() queue.Gate {
	return queue.Gate{Closed: !w.Enabled, NotBefore: w.Health.QuietUntil}
}

// own reads a webhook of a user's.
func own(tx Tx, user, id string) (Webhook, error) {
	w, found, err := tx.Webhook(id)
	if err == nil && (!found || w.User != user) {
		err = ErrNotFound
	}
	return w, err
}

// Tell queues news of a session for the webhooks of its owner that want it. The store calls
// it in the transaction that appends. A webhook for which too much waits is disabled.
func Tell(tx Tx, owner string, id session.ID, news []session.News) error {
	hooks, err := tx.Webhooks(owner)
	if err != nil {
		return err
	}
	for _, n := range news {
		for i := range hooks {
			w := &hooks[i]
			if !w.Enabled || w.Events&Of(n.Kind) == 0 {
				continue
			}
			d := Compose(id, n)
			d.Webhook = w.ID
			_, lane, _, err := queue.Push(tx, d.item(), w.User, w.gate())
			if err != nil {
				return err
			}
			if lane.Waiting < MaxWaiting {
				continue
			}
			w.Enabled, w.Health.Disabled = false, fmt.Sprintf("%d deliveries wait for it", MaxWaiting)
			lane.DueAt = time.Time{}
			if err := tx.PutWebhook(*w); err != nil {
				return err
			}
			if err := tx.PutLane(lane); err != nil {
				return err
			}
		}
	}
	return nil
}

// AddWebhook implements Store.
func (r *Records) AddWebhook(ctx context.Context, w Webhook) error {
	return r.db.Update(ctx, func(tx Tx) error {
		was, known, err := tx.Webhook(w.ID)
		if err != nil {
			return err
		}
		if known && was.User == w.User {
			w.CreatedAt, w.ChangedAt = was.CreatedAt, queue.Later(w.ChangedAt, was.ChangedAt)
			if err := tx.PutWebhook(w); err != nil {
				return err
			}
			return queue.Arm(tx, w.ID, w.User, w.gate())
		}
		has, err := tx.Webhooks(w.User)
		if err != nil {
			return err
		}
		if len(ofKind(has, KindOf(w.ID))) >= MaxWebhooks {
			return ErrTooMany
		}
		if known {
			if err := remove(tx, was); err != nil {
				return err
			}
		}
		if err := tx.PutWebhook(w); err != nil {
			return err
		}
		return tx.AddOwner(w.ID, w.User)
	})
}

// ofKind keeps the receivers of a kind.
func ofKind(all []Webhook, kind Kind) []Webhook {
	return slices.DeleteFunc(all, func(w Webhook) bool { return KindOf(w.ID) != kind })
}

// Webhooks implements Store.
func (r *Records) Webhooks(ctx context.Context, user string, kind Kind) (found []Webhook, err error) {
	err = r.db.View(ctx, func(tx Tx) (err error) {
		found, err = tx.Webhooks(user)
		found = ofKind(found, kind)
		for i := range found {
			if err == nil {
				err = count(tx, &found[i])
			}
		}
		return err
	})
	return found, err
}

// count says how many deliveries wait for a webhook.
func count(tx Tx, w *Webhook) error {
	l, _, err := tx.Lane(w.ID)
	w.Waiting = l.Waiting
	return err
}

// ChangeWebhook implements Store.
func (r *Records) ChangeWebhook(ctx context.Context, user, id string, at time.Time, change func(*Webhook) error) (Webhook, error) {
	var changed Webhook
	err := r.db.Update(ctx, func(tx Tx) error {
		w, err := own(tx, user, id)
		if err != nil {
			return err
		}
		before, failed := w.ChangedAt, w.Health.Failures > 0
		if err := change(&w); err != nil {
			return err
		}
		w.ChangedAt = queue.Later(at, before)
		if err := tx.PutWebhook(w); err != nil {
			return err
		}
		if failed && w.Health.Failures == 0 {
			if err := tx.Advance(id, at); err != nil {
				return err
			}
		}
		if err := queue.Arm(tx, w.ID, w.User, w.gate()); err != nil {
			return err
		}
		if err := count(tx, &w); err != nil {
			return err
		}
		changed = w
		return nil
	})
	if err != nil {
		return Webhook{}, err
	}
	return changed, nil
}

// RemoveWebhook implements Store.
func (r *Records) RemoveWebhook(ctx context.Context, user, id string) error {
	return r.db.Update(ctx, func(tx Tx) error {
		w, err := own(tx, user, id)
		if err != nil {
			return err
		}
		return remove(tx, w)
	})
}

// remove removes a receiver with its deliveries.
func remove(tx Tx, w Webhook) error {
	if err := tx.RemoveWebhook(w.ID); err != nil {
		return err
	}
	if err := tx.RemoveOwner(w.ID); err != nil {
		return err
	}
	return tx.PutLane(queue.Lane{Name: w.ID, User: w.User})
}

// Hasten makes everything due at a moment that waits for a user's browsers and e-mail.
func (r *Records) Hasten(ctx context.Context, user string, at time.Time) error {
	return r.db.Update(ctx, func(tx Tx) error {
		all, err := tx.Webhooks(user)
		for _, w := range all {
			if err == nil && KindOf(w.ID) != KindWebhook {
				if err = tx.Advance(w.ID, at); err == nil {
					err = queue.Arm(tx, w.ID, w.User, w.gate())
				}
			}
		}
		return err
	})
}

// Deliveries implements Deliveries.
func (r *Records) Deliveries(ctx context.Context, user, webhook string, before int64, limit int) (found []Delivery, err error) {
	if before <= 0 {
		before = math.MaxInt64
	}
	err = r.db.View(ctx, func(tx Tx) error {
		if _, err := own(tx, user, webhook); err != nil || limit <= 0 {
			return err
		}
		items, err := tx.Page(webhook, before, limit)
		for _, it := range items {
			found = append(found, deliveryOf(it))
		}
		return err
	})
	return found, err
}

// enabled reads a webhook of a user's that can be sent to.
func enabled(tx Tx, user, id string) (Webhook, error) {
	w, err := own(tx, user, id)
	if err == nil && !w.Enabled {
		err = ErrDisabled
	}
	return w, err
}

// Queue implements Deliveries.
func (r *Records) Queue(ctx context.Context, user string, d Delivery) (Delivery, error) {
	var queued queue.Item
	err := r.db.Update(ctx, func(tx Tx) error {
		w, err := enabled(tx, user, d.Webhook)
		if err != nil {
			return err
		}
		queued, _, _, err = queue.Push(tx, d.item(), w.User, w.gate())
		return err
	})
	if err != nil {
		return Delivery{}, err
	}
	return deliveryOf(queued), nil
}

// Requeue implements Deliveries.
func (r *Records) Requeue(ctx context.Context, user, webhook, id string, at time.Time) (Delivery, error) {
	var queued Delivery
	err := r.db.Update(ctx, func(tx Tx) error {
		w, err := enabled(tx, user, webhook)
		if err != nil {
			return err
		}
		it, found, err := tx.Find(webhook, id)
		if err == nil && !found {
			err = ErrNotFound
		}
		if err != nil {
			return err
		}
		d := deliveryOf(it)
		d.State, d.Attempts, d.NextAt = Waiting, 0, at
		if _, err := tx.Put(d.item()); err != nil {
			return err
		}
		queued = d
		return queue.Arm(tx, w.ID, w.User, w.gate())
	})
	if err != nil {
		return Delivery{}, err
	}
	return queued, nil
}

// Update implements queue.Store.
func (r *Records) Update(ctx context.Context, fn func(queue.Tx) error) error {
	return r.db.Update(ctx, func(tx Tx) error { return fn(tx) })
}

// View implements queue.Store.
func (r *Records) View(ctx context.Context, fn func(queue.Tx) error) error {
	return r.db.View(ctx, func(tx Tx) error { return fn(tx) })
}

// Next implements Outbox.
func (r *Records) Next(ctx context.Context, webhook string, now time.Time) (w Webhook, d Delivery, found bool, err error) {
	err = r.db.View(ctx, func(tx Tx) error {
		var err error
		if w, found, err = tx.Webhook(webhook); err != nil || !found || !w.Enabled {
			found = false
			return err
		}
		var it queue.Item
		it, found, err = tx.First(webhook)
		if found = found && !it.NextAt.After(now); found {
			d = deliveryOf(it)
		}
		return err
	})
	return w, d, found, err
}

// Settle implements Outbox. It does not restore removed records.
func (r *Records) Settle(ctx context.Context, w Webhook, d Delivery) error {
	return r.db.Update(ctx, func(tx Tx) error {
		if holds, err := d.Claim.Holds(tx); err != nil || !holds {
			return err
		}
		is, found, err := tx.Webhook(w.ID)
		if err != nil || !found {
			return err
		}
		if is.Enabled && is.ChangedAt.Equal(w.ChangedAt) {
			is.Enabled, is.Health = w.Enabled, w.Health
			if err := tx.PutWebhook(is); err != nil {
				return err
			}
		}
		if _, err := tx.Put(d.item()); err != nil {
			return err
		}
		last, err := tx.Last(w.ID)
		if err == nil {
			err = tx.Drop(w.ID, last-KeptDeliveries, forEver)
		}
		if err == nil {
			err = queue.Arm(tx, is.ID, is.User, is.gate())
		}
		if err == nil {
			err = d.Claim.Release(tx)
		}
		return err
	})
}

// forEver is after everything.
var forEver = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// trimPiece is how many are removed in one go: others write in between.
const trimPiece = 1000

// Trim implements Outbox.
func (r *Records) Trim(ctx context.Context, before time.Time) error {
	for {
		var seen int
		err := r.db.Update(ctx, func(tx Tx) error {
			old, err := tx.Older(before, trimPiece)
			seen = len(old)
			touched := map[string]bool{}
			for _, it := range old {
				if err == nil {
					touched[it.Owner], err = true, tx.Remove(it)
				}
			}
			for id := range touched {
				if err != nil {
					return err
				}
				var w Webhook
				if w, _, err = tx.Webhook(id); err == nil {
					err = queue.Arm(tx, id, w.User, w.gate())
				}
			}
			return err
		})
		if err != nil || seen < trimPiece {
			return err
		}
	}
}

// Added implements Outbox.
func (r *Records) Added() <-chan struct{} { return r.db.Added() }

// details is what the queue keeps of a delivery for us. Times are microseconds since 1970, 0 for none.
type details struct {
	Event  int64  `json:"event"`
	LastAt int64  `json:"last_at"`
	Took   int64  `json:"took"`
	Status int    `json:"status"`
	Error  string `json:"error"`
}

// item is the delivery as the queue keeps it.
func (d Delivery) item() queue.Item {
	more := details{Event: d.Event, Took: d.Took.Microseconds(), Status: d.Status, Error: d.Error}
	if !d.LastAt.IsZero() {
		more.LastAt = d.LastAt.UnixMicro()
	}
	b, _ := json.Marshal(more) // texts and numbers can always be written
	return queue.Item{Owner: d.Webhook, Seq: d.Seq, ID: d.ID, Lane: d.Webhook, Session: string(d.Session), Kind: d.Type, State: string(d.State),
		Open: !d.NextAt.IsZero(), Attempts: d.Attempts, CreatedAt: d.CreatedAt, NextAt: d.NextAt, Body: d.Body, Details: b}
}

func deliveryOf(it queue.Item) Delivery {
	var more details
	_ = json.Unmarshal(it.Details, &more) // ours
	d := Delivery{ID: it.ID, Seq: it.Seq, Webhook: it.Owner, Type: it.Kind, Session: session.ID(it.Session), Event: more.Event, Body: it.Body, CreatedAt: it.CreatedAt,
		State: State(it.State), Attempts: it.Attempts, NextAt: it.NextAt, Took: time.Duration(more.Took) * time.Microsecond, Status: more.Status, Error: more.Error}
	if more.LastAt != 0 {
		d.LastAt = time.UnixMicro(more.LastAt).UTC()
	}
	return d
}

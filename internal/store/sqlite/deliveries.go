package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"time"

	"deckhand/internal/notify"
	"deckhand/internal/session"
)

const selectDelivery = `SELECT webhook, seq, id, type, session, event, body, created_at, state, attempts, next_at, last_at, took, status, error FROM deliveries`

func deliveryOf(v []driver.Value) notify.Delivery {
	return notify.Delivery{
		Webhook: text(v[0]), Seq: number(v[1]), ID: text(v[2]), Type: text(v[3]), Session: session.ID(text(v[4])), Event: number(v[5]),
		Body: bytesOf(v[6]), CreatedAt: moment(v[7]), State: notify.State(text(v[8])), Attempts: int(number(v[9])),
		NextAt: maybe(v[10]), LastAt: maybe(v[11]), Took: time.Duration(number(v[12])) * time.Microsecond, Status: int(number(v[13])), Error: text(v[14]),
	}
}

// Deliveries implements notify.Deliveries. It stops reading by itself in place
// of a LIMIT, which costs a statement per value.
func (s Webhooks) Deliveries(ctx context.Context, user, webhook string, before int64, limit int) (found []notify.Delivery, err error) {
	if before <= 0 {
		before = 1<<63 - 1
	}
	err = s.db.readers.read(ctx, func(c *conn) error {
		if _, err := s.of(c, user, webhook); err != nil {
			return err
		}
		if limit <= 0 {
			return nil
		}
		return c.query(selectDelivery+" WHERE webhook = ? AND seq < ? ORDER BY seq DESC", func(v []driver.Value) error {
			if found = append(found, deliveryOf(v)); len(found) == limit {
				return enough
			}
			return nil
		}, webhook, before)
	})
	return found, err
}

// Queue implements notify.Deliveries.
func (s Webhooks) Queue(ctx context.Context, user string, d notify.Delivery) (notify.Delivery, error) {
	return s.queue(ctx, user, d.Webhook, d.ID, func(c *conn) error {
		at := micros(d.CreatedAt)
		_, err := c.exec(insertDelivery+"w.id = ?", d.ID, d.Type, string(d.Session), d.Event, d.Body, at, at, d.Webhook)
		return err
	})
}

// Requeue implements notify.Deliveries.
func (s Webhooks) Requeue(ctx context.Context, user, webhook, id string, at time.Time) (notify.Delivery, error) {
	return s.queue(ctx, user, webhook, id, func(c *conn) error {
		changed, err := c.exec("UPDATE deliveries SET state = 'waiting', attempts = 0, next_at = ? WHERE webhook = ? AND id = ?", micros(at), webhook, id)
		if err == nil && changed == 0 {
			err = refuse(notify.ErrNotFound)
		}
		return err
	})
}

// queue makes a delivery of an enabled webhook due, and returns it.
func (s Webhooks) queue(ctx context.Context, user, webhook, id string, do func(*conn) error) (notify.Delivery, error) {
	var queued notify.Delivery
	err := s.db.write(ctx, 0, func(c *conn) error {
		w, err := s.of(c, user, webhook)
		switch {
		case errors.Is(err, notify.ErrNotFound):
			return refuse(err)
		case err != nil:
			return err
		case !w.Enabled:
			return refuse(notify.ErrDisabled)
		}
		if err := do(c); err != nil {
			return err
		}
		if _, err := c.exec(rearm, webhook); err != nil {
			return err
		}
		s.db.outbox.fresh = true
		_, err = c.one(selectDelivery+" WHERE webhook = ? AND id = ?", func(v []driver.Value) { queued = deliveryOf(v) }, webhook, id)
		return err
	})
	if err != nil {
		return notify.Delivery{}, err
	}
	return queued, nil
}

// ofActive are the webhooks that are served. The first condition is that of the index.
const ofActive = " FROM webhooks WHERE enabled = 1 AND due_at IS NOT NULL AND EXISTS (SELECT 1 FROM users WHERE name = user AND disabled = 0)"

// Due implements notify.Outbox.
func (s Webhooks) Due(ctx context.Context, now time.Time, limit int) (due []notify.Ready, next time.Time, err error) {
	err = s.db.readers.read(ctx, func(c *conn) error {
		err := c.query("SELECT id, user"+ofActive+" AND due_at <= ? ORDER BY due_at", func(v []driver.Value) error {
			if len(due) == limit {
				return enough
			}
			due = append(due, notify.Ready{Webhook: text(v[0]), User: text(v[1])})
			return nil
		}, micros(now))
		if err != nil {
			return err
		}
		_, err = c.one("SELECT due_at"+ofActive+" AND due_at > ? ORDER BY due_at", func(v []driver.Value) { next = moment(v[0]) }, micros(now))
		return err
	})
	return due, next, err
}

// Next implements notify.Outbox.
func (s Webhooks) Next(ctx context.Context, webhook string, now time.Time) (w notify.Webhook, d notify.Delivery, found bool, err error) {
	err = s.db.readers.read(ctx, func(c *conn) error {
		there, err := c.one(selectWebhook+" WHERE id = ? AND enabled = 1", func(v []driver.Value) { w = webhookOf(v) }, webhook)
		if err != nil || !there {
			return err
		}
		found, err = c.one(selectDelivery+" WHERE webhook = ? AND next_at IS NOT NULL AND next_at <= ? ORDER BY next_at, seq",
			func(v []driver.Value) { d = deliveryOf(v) }, webhook, micros(now))
		return err
	})
	return w, d, found, err
}

// Settle implements notify.Outbox. What was removed meanwhile stays removed.
func (s Webhooks) Settle(ctx context.Context, w notify.Webhook, d notify.Delivery) error {
	return s.db.write(ctx, 0, func(c *conn) error {
		_, err := c.exec("UPDATE deliveries SET state = ?, attempts = ?, next_at = ?, last_at = ?, took = ?, status = ?, error = ? WHERE webhook = ? AND seq = ? AND id = ?",
			string(d.State), int64(d.Attempts), orNull(d.NextAt), orNull(d.LastAt), d.Took.Microseconds(), int64(d.Status), d.Error, d.Webhook, d.Seq, d.ID)
		if err != nil {
			return err
		}
		h := w.Health
		_, err = c.exec("UPDATE webhooks SET enabled = ?, failures = ?, failing_since = ?, quiet_until = ?, disabled = ? WHERE id = ? AND changed_at = ? AND enabled = 1",
			truth(w.Enabled), int64(h.Failures), orNull(h.FailingSince), orZero(h.QuietUntil), h.Disabled, w.ID, micros(w.ChangedAt))
		if err != nil {
			return err
		}
		_, err = c.exec(`DELETE FROM deliveries WHERE webhook = ?1 AND next_at IS NULL
			AND seq <= (SELECT max(seq) FROM deliveries WHERE webhook = ?1) - ?2`, w.ID, int64(notify.KeptDeliveries))
		if err == nil {
			_, err = c.exec(rearm, w.ID)
		}
		return err
	})
}

// trimPiece is how many are removed in one go: others write in between.
const trimPiece = 1000

// Trim implements notify.Outbox.
func (s Webhooks) Trim(ctx context.Context, before time.Time) error {
	for {
		var seen int
		err := s.db.write(ctx, 0, func(c *conn) error {
			seen = 0
			webhooks, last := map[string]bool{}, int64(0)
			err := c.query("SELECT webhook, created_at FROM deliveries WHERE created_at < ? ORDER BY created_at LIMIT 1000", func(v []driver.Value) error {
				webhooks[text(v[0])], last = true, number(v[1])
				seen++
				return nil
			}, micros(before))
			if err != nil || seen == 0 {
				return err
			}
			if _, err := c.exec("DELETE FROM deliveries WHERE created_at <= ?", last); err != nil {
				return err
			}
			for id := range webhooks {
				if _, err := c.exec(rearm, id); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || seen < trimPiece {
			return err
		}
	}
}

// Added implements notify.Outbox.
func (s Webhooks) Added() <-chan struct{} { return s.db.outbox.added }

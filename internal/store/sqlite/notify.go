package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"time"

	"deckhand/internal/notify"
	"deckhand/internal/store"
)

// Webhooks is the store of webhooks and of what they are told.
func (db *DB) Webhooks() store.Webhooks { return Webhooks{db} }

// Webhooks has a type of its own because its methods have general names.
type Webhooks struct{ db *DB }

var (
	_ notify.Store      = Webhooks{}
	_ notify.Deliveries = Webhooks{}
	_ notify.Outbox     = Webhooks{}
)

// change makes a change after which other users may listen.
func (s Webhooks) change(ctx context.Context, size int, do func(*conn) error) error {
	return s.db.write(ctx, size, func(c *conn) error {
		s.db.outbox.users, s.db.outbox.fresh = nil, true
		return do(c)
	})
}

const selectWebhook = `SELECT id, user, description, events, enabled, target, created_at, changed_at,
	failures, failing_since, quiet_until, disabled, waiting FROM webhooks`

func webhookOf(v []driver.Value) notify.Webhook {
	return notify.Webhook{
		ID: text(v[0]), User: text(v[1]), Description: text(v[2]), Events: notify.Events(number(v[3])), Enabled: number(v[4]) != 0,
		Sealed: bytesOf(v[5]), CreatedAt: moment(v[6]), ChangedAt: moment(v[7]),
		Health:  notify.Health{Failures: int(number(v[8])), FailingSince: maybe(v[9]), QuietUntil: sometime(number(v[10])), Disabled: text(v[11])},
		Waiting: int(number(v[12])),
	}
}

// maybe is a time that is zero if it is NULL, and orNull the reverse.
func maybe(v driver.Value) time.Time {
	if v == nil {
		return time.Time{}
	}
	return moment(v)
}

func orNull(t time.Time) driver.Value {
	if t.IsZero() {
		return nil
	}
	return micros(t)
}

// sometime is a time that is zero if the number is 0, and orZero the reverse.
func sometime(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return moment(n)
}

func orZero(t time.Time) driver.Value {
	if t.IsZero() {
		return int64(0)
	}
	return micros(t)
}

// AddWebhook implements notify.Store.
func (s Webhooks) AddWebhook(ctx context.Context, w notify.Webhook) error {
	return s.change(ctx, len(w.Sealed), func(c *conn) error {
		var has int64
		_, err := c.one("SELECT count(*) FROM webhooks WHERE user = ?", func(v []driver.Value) { has = number(v[0]) }, w.User)
		if err != nil {
			return err
		}
		if has >= notify.MaxWebhooks {
			return refuse(notify.ErrTooMany)
		}
		h := w.Health
		_, err = c.exec(`INSERT INTO webhooks (id, user, description, events, enabled, target, created_at, changed_at,
			failures, failing_since, quiet_until, disabled, waiting) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)`,
			w.ID, w.User, w.Description, int64(w.Events), truth(w.Enabled), w.Sealed, micros(w.CreatedAt), micros(w.ChangedAt),
			int64(h.Failures), orNull(h.FailingSince), orZero(h.QuietUntil), h.Disabled)
		return err
	})
}

// Webhooks implements notify.Store.
func (s Webhooks) Webhooks(ctx context.Context, user string) (found []notify.Webhook, err error) {
	err = s.db.readers.read(ctx, func(c *conn) error {
		return c.query(selectWebhook+" WHERE user = ? ORDER BY created_at, id", func(v []driver.Value) error {
			found = append(found, webhookOf(v))
			return nil
		}, user)
	})
	return found, err
}

// of reads a webhook of a user's.
func (s Webhooks) of(c *conn, user, id string) (w notify.Webhook, err error) {
	found, err := c.one(selectWebhook+" WHERE id = ?", func(v []driver.Value) { w = webhookOf(v) }, id)
	if err == nil && (!found || w.User != user) {
		err = notify.ErrNotFound
	}
	return w, err
}

// rearm brings what a webhook's row says of its deliveries up to date.
const rearm = `UPDATE webhooks SET
	due_at = max(quiet_until, (SELECT min(next_at) FROM deliveries WHERE webhook = webhooks.id AND next_at IS NOT NULL)),
	waiting = (SELECT count(*) FROM deliveries WHERE webhook = webhooks.id AND next_at IS NOT NULL) WHERE id = ?`

// ChangeWebhook implements notify.Store.
func (s Webhooks) ChangeWebhook(ctx context.Context, user, id string, at time.Time, change func(*notify.Webhook) error) (notify.Webhook, error) {
	var changed notify.Webhook
	err := s.change(ctx, 0, func(c *conn) error {
		w, err := s.of(c, user, id)
		if errors.Is(err, notify.ErrNotFound) {
			return refuse(err)
		}
		if err != nil {
			return err
		}
		before, failed := w.ChangedAt, w.Health.Failures > 0
		if err := change(&w); err != nil {
			return refuse(err)
		}
		if w.ChangedAt = at.UTC().Truncate(time.Microsecond); !w.ChangedAt.After(before) {
			w.ChangedAt = before.Add(time.Microsecond)
		}
		h := w.Health
		_, err = c.exec(`UPDATE webhooks SET description = ?, events = ?, enabled = ?, target = ?, changed_at = ?,
			failures = ?, failing_since = ?, quiet_until = ?, disabled = ? WHERE id = ?`,
			w.Description, int64(w.Events), truth(w.Enabled), w.Sealed, micros(w.ChangedAt),
			int64(h.Failures), orNull(h.FailingSince), orZero(h.QuietUntil), h.Disabled, id)
		if err == nil && failed && h.Failures == 0 {
			_, err = c.exec("UPDATE deliveries SET next_at = ? WHERE webhook = ? AND next_at > ?", micros(at), id, micros(at))
		}
		if err == nil {
			_, err = c.exec(rearm, id)
		}
		changed = w
		return err
	})
	if err != nil {
		return notify.Webhook{}, err
	}
	return changed, nil
}

// RemoveWebhook implements notify.Store. The deliveries go with it.
func (s Webhooks) RemoveWebhook(ctx context.Context, user, id string) error {
	return s.change(ctx, 0, func(c *conn) error {
		removed, err := c.exec("DELETE FROM webhooks WHERE id = ? AND user = ?", id, user)
		if err == nil && removed == 0 {
			err = refuse(notify.ErrNotFound)
		}
		return err
	})
}

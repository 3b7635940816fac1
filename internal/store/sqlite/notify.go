package sqlite

import (
	"context"
	"database/sql/driver"
	"time"

	"deckhand/internal/notify"
)

// Webhooks implements store.Backend.
func (db *DB) Webhooks() *notify.Records { return notify.NewRecords(webhooks{db}) }

// webhooks is what notify needs of a database.
type webhooks struct{ db *DB }

var (
	_ notify.Database = webhooks{}
	_ notify.Tx       = tx{}
)

// Update implements notify.Database.
func (w webhooks) Update(ctx context.Context, fn func(notify.Tx) error) error {
	return w.db.update(ctx, notify.Queue, 0, func(t tx) error { return fn(t) })
}

// View implements notify.Database.
func (w webhooks) View(ctx context.Context, fn func(notify.Tx) error) error {
	return w.db.view(ctx, notify.Queue, func(t tx) error { return fn(t) })
}

// Added implements notify.Database.
func (w webhooks) Added() <-chan struct{} { return w.db.news.of(notify.Queue) }

// tell queues the batch's news for the webhooks of its owner, in the transaction
// that appends.
func (a *appending) tell(c *conn) error {
	if len(a.batch.News) == 0 {
		return nil
	}
	if f, err := c.facts(); err != nil || !f.webhooks {
		return err
	}
	return notify.Tell(tx{c: c, db: a.db, queue: notify.Queue, wrote: new(bool)}, a.batch.Row.Owner, a.batch.ID, a.batch.News)
}

const selectWebhook = `SELECT id, user, description, events, enabled, target, created_at, changed_at,
	failures, failing_since, quiet_until, disabled FROM webhooks`

func webhookOf(v []driver.Value) notify.Webhook {
	return notify.Webhook{
		ID: text(v[0]), User: text(v[1]), Description: text(v[2]), Events: notify.Events(number(v[3])), Enabled: number(v[4]) != 0,
		Sealed: bytesOf(v[5]), CreatedAt: moment(v[6]), ChangedAt: moment(v[7]),
		Health: notify.Health{Failures: int(number(v[8])), FailingSince: maybe(v[9]), QuietUntil: sometime(number(v[10])), Disabled: text(v[11])},
	}
}

// Webhooks implements notify.Tx.
func (t tx) Webhooks(user string) (found []notify.Webhook, err error) {
	err = t.c.query(selectWebhook+" WHERE user = ? ORDER BY created_at, id", func(v []driver.Value) error {
		found = append(found, webhookOf(v))
		return nil
	}, user)
	return found, err
}

// Webhook implements notify.Tx.
func (t tx) Webhook(id string) (w notify.Webhook, found bool, err error) {
	found, err = t.c.one(selectWebhook+" WHERE id = ?", func(v []driver.Value) { w = webhookOf(v) }, id)
	return w, found, err
}

// PutWebhook implements notify.Tx.
func (t tx) PutWebhook(w notify.Webhook) error {
	h := w.Health
	t.c.forgetFacts()
	_, err := t.exec(`INSERT OR REPLACE INTO webhooks (id, user, description, events, enabled, target, created_at, changed_at, failures, failing_since, quiet_until, disabled)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, w.ID, w.User, w.Description, int64(w.Events), truth(w.Enabled), w.Sealed, micros(w.CreatedAt), micros(w.ChangedAt),
		int64(h.Failures), orNull(h.FailingSince), orZero(h.QuietUntil), h.Disabled)
	return err
}

// RemoveWebhook implements notify.Tx.
func (t tx) RemoveWebhook(id string) error {
	_, err := t.exec("DELETE FROM webhooks WHERE id = ?", id)
	return err
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

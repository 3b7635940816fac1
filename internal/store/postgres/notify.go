package postgres

import (
	"context"
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
	return w.db.update(ctx, notify.Queue, func(t tx) error { return fn(t) })
}

// View implements notify.Database.
func (w webhooks) View(ctx context.Context, fn func(notify.Tx) error) error {
	return w.db.view(ctx, notify.Queue, func(t tx) error { return fn(t) })
}

// Added implements notify.Database.
func (w webhooks) Added() <-chan struct{} { return w.db.news.of(notify.Queue) }

const selectWebhook = `SELECT id, username, description, events, enabled, target, created_at, changed_at,
	failures, failing_since, quiet_until, disabled FROM deckhand.webhooks`

func webhookOf(v []any) notify.Webhook {
	return notify.Webhook{
		ID: text(v[0]), User: text(v[1]), Description: text(v[2]), Events: notify.Events(number(v[3])), Enabled: truth(v[4]),
		Sealed: bytesOf(v[5]), CreatedAt: moment(v[6]), ChangedAt: moment(v[7]),
		Health: notify.Health{Failures: int(number(v[8])), FailingSince: maybe(v[9]), QuietUntil: sometime(number(v[10])), Disabled: text(v[11])},
	}
}

// Webhooks implements notify.Tx.
func (t tx) Webhooks(user string) (found []notify.Webhook, err error) {
	err = t.c.query(selectWebhook+" WHERE username = $1 ORDER BY created_at, id", func(v []any) error {
		found = append(found, webhookOf(v))
		return nil
	}, user)
	return found, err
}

// Webhook implements notify.Tx.
func (t tx) Webhook(id string) (w notify.Webhook, found bool, err error) {
	found, err = t.c.one(selectWebhook+" WHERE id = $1", func(v []any) { w = webhookOf(v) }, id)
	return w, found, err
}

// PutWebhook implements notify.Tx.
func (t tx) PutWebhook(w notify.Webhook) error {
	h := w.Health
	_, err := t.c.exec(`INSERT INTO deckhand.webhooks (id, username, description, events, enabled, target, created_at, changed_at, failures, failing_since, quiet_until, disabled)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
		ON CONFLICT (id) DO UPDATE SET username = excluded.username, description = excluded.description, events = excluded.events, enabled = excluded.enabled,
		target = excluded.target, created_at = excluded.created_at, changed_at = excluded.changed_at, failures = excluded.failures,
		failing_since = excluded.failing_since, quiet_until = excluded.quiet_until, disabled = excluded.disabled`, w.ID, w.User, w.Description, int64(w.Events), w.Enabled, w.Sealed, micros(w.CreatedAt), micros(w.ChangedAt),
		int64(h.Failures), orNull(h.FailingSince), orZero(h.QuietUntil), h.Disabled)
	return err
}

// RemoveWebhook implements notify.Tx.
func (t tx) RemoveWebhook(id string) error {
	_, err := t.c.exec("DELETE FROM deckhand.webhooks WHERE id = $1", id)
	return err
}

// sometime is a time that is zero if the number is 0, and orZero the reverse.
func sometime(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return moment(n)
}

func orZero(t time.Time) any {
	if t.IsZero() {
		return int64(0)
	}
	return micros(t)
}

package records

import (
	"context"
	"time"

	"deckhand/internal/notify"
	"deckhand/internal/store/postgres/pg"
)

// Webhooks implements store.Backend.
func (s *Store) Webhooks() *notify.Records { return notify.NewRecords(webhooks{s}) }

// webhooks is what notify needs of a database.
type webhooks struct{ s *Store }

var (
	_ notify.Database = webhooks{}
	_ notify.Tx       = Tx{}
)

// Update implements notify.Database.
func (w webhooks) Update(ctx context.Context, fn func(notify.Tx) error) error {
	return w.s.update(ctx, notify.Queue, func(t Tx) error { return fn(t) })
}

// View implements notify.Database.
func (w webhooks) View(ctx context.Context, fn func(notify.Tx) error) error {
	return w.s.view(ctx, notify.Queue, func(t Tx) error { return fn(t) })
}

// Added implements notify.Database.
func (w webhooks) Added() <-chan struct{} { return w.s.DB.Added.Of(notify.Queue) }

const selectWebhook = `SELECT id, username, description, events, enabled, target, created_at, changed_at,
	failures, failing_since, quiet_until, disabled FROM deckhand.webhooks`

func (t Tx) webhookOf(v []any) notify.Webhook {
	return notify.Webhook{
		ID: pg.Text(v[0]), User: pg.Text(v[1]), Description: pg.Text(v[2]), Events: notify.Events(pg.Number(v[3])), Enabled: pg.Truth(v[4]),
		Sealed: pg.Bytes(v[5]), CreatedAt: pg.Moment(v[6]), ChangedAt: pg.Moment(v[7]),
		Health: notify.Health{Failures: int(pg.Number(v[8])), FailingSince: pg.OptionalTime(v[9]), QuietUntil: t.sometime(v[10]), Disabled: pg.Text(v[11])},
	}
}

// Webhooks implements notify.Tx.
func (t Tx) Webhooks(user string) (found []notify.Webhook, err error) {
	err = t.c.Query(selectWebhook+" WHERE username = $1 ORDER BY created_at, id", func(v []any) error {
		found = append(found, t.webhookOf(v))
		return nil
	}, user)
	return found, err
}

// Webhook implements notify.Tx.
func (t Tx) Webhook(id string) (w notify.Webhook, found bool, err error) {
	found, err = t.c.One(selectWebhook+" WHERE id = $1", func(v []any) { w = t.webhookOf(v) }, id)
	return w, found, err
}

// PutWebhook implements notify.Tx.
func (t Tx) PutWebhook(w notify.Webhook) error {
	h := w.Health
	_, err := t.c.Exec(`INSERT INTO deckhand.webhooks (id, username, description, events, enabled, target, created_at, changed_at, failures, failing_since, quiet_until, disabled)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
		ON CONFLICT (id) DO UPDATE SET username = excluded.username, description = excluded.description, events = excluded.events, enabled = excluded.enabled,
		target = excluded.target, created_at = excluded.created_at, changed_at = excluded.changed_at, failures = excluded.failures,
		failing_since = excluded.failing_since, quiet_until = excluded.quiet_until, disabled = excluded.disabled`, w.ID, w.User, w.Description, int64(w.Events), w.Enabled, w.Sealed, pg.Micros(w.CreatedAt), pg.Micros(w.ChangedAt),
		int64(h.Failures), pg.OrNull(h.FailingSince), t.orZero(h.QuietUntil), h.Disabled)
	return err
}

// RemoveWebhook implements notify.Tx.
func (t Tx) RemoveWebhook(id string) error {
	_, err := t.c.Exec("DELETE FROM deckhand.webhooks WHERE id = $1", id)
	return err
}

// sometime converts a stored time, 0 to the zero time. orZero is the reverse.
func (t Tx) sometime(v any) time.Time {
	if pg.Number(v) == 0 {
		return time.Time{}
	}
	return t.moment(v)
}

func (t Tx) orZero(at time.Time) any {
	if at.IsZero() {
		return int64(0)
	}
	return t.stored(at)
}

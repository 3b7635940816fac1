package postgres

import (
	"context"
	"encoding/json"

	"deckhand/internal/session"
	"deckhand/internal/trigger"
)

// Triggers implements store.Backend.
func (db *DB) Triggers() *trigger.Records { return trigger.NewRecords(triggers{db}) }

// triggers is what trigger needs of a database.
type triggers struct{ db *DB }

var (
	_ trigger.Database = triggers{}
	_ trigger.Tx       = tx{}
)

// Update implements trigger.Database.
func (s triggers) Update(ctx context.Context, fn func(trigger.Tx) error) error {
	return s.db.update(ctx, trigger.Queue, func(t tx) error { return fn(t) })
}

// View implements trigger.Database.
func (s triggers) View(ctx context.Context, fn func(trigger.Tx) error) error {
	return s.db.view(ctx, trigger.Queue, func(t tx) error { return fn(t) })
}

const selectIntegration = `SELECT id, username, provider, host, mention, label, repositories, allowed_users, enabled, secret, created_at, changed_at FROM deckhand.integrations`

func integrationOf(v []any) trigger.Integration {
	return trigger.Integration{ID: text(v[0]), User: text(v[1]), Provider: text(v[2]), Host: text(v[3]), Mention: text(v[4]), Label: text(v[5]),
		Repositories: namesOf(v[6]), AllowedUsers: namesOf(v[7]), Enabled: truth(v[8]), Sealed: bytesOf(v[9]), CreatedAt: moment(v[10]), ChangedAt: moment(v[11])}
}

// namesOf reads a list that names wrote.
func namesOf(v any) (out []string) {
	_ = json.Unmarshal([]byte(text(v)), &out)
	return out
}

func names(list []string) any {
	b, _ := json.Marshal(list) // strings can always be written
	return string(b)
}

// Integrations implements trigger.Tx.
func (t tx) Integrations(user string) ([]trigger.Integration, error) {
	return t.integrations(" WHERE username = $1 ORDER BY created_at, id", user)
}

// Listening implements trigger.Tx.
func (t tx) Listening(provider string) ([]trigger.Integration, error) {
	return t.integrations(" WHERE provider = $1 AND enabled AND EXISTS (SELECT FROM deckhand.users u WHERE u.name = username AND NOT u.disabled) ORDER BY id", provider)
}

func (t tx) integrations(where string, args ...any) (found []trigger.Integration, err error) {
	err = t.c.query(selectIntegration+where, func(v []any) error {
		found = append(found, integrationOf(v))
		return nil
	}, args...)
	return found, err
}

// Integration implements trigger.Tx.
func (t tx) Integration(id string) (in trigger.Integration, found bool, err error) {
	found, err = t.c.one(selectIntegration+" WHERE id = $1", func(v []any) { in = integrationOf(v) }, id)
	return in, found, err
}

// PutIntegration implements trigger.Tx. It does not replace the row: threads would go with it.
func (t tx) PutIntegration(in trigger.Integration) error {
	_, err := t.c.exec(`INSERT INTO deckhand.integrations (id, username, provider, host, mention, label, repositories, allowed_users, enabled, secret, created_at, changed_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (id) DO UPDATE SET host = excluded.host, mention = excluded.mention, label = excluded.label,
		repositories = excluded.repositories, allowed_users = excluded.allowed_users, enabled = excluded.enabled, secret = excluded.secret, changed_at = excluded.changed_at`,
		in.ID, in.User, in.Provider, in.Host, in.Mention, in.Label, names(in.Repositories), names(in.AllowedUsers), in.Enabled, in.Sealed, micros(in.CreatedAt), micros(in.ChangedAt))
	return err
}

// RemoveIntegration implements trigger.Tx. The threads go with it.
func (t tx) RemoveIntegration(id string) error {
	_, err := t.c.exec("DELETE FROM deckhand.integrations WHERE id = $1", id)
	return err
}

// SessionOf implements trigger.Tx.
func (t tx) SessionOf(integration string, h trigger.Thread) (id session.ID, err error) {
	_, err = t.c.one("SELECT session FROM deckhand.threads WHERE integration = $1 AND repository = $2 AND pull = $3 AND number = $4", func(v []any) { id = session.ID(text(v[0])) },
		integration, h.Repository, h.Pull, int64(h.Number))
	return id, err
}

// PutThread implements trigger.Tx.
func (t tx) PutThread(integration string, h trigger.Thread, id session.ID) error {
	_, err := t.c.exec("INSERT INTO deckhand.threads (integration, repository, pull, number, session) VALUES ($1, $2, $3, $4, $5) "+
		"ON CONFLICT (integration, repository, pull, number) DO UPDATE SET session = excluded.session",
		integration, h.Repository, h.Pull, int64(h.Number), string(id))
	return err
}

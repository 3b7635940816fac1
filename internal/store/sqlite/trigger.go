package sqlite

import (
	"context"
	"database/sql/driver"
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
	return s.db.update(ctx, trigger.Queue, 0, func(t tx) error { return fn(t) })
}

// View implements trigger.Database.
func (s triggers) View(ctx context.Context, fn func(trigger.Tx) error) error {
	return s.db.view(ctx, trigger.Queue, func(t tx) error { return fn(t) })
}

const selectIntegration = `SELECT id, user, provider, host, mention, label, repositories, allowed_users, enabled, secret, created_at, changed_at FROM integrations`

func integrationOf(v []driver.Value) trigger.Integration {
	return trigger.Integration{ID: text(v[0]), User: text(v[1]), Provider: text(v[2]), Host: text(v[3]), Mention: text(v[4]), Label: text(v[5]),
		Repositories: namesOf(v[6]), AllowedUsers: namesOf(v[7]), Enabled: number(v[8]) != 0, Sealed: bytesOf(v[9]), CreatedAt: moment(v[10]), ChangedAt: moment(v[11])}
}

// namesOf reads a list that names wrote.
func namesOf(v driver.Value) (out []string) {
	_ = json.Unmarshal([]byte(text(v)), &out)
	return out
}

func names(list []string) driver.Value {
	b, _ := json.Marshal(list) // strings can always be written
	return string(b)
}

// Integrations implements trigger.Tx.
func (t tx) Integrations(user string) ([]trigger.Integration, error) {
	return t.integrations(" WHERE user = ? ORDER BY created_at, id", user)
}

// Listening implements trigger.Tx.
func (t tx) Listening(provider string) ([]trigger.Integration, error) {
	return t.integrations(" WHERE provider = ? AND enabled = 1 AND EXISTS (SELECT 1 FROM users WHERE name = user AND disabled = 0) ORDER BY id", provider)
}

func (t tx) integrations(where string, args ...driver.Value) (found []trigger.Integration, err error) {
	err = t.c.query(selectIntegration+where, func(v []driver.Value) error {
		found = append(found, integrationOf(v))
		return nil
	}, args...)
	return found, err
}

// Integration implements trigger.Tx.
func (t tx) Integration(id string) (in trigger.Integration, found bool, err error) {
	found, err = t.c.one(selectIntegration+" WHERE id = ?", func(v []driver.Value) { in = integrationOf(v) }, id)
	return in, found, err
}

// PutIntegration implements trigger.Tx. It does not replace the row: threads would go with it.
func (t tx) PutIntegration(in trigger.Integration) error {
	_, err := t.exec(`INSERT INTO integrations (id, user, provider, host, mention, label, repositories, allowed_users, enabled, secret, created_at, changed_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET host = excluded.host, mention = excluded.mention, label = excluded.label,
		repositories = excluded.repositories, allowed_users = excluded.allowed_users, enabled = excluded.enabled, secret = excluded.secret, changed_at = excluded.changed_at`,
		in.ID, in.User, in.Provider, in.Host, in.Mention, in.Label, names(in.Repositories), names(in.AllowedUsers), truth(in.Enabled), in.Sealed, micros(in.CreatedAt), micros(in.ChangedAt))
	return err
}

// RemoveIntegration implements trigger.Tx. The threads go with it.
func (t tx) RemoveIntegration(id string) error {
	_, err := t.exec("DELETE FROM integrations WHERE id = ?", id)
	return err
}

// SessionOf implements trigger.Tx.
func (t tx) SessionOf(integration string, h trigger.Thread) (id session.ID, err error) {
	_, err = t.c.one("SELECT session FROM threads WHERE integration = ? AND repository = ? AND pull = ? AND number = ?", func(v []driver.Value) { id = session.ID(text(v[0])) },
		integration, h.Repository, truth(h.Pull), int64(h.Number))
	return id, err
}

// PutThread implements trigger.Tx.
func (t tx) PutThread(integration string, h trigger.Thread, id session.ID) error {
	_, err := t.exec("INSERT OR REPLACE INTO threads (integration, repository, pull, number, session) VALUES (?, ?, ?, ?, ?)",
		integration, h.Repository, truth(h.Pull), int64(h.Number), string(id))
	return err
}

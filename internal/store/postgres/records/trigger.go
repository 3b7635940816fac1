package records

import (
	"context"
	"encoding/json"

	"deckhand/internal/session"
	"deckhand/internal/store/postgres/pg"
	"deckhand/internal/trigger"
)

// Triggers implements store.Backend.
func (s *Store) Triggers() *trigger.Records { return trigger.NewRecords(triggers{s}) }

// triggers is what trigger needs of a database.
type triggers struct{ store *Store }

var (
	_ trigger.Database = triggers{}
	_ trigger.Tx       = Tx{}
)

// Update implements trigger.Database.
func (s triggers) Update(ctx context.Context, fn func(trigger.Tx) error) error {
	return s.store.update(ctx, trigger.Queue, func(t Tx) error { return fn(t) })
}

// View implements trigger.Database.
func (s triggers) View(ctx context.Context, fn func(trigger.Tx) error) error {
	return s.store.view(ctx, trigger.Queue, func(t Tx) error { return fn(t) })
}

const selectIntegration = `SELECT id, username, provider, host, mention, label, repositories, allowed_users, enabled, secret, created_at, changed_at FROM deckhand.integrations`

func integrationOf(v []any) trigger.Integration {
	return trigger.Integration{ID: pg.Text(v[0]), User: pg.Text(v[1]), Provider: pg.Text(v[2]), Host: pg.Text(v[3]), Mention: pg.Text(v[4]), Label: pg.Text(v[5]),
		Repositories: namesOf(v[6]), AllowedUsers: namesOf(v[7]), Enabled: pg.Truth(v[8]), Sealed: pg.Bytes(v[9]), CreatedAt: pg.Moment(v[10]), ChangedAt: pg.Moment(v[11])}
}

// namesOf reads a list that names wrote.
func namesOf(v any) (out []string) {
	_ = json.Unmarshal([]byte(pg.Text(v)), &out)
	return out
}

func names(list []string) any {
	b, _ := json.Marshal(list) // strings can always be written
	return string(b)
}

// Integrations implements trigger.Tx.
func (t Tx) Integrations(user string) ([]trigger.Integration, error) {
	return t.integrations(" WHERE username = $1 ORDER BY created_at, id", user)
}

// Listening implements trigger.Tx.
func (t Tx) Listening(provider string) ([]trigger.Integration, error) {
	return t.integrations(" WHERE provider = $1 AND enabled AND EXISTS (SELECT FROM deckhand.users u WHERE u.name = username AND NOT u.disabled) ORDER BY id", provider)
}

func (t Tx) integrations(where string, args ...any) (found []trigger.Integration, err error) {
	err = t.c.Query(selectIntegration+where, func(v []any) error {
		found = append(found, integrationOf(v))
		return nil
	}, args...)
	return found, err
}

// Integration implements trigger.Tx.
func (t Tx) Integration(id string) (in trigger.Integration, found bool, err error) {
	found, err = t.c.One(selectIntegration+" WHERE id = $1", func(v []any) { in = integrationOf(v) }, id)
	return in, found, err
}

// PutIntegration implements trigger.Tx. It does not replace the row: threads would go with it.
func (t Tx) PutIntegration(in trigger.Integration) error {
	_, err := t.c.Exec(`INSERT INTO deckhand.integrations (id, username, provider, host, mention, label, repositories, allowed_users, enabled, secret, created_at, changed_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (id) DO UPDATE SET host = excluded.host, mention = excluded.mention, label = excluded.label,
		repositories = excluded.repositories, allowed_users = excluded.allowed_users, enabled = excluded.enabled, secret = excluded.secret, changed_at = excluded.changed_at`,
		in.ID, in.User, in.Provider, in.Host, in.Mention, in.Label, names(in.Repositories), names(in.AllowedUsers), in.Enabled, in.Sealed, pg.Micros(in.CreatedAt), pg.Micros(in.ChangedAt))
	return err
}

// RemoveIntegration implements trigger.Tx. The threads go with it.
func (t Tx) RemoveIntegration(id string) error {
	_, err := t.c.Exec("DELETE FROM deckhand.integrations WHERE id = $1", id)
	return err
}

// SessionOf implements trigger.Tx.
func (t Tx) SessionOf(integration string, h trigger.Thread) (id session.ID, err error) {
	_, err = t.c.One("SELECT session FROM deckhand.threads WHERE integration = $1 AND repository = $2 AND pull = $3 AND number = $4", func(v []any) { id = session.ID(pg.Text(v[0])) },
		integration, h.Repository, h.Pull, int64(h.Number))
	return id, err
}

// PutThread implements trigger.Tx.
func (t Tx) PutThread(integration string, h trigger.Thread, id session.ID) error {
	_, err := t.c.Exec("INSERT INTO deckhand.threads (integration, repository, pull, number, session) VALUES ($1, $2, $3, $4, $5) "+
		"ON CONFLICT (integration, repository, pull, number) DO UPDATE SET session = excluded.session",
		integration, h.Repository, h.Pull, int64(h.Number), string(id))
	return err
}

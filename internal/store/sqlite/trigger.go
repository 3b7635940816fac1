package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"time"

	"deckhand/internal/store"
	"deckhand/internal/trigger"
)

// Triggers is the store of integrations and of what comes for them.
func (db *DB) Triggers() store.Triggers { return Triggers{db} }

// Triggers has a type of its own because its methods have general names.
type Triggers struct{ db *DB }

var (
	_ trigger.Store = Triggers{}
	_ trigger.Inbox = Triggers{}
)

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

// AddIntegration implements trigger.Store.
func (s Triggers) AddIntegration(ctx context.Context, in trigger.Integration) error {
	return s.db.write(ctx, len(in.Sealed), func(c *conn) error {
		var has int64
		_, err := c.one("SELECT count(*) FROM integrations WHERE user = ?", func(v []driver.Value) { has = number(v[0]) }, in.User)
		if err != nil {
			return err
		}
		if has >= trigger.MaxIntegrations {
			return refuse(trigger.ErrTooMany)
		}
		_, err = c.exec(`INSERT INTO integrations (id, user, provider, host, mention, label, repositories, allowed_users, enabled, secret, created_at, changed_at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, in.ID, in.User, in.Provider, in.Host, in.Mention, in.Label,
			names(in.Repositories), names(in.AllowedUsers), truth(in.Enabled), in.Sealed, micros(in.CreatedAt), micros(in.ChangedAt))
		return err
	})
}

// Integrations implements trigger.Store.
func (s Triggers) Integrations(ctx context.Context, user string) ([]trigger.Integration, error) {
	return s.integrations(ctx, " WHERE user = ? ORDER BY created_at, id", user)
}

// Listening implements trigger.Inbox.
func (s Triggers) Listening(ctx context.Context, provider, id string) ([]trigger.Integration, error) {
	return s.integrations(ctx, ` WHERE provider = ?1 AND enabled = 1 AND (?2 = '' OR id = ?2)
		AND EXISTS (SELECT 1 FROM users WHERE name = user AND disabled = 0) ORDER BY id`, provider, id)
}

func (s Triggers) integrations(ctx context.Context, where string, args ...driver.Value) (found []trigger.Integration, err error) {
	err = s.db.readers.read(ctx, func(c *conn) error {
		return c.query(selectIntegration+where, func(v []driver.Value) error {
			found = append(found, integrationOf(v))
			return nil
		}, args...)
	})
	return found, err
}

// Integration implements trigger.Inbox.
func (s Triggers) Integration(ctx context.Context, id string) (trigger.Integration, error) {
	found, err := s.integrations(ctx, " WHERE id = ?", id)
	if err == nil && len(found) == 0 {
		err = trigger.ErrNotFound
	}
	if err != nil {
		return trigger.Integration{}, err
	}
	return found[0], nil
}

// of reads an integration of a user's.
func (s Triggers) of(c *conn, user, id string) (in trigger.Integration, err error) {
	found, err := c.one(selectIntegration+" WHERE id = ?", func(v []driver.Value) { in = integrationOf(v) }, id)
	if err == nil && (!found || in.User != user) {
		err = trigger.ErrNotFound
	}
	return in, err
}

// ChangeIntegration implements trigger.Store.
func (s Triggers) ChangeIntegration(ctx context.Context, user, id string, at time.Time, change func(*trigger.Integration) error) (trigger.Integration, error) {
	var changed trigger.Integration
	err := s.db.write(ctx, 0, func(c *conn) error {
		in, err := s.of(c, user, id)
		if errors.Is(err, trigger.ErrNotFound) {
			return refuse(err)
		}
		if err != nil {
			return err
		}
		before := in.ChangedAt
		if err := change(&in); err != nil {
			return refuse(err)
		}
		if in.ChangedAt = at.UTC().Truncate(time.Microsecond); !in.ChangedAt.After(before) {
			in.ChangedAt = before.Add(time.Microsecond)
		}
		changed = in
		_, err = c.exec("UPDATE integrations SET host = ?, mention = ?, label = ?, repositories = ?, allowed_users = ?, enabled = ?, secret = ?, changed_at = ? WHERE id = ?",
			in.Host, in.Mention, in.Label, names(in.Repositories), names(in.AllowedUsers), truth(in.Enabled), in.Sealed, micros(in.ChangedAt), id)
		return err
	})
	if err != nil {
		return trigger.Integration{}, err
	}
	return changed, nil
}

// RemoveIntegration implements trigger.Store. What came for it goes with it.
func (s Triggers) RemoveIntegration(ctx context.Context, user, id string) error {
	return s.db.write(ctx, 0, func(c *conn) error {
		removed, err := c.exec("DELETE FROM integrations WHERE id = ? AND user = ?", id, user)
		if err == nil && removed == 0 {
			err = refuse(trigger.ErrNotFound)
		}
		return err
	})
}

package records

import (
	"context"
	"time"

	"deckhand/internal/access"
	"deckhand/internal/store/postgres/pg"
)

var _ access.Store = (*Store)(nil)

// change makes a change to users or keys and increments the generation, in one transaction: a
// reader of the old generation has read the old data.
func (s *Store) change(ctx context.Context, do func(*pg.Conn) error) error {
	return s.DB.Update(ctx, func(c *pg.Conn) error {
		if err := do(c); err != nil {
			return err
		}
		_, err := c.Exec("INSERT INTO deckhand.counters AS c (name, value) VALUES ('access', 1) ON CONFLICT (name) DO UPDATE SET value = c.value + 1")
		return err
	})
}

// AccessGeneration implements access.Store.
func (s *Store) AccessGeneration(ctx context.Context) (generation int64, err error) {
	err = s.DB.View(ctx, func(c *pg.Conn) error {
		_, err := c.One("SELECT value FROM deckhand.counters WHERE name = 'access'", func(v []any) { generation = pg.Number(v[0]) })
		return err
	})
	return generation, err
}

// CreateUser implements access.Store.
func (s *Store) CreateUser(ctx context.Context, u access.User) error {
	return s.change(ctx, func(c *pg.Conn) error { return insertUser(c, u) })
}

func insertUser(c *pg.Conn, u access.User) error {
	changed, err := c.Exec("INSERT INTO deckhand.users (name, admin, disabled, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT (name) DO NOTHING",
		u.Name, u.Admin, u.Disabled, pg.Micros(u.CreatedAt))
	if err == nil && changed == 0 {
		err = pg.Refuse(access.ErrExists)
	}
	return err
}

const selectUser = "SELECT name, admin, disabled, created_at FROM deckhand.users"

func accessUser(v []any) access.User {
	return access.User{Name: pg.Text(v[0]), Admin: pg.Truth(v[1]), Disabled: pg.Truth(v[2]), CreatedAt: pg.Moment(v[3])}
}

// User implements access.Store.
func (s *Store) User(ctx context.Context, name string) (u access.User, err error) {
	err = s.DB.View(ctx, func(c *pg.Conn) error {
		found, err := c.One(selectUser+" WHERE name = $1", func(v []any) { u = accessUser(v) }, name)
		if err == nil && !found {
			err = access.ErrNotFound
		}
		return err
	})
	return u, err
}

// Users implements access.Store.
func (s *Store) Users(ctx context.Context) (users []access.User, err error) {
	err = s.DB.View(ctx, func(c *pg.Conn) error {
		return c.Query(selectUser+" ORDER BY name", func(v []any) error {
			users = append(users, accessUser(v))
			return nil
		})
	})
	return users, err
}

// SetUserDisabled implements access.Store.
func (s *Store) SetUserDisabled(ctx context.Context, name string, disabled bool) error {
	return s.change(ctx, func(c *pg.Conn) error {
		changed, err := c.Exec("UPDATE deckhand.users SET disabled = $1 WHERE name = $2", disabled, name)
		if err == nil && changed == 0 {
			err = pg.Refuse(access.ErrNotFound)
		}
		return err
	})
}

// SetUserAdmin implements access.Store.
func (s *Store) SetUserAdmin(ctx context.Context, name string, admin bool) error {
	return s.change(ctx, func(c *pg.Conn) error {
		changed, err := c.Exec("UPDATE deckhand.users SET admin = $1 WHERE name = $2", admin, name)
		if err == nil && changed == 0 {
			err = pg.Refuse(access.ErrNotFound)
		}
		return err
	})
}

// CreateKey implements access.Store.
func (s *Store) CreateKey(ctx context.Context, k access.Key) error {
	return s.change(ctx, func(c *pg.Conn) error {
		known, err := c.One("SELECT 1 FROM deckhand.users WHERE name = $1", func([]any) {}, k.User)
		if err != nil {
			return err
		}
		if !known {
			return pg.Refuse(access.ErrNotFound)
		}
		changed, err := c.Exec(`INSERT INTO deckhand.keys (id, username, label, admin, created_at, expires_at, revoked_at, hash, sign_on) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
			ON CONFLICT DO NOTHING`,
			k.ID, k.User, k.Label, k.Admin, pg.Micros(k.CreatedAt), maybeMicros(k.ExpiresAt), maybeMicros(k.RevokedAt), k.Hash[:], k.SignOn)
		if err == nil && changed == 0 {
			err = pg.Refuse(access.ErrExists)
		}
		return err
	})
}

const selectKey = "SELECT id, username, label, admin, created_at, expires_at, revoked_at, hash, sign_on FROM deckhand.keys"

func accessKey(v []any) access.Key {
	k := access.Key{
		ID: pg.Text(v[0]), User: pg.Text(v[1]), Label: pg.Text(v[2]), Admin: pg.Truth(v[3]),
		CreatedAt: pg.Moment(v[4]), ExpiresAt: maybeMoment(v[5]), RevokedAt: maybeMoment(v[6]), SignOn: pg.Truth(v[8]),
	}
	copy(k.Hash[:], pg.Bytes(v[7]))
	return k
}

// KeyByHash implements access.Store.
func (s *Store) KeyByHash(ctx context.Context, hash [32]byte) (k access.Key, err error) {
	err = s.DB.View(ctx, func(c *pg.Conn) error {
		found, err := c.One(selectKey+" WHERE hash = $1", func(v []any) { k = accessKey(v) }, hash[:])
		if err == nil && !found {
			err = access.ErrNotFound
		}
		return err
	})
	return k, err
}

// Keys implements access.Store.
func (s *Store) Keys(ctx context.Context, user string) (keys []access.Key, err error) {
	err = s.DB.View(ctx, func(c *pg.Conn) error {
		return c.Query(selectKey+" WHERE $1 = '' OR username = $1 ORDER BY created_at DESC, id", func(v []any) error {
			keys = append(keys, accessKey(v))
			return nil
		}, user)
	})
	return keys, err
}

// RevokeKey implements access.Store.
func (s *Store) RevokeKey(ctx context.Context, id string, at time.Time) (access.Key, error) {
	var k access.Key
	err := s.change(ctx, func(c *pg.Conn) error {
		changed, err := c.Exec("UPDATE deckhand.keys SET revoked_at = coalesce(revoked_at, $1) WHERE id = $2", pg.Micros(at), id)
		if err == nil && changed == 0 {
			err = pg.Refuse(access.ErrNotFound)
		}
		if err != nil {
			return err
		}
		_, err = c.One(selectKey+" WHERE id = $1", func(v []any) { k = accessKey(v) }, id)
		return err
	})
	if err != nil {
		return access.Key{}, err
	}
	return k, nil
}

func maybeMicros(t *time.Time) any {
	if t == nil {
		return nil
	}
	return pg.Micros(*t)
}

func maybeMoment(v any) *time.Time {
	if v == nil {
		return nil
	}
	t := pg.Moment(v)
	return &t
}

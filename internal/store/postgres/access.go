package postgres

import (
	"context"
	"time"

	"deckhand/internal/access"
)

var _ access.Store = (*DB)(nil)

// change makes a change to users or keys and increments the generation, in one transaction: a
// reader of the old generation has read the old data.
func (db *DB) change(ctx context.Context, do func(*conn) error) error {
	return db.write(ctx, func(c *conn) error {
		if err := do(c); err != nil {
			return err
		}
		_, err := c.exec("INSERT INTO deckhand.counters AS c (name, value) VALUES ('access', 1) ON CONFLICT (name) DO UPDATE SET value = c.value + 1")
		return err
	})
}

// AccessGeneration implements access.Store.
func (db *DB) AccessGeneration(ctx context.Context) (generation int64, err error) {
	err = db.read(ctx, func(c *conn) error {
		_, err := c.one("SELECT value FROM deckhand.counters WHERE name = 'access'", func(v []any) { generation = number(v[0]) })
		return err
	})
	return generation, err
}

// CreateUser implements access.Store.
func (db *DB) CreateUser(ctx context.Context, u access.User) error {
	return db.change(ctx, func(c *conn) error { return insertUser(c, u) })
}

func insertUser(c *conn, u access.User) error {
	changed, err := c.exec("INSERT INTO deckhand.users (name, admin, disabled, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT (name) DO NOTHING",
		u.Name, u.Admin, u.Disabled, micros(u.CreatedAt))
	if err == nil && changed == 0 {
		err = refuse(access.ErrExists)
	}
	return err
}

const selectUser = "SELECT name, admin, disabled, created_at FROM deckhand.users"

func accessUser(v []any) access.User {
	return access.User{Name: text(v[0]), Admin: truth(v[1]), Disabled: truth(v[2]), CreatedAt: moment(v[3])}
}

// User implements access.Store.
func (db *DB) User(ctx context.Context, name string) (u access.User, err error) {
	err = db.read(ctx, func(c *conn) error {
		found, err := c.one(selectUser+" WHERE name = $1", func(v []any) { u = accessUser(v) }, name)
		if err == nil && !found {
			err = access.ErrNotFound
		}
		return err
	})
	return u, err
}

// Users implements access.Store.
func (db *DB) Users(ctx context.Context) (users []access.User, err error) {
	err = db.read(ctx, func(c *conn) error {
		return c.query(selectUser+" ORDER BY name", func(v []any) error {
			users = append(users, accessUser(v))
			return nil
		})
	})
	return users, err
}

// SetUserDisabled implements access.Store.
func (db *DB) SetUserDisabled(ctx context.Context, name string, disabled bool) error {
	return db.change(ctx, func(c *conn) error {
		changed, err := c.exec("UPDATE deckhand.users SET disabled = $1 WHERE name = $2", disabled, name)
		if err == nil && changed == 0 {
			err = refuse(access.ErrNotFound)
		}
		return err
	})
}

// SetUserAdmin implements access.Store.
func (db *DB) SetUserAdmin(ctx context.Context, name string, admin bool) error {
	return db.change(ctx, func(c *conn) error {
		changed, err := c.exec("UPDATE deckhand.users SET admin = $1 WHERE name = $2", admin, name)
		if err == nil && changed == 0 {
			err = refuse(access.ErrNotFound)
		}
		return err
	})
}

// CreateKey implements access.Store.
func (db *DB) CreateKey(ctx context.Context, k access.Key) error {
	return db.change(ctx, func(c *conn) error {
		known, err := c.one("SELECT 1 FROM deckhand.users WHERE name = $1", func([]any) {}, k.User)
		if err != nil {
			return err
		}
		if !known {
			return refuse(access.ErrNotFound)
		}
		changed, err := c.exec(`INSERT INTO deckhand.keys (id, username, label, admin, created_at, expires_at, revoked_at, hash, sign_on) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
			ON CONFLICT DO NOTHING`,
			k.ID, k.User, k.Label, k.Admin, micros(k.CreatedAt), maybeMicros(k.ExpiresAt), maybeMicros(k.RevokedAt), k.Hash[:], k.SignOn)
		if err == nil && changed == 0 {
			err = refuse(access.ErrExists)
		}
		return err
	})
}

const selectKey = "SELECT id, username, label, admin, created_at, expires_at, revoked_at, hash, sign_on FROM deckhand.keys"

func accessKey(v []any) access.Key {
	k := access.Key{
		ID: text(v[0]), User: text(v[1]), Label: text(v[2]), Admin: truth(v[3]),
		CreatedAt: moment(v[4]), ExpiresAt: maybeMoment(v[5]), RevokedAt: maybeMoment(v[6]), SignOn: truth(v[8]),
	}
	copy(k.Hash[:], bytesOf(v[7]))
	return k
}

// KeyByHash implements access.Store.
func (db *DB) KeyByHash(ctx context.Context, hash [32]byte) (k access.Key, err error) {
	err = db.read(ctx, func(c *conn) error {
		found, err := c.one(selectKey+" WHERE hash = $1", func(v []any) { k = accessKey(v) }, hash[:])
		if err == nil && !found {
			err = access.ErrNotFound
		}
		return err
	})
	return k, err
}

// Keys implements access.Store.
func (db *DB) Keys(ctx context.Context, user string) (keys []access.Key, err error) {
	err = db.read(ctx, func(c *conn) error {
		return c.query(selectKey+" WHERE $1 = '' OR username = $1 ORDER BY created_at DESC, id", func(v []any) error {
			keys = append(keys, accessKey(v))
			return nil
		}, user)
	})
	return keys, err
}

// RevokeKey implements access.Store.
func (db *DB) RevokeKey(ctx context.Context, id string, at time.Time) (access.Key, error) {
	var k access.Key
	err := db.change(ctx, func(c *conn) error {
		changed, err := c.exec("UPDATE deckhand.keys SET revoked_at = coalesce(revoked_at, $1) WHERE id = $2", micros(at), id)
		if err == nil && changed == 0 {
			err = refuse(access.ErrNotFound)
		}
		if err != nil {
			return err
		}
		_, err = c.one(selectKey+" WHERE id = $1", func(v []any) { k = accessKey(v) }, id)
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
	return micros(*t)
}

func maybeMoment(v any) *time.Time {
	if v == nil {
		return nil
	}
	t := moment(v)
	return &t
}

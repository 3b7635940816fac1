package postgres

import (
	"context"

	"deckhand/internal/secret"
)

var _ secret.KeyStore = (*DB)(nil)

// masterID is the meta value that names the master key in force.
const masterID = "master_key_id"

// MasterID implements secret.KeyStore.
func (db *DB) MasterID(ctx context.Context) (string, error) {
	id, err := db.Meta(ctx, masterID)
	return string(id), err
}

// InitMaster implements secret.KeyStore.
func (db *DB) InitMaster(ctx context.Context, id string) (string, error) {
	// Read first: it is set at every start but the first, and a disk that cannot
	// be written must not keep the server from starting.
	if inForce, err := db.MasterID(ctx); err != nil || inForce != "" {
		return inForce, err
	}
	inForce, err := db.SetMetaOnce(ctx, masterID, []byte(id))
	return string(inForce), err
}

const selectDataKey = "SELECT username, id, master_id, wrapped, created_at FROM deckhand.data_keys"

func dataKey(v []any) secret.DataKey {
	return secret.DataKey{User: text(v[0]), ID: text(v[1]), MasterID: text(v[2]), Wrapped: bytesOf(v[3]), CreatedAt: moment(v[4])}
}

// DataKey implements secret.KeyStore.
func (db *DB) DataKey(ctx context.Context, user string) (k secret.DataKey, err error) {
	err = db.read(ctx, func(c *conn) error {
		found, err := c.one(selectDataKey+" WHERE username = $1", func(v []any) { k = dataKey(v) }, user)
		if err == nil && !found {
			err = secret.ErrNoDataKey
		}
		return err
	})
	return k, err
}

// AddDataKey implements secret.KeyStore.
func (db *DB) AddDataKey(ctx context.Context, k secret.DataKey) (secret.DataKey, error) {
	var inForce secret.DataKey
	err := db.write(ctx, func(c *conn) error {
		if err := checkMaster(c, k.MasterID, "SHARE"); err != nil {
			return err
		}
		_, err := c.exec("INSERT INTO deckhand.data_keys (username, id, master_id, wrapped, created_at) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
			k.User, k.ID, k.MasterID, k.Wrapped, micros(k.CreatedAt))
		if err != nil {
			return err
		}
		_, err = c.one(selectDataKey+" WHERE username = $1", func(v []any) { inForce = dataKey(v) }, k.User)
		return err
	})
	if err != nil {
		return secret.DataKey{}, err
	}
	return inForce, nil
}

// Rewrap implements secret.KeyStore. fn runs while nobody can add a key and must not use the database.
func (db *DB) Rewrap(ctx context.Context, oldID, newID string, fn func(secret.DataKey) (secret.DataKey, error)) error {
	return db.write(ctx, func(c *conn) error {
		if err := checkMaster(c, oldID, "UPDATE"); err != nil {
			return err
		}
		var keys []secret.DataKey
		err := c.query(selectDataKey, func(v []any) error {
			keys = append(keys, dataKey(v))
			return nil
		})
		if err != nil {
			return err
		}
		for _, k := range keys {
			wrapped, err := fn(k)
			if err != nil {
				return refuse(err)
			}
			if _, err := c.exec("UPDATE deckhand.data_keys SET id = $1, master_id = $2, wrapped = $3, created_at = $4 WHERE username = $5",
				wrapped.ID, wrapped.MasterID, wrapped.Wrapped, micros(wrapped.CreatedAt), k.User); err != nil {
				return err
			}
		}
		_, err = c.exec("INSERT INTO deckhand.meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value", masterID, []byte(newID))
		return err
	})
}

// checkMaster refuses when another master key than the one named is in force. It stays in force until the
// transaction ends: one that adds a key shares the lock, one that changes the master does not.
func checkMaster(c *conn, id, lock string) error {
	inForce := ""
	if _, err := c.one(selectMeta+" FOR "+lock, func(row []any) { inForce = string(bytesOf(row[0])) }, masterID); err != nil {
		return err
	}
	if inForce != id {
		return refuse(secret.ErrMasterChanged)
	}
	return nil
}

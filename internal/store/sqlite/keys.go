package sqlite

import (
	"context"
	"database/sql/driver"

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

const selectDataKey = "SELECT user, id, master_id, wrapped, created_at FROM data_keys"

func dataKey(v []driver.Value) secret.DataKey {
	return secret.DataKey{User: text(v[0]), ID: text(v[1]), MasterID: text(v[2]), Wrapped: bytesOf(v[3]), CreatedAt: moment(v[4])}
}

// DataKey implements secret.KeyStore.
func (db *DB) DataKey(ctx context.Context, user string) (k secret.DataKey, err error) {
	err = db.readers.read(ctx, func(c *conn) error {
		found, err := c.one(selectDataKey+" WHERE user = ?", func(v []driver.Value) { k = dataKey(v) }, user)
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
	err := db.write(ctx, len(k.Wrapped), func(c *conn) error {
		if err := checkMaster(c, k.MasterID); err != nil {
			return err
		}
		inForce = k
		found, err := c.one(selectDataKey+" WHERE user = ?", func(v []driver.Value) { inForce = dataKey(v) }, k.User)
		if err != nil || found {
			return err
		}
		_, err = c.exec("INSERT INTO data_keys (user, id, master_id, wrapped, created_at) VALUES (?, ?, ?, ?, ?)",
			k.User, k.ID, k.MasterID, k.Wrapped, micros(k.CreatedAt))
		return err
	})
	if err != nil {
		return secret.DataKey{}, err
	}
	return inForce, nil
}

// Rewrap implements secret.KeyStore. fn runs while the database is locked for
// writing and must not use it.
func (db *DB) Rewrap(ctx context.Context, oldID, newID string, fn func(secret.DataKey) (secret.DataKey, error)) error {
	return db.write(ctx, 0, func(c *conn) error {
		if err := checkMaster(c, oldID); err != nil {
			return err
		}
		var keys []secret.DataKey
		err := c.query(selectDataKey, func(v []driver.Value) error {
			keys = append(keys, dataKey(v))
			return nil
		})
		if err != nil {
			return err
		}
		for i, k := range keys { // all of them before the first is written, so that an error is a clean refusal
			if keys[i], err = fn(k); err != nil {
				return refuse(err)
			}
			keys[i].User = k.User
		}
		for _, k := range keys {
			if _, err := c.exec("UPDATE data_keys SET id = ?, master_id = ?, wrapped = ?, created_at = ? WHERE user = ?",
				k.ID, k.MasterID, k.Wrapped, micros(k.CreatedAt), k.User); err != nil {
				return err
			}
		}
		_, err = c.exec("INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", masterID, []byte(newID))
		return err
	})
}

// checkMaster refuses when another master key than the one named is in force.
func checkMaster(c *conn, id string) error {
	inForce := ""
	if _, err := c.one(selectMeta, func(row []driver.Value) { inForce = string(bytesOf(row[0])) }, masterID); err != nil {
		return err
	}
	if inForce != id {
		return refuse(secret.ErrMasterChanged)
	}
	return nil
}

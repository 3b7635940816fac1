package records

import (
	"context"

	"deckhand/internal/secret"
	"deckhand/internal/store/postgres/pg"
)

var _ secret.KeyStore = (*Store)(nil)

// masterID is the meta value that names the master key in force.
const masterID = "master_key_id"

// MasterID implements secret.KeyStore.
func (s *Store) MasterID(ctx context.Context) (string, error) {
	id, err := s.Meta(ctx, masterID)
	return string(id), err
}

// InitMaster implements secret.KeyStore.
func (s *Store) InitMaster(ctx context.Context, id string) (string, error) {
	// Read first: it is set at every start but the first, and a disk that cannot
	// be written must not keep the server from starting.
	if inForce, err := s.MasterID(ctx); err != nil || inForce != "" {
		return inForce, err
	}
	inForce, err := s.SetMetaOnce(ctx, masterID, []byte(id))
	return string(inForce), err
}

const selectDataKey = "SELECT username, id, master_id, wrapped, created_at FROM deckhand.data_keys"

func dataKey(v []any) secret.DataKey {
	return secret.DataKey{User: pg.Text(v[0]), ID: pg.Text(v[1]), MasterID: pg.Text(v[2]), Wrapped: pg.Bytes(v[3]), CreatedAt: pg.Moment(v[4])}
}

// DataKey implements secret.KeyStore.
func (s *Store) DataKey(ctx context.Context, user string) (k secret.DataKey, err error) {
	err = s.DB.View(ctx, func(c *pg.Conn) error {
		found, err := c.One(selectDataKey+" WHERE username = $1", func(v []any) { k = dataKey(v) }, user)
		if err == nil && !found {
			err = secret.ErrNoDataKey
		}
		return err
	})
	return k, err
}

// AddDataKey implements secret.KeyStore.
func (s *Store) AddDataKey(ctx context.Context, k secret.DataKey) (secret.DataKey, error) {
	var inForce secret.DataKey
	err := s.DB.Update(ctx, func(c *pg.Conn) error {
		if err := checkMaster(c, k.MasterID, "SHARE"); err != nil {
			return err
		}
		_, err := c.Exec("INSERT INTO deckhand.data_keys (username, id, master_id, wrapped, created_at) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
			k.User, k.ID, k.MasterID, k.Wrapped, pg.Micros(k.CreatedAt))
		if err != nil {
			return err
		}
		_, err = c.One(selectDataKey+" WHERE username = $1", func(v []any) { inForce = dataKey(v) }, k.User)
		return err
	})
	if err != nil {
		return secret.DataKey{}, err
	}
	return inForce, nil
}

// Rewrap implements secret.KeyStore. fn runs while no key can be added and must not use the database.
func (s *Store) Rewrap(ctx context.Context, oldID, newID string, fn func(secret.DataKey) (secret.DataKey, error)) error {
	return s.DB.Update(ctx, func(c *pg.Conn) error {
		if err := checkMaster(c, oldID, "UPDATE"); err != nil {
			return err
		}
		var keys []secret.DataKey
		err := c.Query(selectDataKey, func(v []any) error {
			keys = append(keys, dataKey(v))
			return nil
		})
		if err != nil {
			return err
		}
		for _, k := range keys {
			wrapped, err := fn(k)
			if err != nil {
				return pg.Refuse(err)
			}
			if _, err := c.Exec("UPDATE deckhand.data_keys SET id = $1, master_id = $2, wrapped = $3, created_at = $4 WHERE username = $5",
				wrapped.ID, wrapped.MasterID, wrapped.Wrapped, pg.Micros(wrapped.CreatedAt), k.User); err != nil {
				return err
			}
		}
		_, err = c.Exec("INSERT INTO deckhand.meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value", masterID, []byte(newID))
		return err
	})
}

// checkMaster refuses when another master key than the one named is in force. It stays in force until the
// transaction ends: one that adds a key shares the lock, one that changes the master does not.
func checkMaster(c *pg.Conn, id, lock string) error {
	inForce := ""
	if _, err := c.One(SelectMeta+" FOR "+lock, func(row []any) { inForce = string(pg.Bytes(row[0])) }, masterID); err != nil {
		return err
	}
	if inForce != id {
		return pg.Refuse(secret.ErrMasterChanged)
	}
	return nil
}

package postgres

import (
	"context"

	"deckhand/internal/settings"
)

var _ settings.Store = (*DB)(nil)

// LoadSettings implements settings.Store.
func (db *DB) LoadSettings(ctx context.Context, user string) (rec settings.Record, err error) {
	err = db.read(ctx, func(c *conn) error {
		found, err := c.one("SELECT version, body, updated_at FROM deckhand.settings WHERE username = $1", func(v []any) {
			rec = settings.Record{User: user, Version: number(v[0]), Body: bytesOf(v[1]), UpdatedAt: moment(v[2])}
		}, user)
		if err == nil && !found {
			err = settings.ErrNotFound
		}
		return err
	})
	return rec, err
}

// SaveSettings implements settings.Store.
func (db *DB) SaveSettings(ctx context.Context, rec settings.Record) error {
	return db.write(ctx, func(c *conn) error {
		sql, args := "UPDATE deckhand.settings SET version = $1, body = $2, updated_at = $3 WHERE username = $4 AND version = $5",
			[]any{rec.Version, blob(rec.Body), micros(rec.UpdatedAt), rec.User, rec.Version - 1}
		if rec.Version == 1 {
			sql, args = "INSERT INTO deckhand.settings (version, body, updated_at, username) VALUES ($1, $2, $3, $4) ON CONFLICT (username) DO NOTHING", args[:4]
		}
		changed, err := c.exec(sql, args...)
		if err == nil && changed == 0 {
			err = refuse(settings.ErrConflict)
		}
		return err
	})
}

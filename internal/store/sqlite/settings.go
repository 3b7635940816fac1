package sqlite

import (
	"context"
	"database/sql/driver"

	"deckhand/internal/settings"
)

var _ settings.Store = (*DB)(nil)

// LoadSettings implements settings.Store.
func (db *DB) LoadSettings(ctx context.Context, user string) (rec settings.Record, err error) {
	err = db.readers.read(ctx, func(c *conn) error {
		found, err := c.one("SELECT version, body, updated_at FROM settings WHERE user = ?", func(v []driver.Value) {
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
	return db.write(ctx, len(rec.Body), func(c *conn) error {
		sql, args := "UPDATE settings SET version = ?, body = ?, updated_at = ? WHERE user = ? AND version = ?",
			[]driver.Value{rec.Version, rec.Body, micros(rec.UpdatedAt), rec.User, rec.Version - 1}
		if rec.Version == 1 {
			sql, args = "INSERT INTO settings (version, body, updated_at, user) VALUES (?, ?, ?, ?) ON CONFLICT (user) DO NOTHING", args[:4]
		}
		changed, err := c.exec(sql, args...)
		if err == nil && changed == 0 {
			err = refuse(settings.ErrConflict)
		}
		return err
	})
}

package records

import (
	"context"

	"deckhand/internal/settings"
	"deckhand/internal/store/postgres/pg"
)

var _ settings.Store = (*Store)(nil)

// LoadSettings implements settings.Store.
func (s *Store) LoadSettings(ctx context.Context, user string) (rec settings.Record, err error) {
	err = s.DB.View(ctx, func(c *pg.Conn) error {
		found, err := c.One("SELECT version, body, updated_at FROM deckhand.settings WHERE username = $1", func(v []any) {
			rec = settings.Record{User: user, Version: pg.Number(v[0]), Body: pg.Bytes(v[1]), UpdatedAt: pg.Moment(v[2])}
		}, user)
		if err == nil && !found {
			err = settings.ErrNotFound
		}
		return err
	})
	return rec, err
}

// SaveSettings implements settings.Store.
func (s *Store) SaveSettings(ctx context.Context, rec settings.Record) error {
	return s.DB.Update(ctx, func(c *pg.Conn) error {
		sql, args := "UPDATE deckhand.settings SET version = $1, body = $2, updated_at = $3 WHERE username = $4 AND version = $5",
			[]any{rec.Version, pg.Blob(rec.Body), pg.Micros(rec.UpdatedAt), rec.User, rec.Version - 1}
		if rec.Version == 1 {
			sql, args = "INSERT INTO deckhand.settings (version, body, updated_at, username) VALUES ($1, $2, $3, $4) ON CONFLICT (username) DO NOTHING", args[:4]
		}
		changed, err := c.Exec(sql, args...)
		if err == nil && changed == 0 {
			err = pg.Refuse(settings.ErrConflict)
		}
		return err
	})
}

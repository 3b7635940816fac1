package sqlite

import (
	"context"
	"database/sql/driver"

	"deckhand/internal/access"
)

// CreateLinked implements access.Store.
func (db *DB) CreateLinked(ctx context.Context, u access.User, l access.Link) error {
	return db.change(ctx, func(c *conn) error {
		linked, err := c.one("SELECT 1 FROM links WHERE issuer = ? AND subject = ?", func([]driver.Value) {}, l.Issuer, l.Subject)
		if err != nil {
			return err
		}
		if linked {
			return refuse(access.ErrExists)
		}
		if err := insertUser(c, u); err != nil {
			return err
		}
		_, err = c.exec("INSERT INTO links (issuer, subject, user, created_at) VALUES (?, ?, ?, ?)", l.Issuer, l.Subject, u.Name, micros(l.CreatedAt))
		return err
	})
}

// Linked implements access.Store.
func (db *DB) Linked(ctx context.Context, issuer, subject string) (u access.User, err error) {
	err = db.readers.read(ctx, func(c *conn) error {
		found, err := c.one(selectUser+" WHERE name = (SELECT user FROM links WHERE issuer = ? AND subject = ?)",
			func(v []driver.Value) { u = accessUser(v) }, issuer, subject)
		if err == nil && !found {
			err = access.ErrNotFound
		}
		return err
	})
	return u, err
}

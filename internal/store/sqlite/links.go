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
		_, err = c.exec("INSERT INTO links (issuer, subject, user, created_at, email, email_verified) VALUES (?, ?, ?, ?, ?, ?)",
			l.Issuer, l.Subject, u.Name, micros(l.CreatedAt), l.Email.Address, truth(l.Email.Verified))
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

// SetEmail implements access.Store.
func (db *DB) SetEmail(ctx context.Context, issuer, subject string, e access.Email) error {
	return db.change(ctx, func(c *conn) error {
		n, err := c.exec("UPDATE links SET email = ?, email_verified = ? WHERE issuer = ? AND subject = ?", e.Address, truth(e.Verified), issuer, subject)
		if err == nil && n == 0 {
			err = refuse(access.ErrNotFound)
		}
		return err
	})
}

// Email implements access.Store.
func (db *DB) Email(ctx context.Context, user string) (e access.Email, err error) {
	err = db.readers.read(ctx, func(c *conn) error {
		found, err := c.one("SELECT email, email_verified FROM links WHERE user = ?",
			func(v []driver.Value) { e = access.Email{Address: text(v[0]), Verified: number(v[1]) != 0} }, user)
		if err == nil && !found {
			err = access.ErrNotFound
		}
		return err
	})
	return e, err
}

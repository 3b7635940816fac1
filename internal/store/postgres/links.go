package postgres

import (
	"context"

	"deckhand/internal/access"
)

// CreateLinked implements access.Store.
func (db *DB) CreateLinked(ctx context.Context, u access.User, l access.Link) error {
	return db.change(ctx, func(c *conn) error {
		linked, err := c.one("SELECT 1 FROM deckhand.links WHERE issuer = $1 AND subject = $2", func([]any) {}, l.Issuer, l.Subject)
		if err != nil {
			return err
		}
		if linked {
			return refuse(access.ErrExists)
		}
		if err := insertUser(c, u); err != nil {
			return err
		}
		_, err = c.exec("INSERT INTO deckhand.links (issuer, subject, username, created_at, email, email_verified) VALUES ($1, $2, $3, $4, $5, $6)",
			l.Issuer, l.Subject, u.Name, micros(l.CreatedAt), l.Email.Address, l.Email.Verified)
		return err
	})
}

// Linked implements access.Store.
func (db *DB) Linked(ctx context.Context, issuer, subject string) (u access.User, err error) {
	err = db.read(ctx, func(c *conn) error {
		found, err := c.one(selectUser+" WHERE name = (SELECT username FROM deckhand.links WHERE issuer = $1 AND subject = $2)",
			func(v []any) { u = accessUser(v) }, issuer, subject)
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
		n, err := c.exec("UPDATE deckhand.links SET email = $1, email_verified = $2 WHERE issuer = $3 AND subject = $4", e.Address, e.Verified, issuer, subject)
		if err == nil && n == 0 {
			err = refuse(access.ErrNotFound)
		}
		return err
	})
}

// Email implements access.Store.
func (db *DB) Email(ctx context.Context, user string) (e access.Email, err error) {
	err = db.read(ctx, func(c *conn) error {
		found, err := c.one("SELECT email, email_verified FROM deckhand.links WHERE username = $1",
			func(v []any) { e = access.Email{Address: text(v[0]), Verified: truth(v[1])} }, user)
		if err == nil && !found {
			err = access.ErrNotFound
		}
		return err
	})
	return e, err
}

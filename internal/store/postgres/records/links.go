package records

import (
	"context"

	"deckhand/internal/access"
	"deckhand/internal/store/postgres/pg"
)

// CreateLinked implements access.Store.
func (s *Store) CreateLinked(ctx context.Context, u access.User, l access.Link) error {
	return s.change(ctx, func(c *pg.Conn) error {
		linked, err := c.One("SELECT 1 FROM deckhand.links WHERE issuer = $1 AND subject = $2", func([]any) {}, l.Issuer, l.Subject)
		if err != nil {
			return err
		}
		if linked {
			return pg.Refuse(access.ErrExists)
		}
		if err := insertUser(c, u); err != nil {
			return err
		}
		_, err = c.Exec("INSERT INTO deckhand.links (issuer, subject, username, created_at, email, email_verified) VALUES ($1, $2, $3, $4, $5, $6)",
			l.Issuer, l.Subject, u.Name, pg.Micros(l.CreatedAt), l.Email.Address, l.Email.Verified)
		return err
	})
}

// Linked implements access.Store.
func (s *Store) Linked(ctx context.Context, issuer, subject string) (u access.User, err error) {
	err = s.DB.View(ctx, func(c *pg.Conn) error {
		found, err := c.One(selectUser+" WHERE name = (SELECT username FROM deckhand.links WHERE issuer = $1 AND subject = $2)",
			func(v []any) { u = accessUser(v) }, issuer, subject)
		if err == nil && !found {
			err = access.ErrNotFound
		}
		return err
	})
	return u, err
}

// SetEmail implements access.Store.
func (s *Store) SetEmail(ctx context.Context, issuer, subject string, e access.Email) error {
	return s.change(ctx, func(c *pg.Conn) error {
		n, err := c.Exec("UPDATE deckhand.links SET email = $1, email_verified = $2 WHERE issuer = $3 AND subject = $4", e.Address, e.Verified, issuer, subject)
		if err == nil && n == 0 {
			err = pg.Refuse(access.ErrNotFound)
		}
		return err
	})
}

// Email implements access.Store.
func (s *Store) Email(ctx context.Context, user string) (e access.Email, err error) {
	err = s.DB.View(ctx, func(c *pg.Conn) error {
		found, err := c.One("SELECT email, email_verified FROM deckhand.links WHERE username = $1",
			func(v []any) { e = access.Email{Address: pg.Text(v[0]), Verified: pg.Truth(v[1])} }, user)
		if err == nil && !found {
			err = access.ErrNotFound
		}
		return err
	})
	return e, err
}

package records

import (
	"context"
	"time"

	"deckhand/internal/idempotency"
	"deckhand/internal/store/postgres/pg"
)

var _ idempotency.Store = (*Store)(nil)

// Answer implements idempotency.Store.
func (s *Store) Answer(ctx context.Context, user, key string) (a idempotency.Answer, err error) {
	err = s.DB.View(ctx, func(c *pg.Conn) error {
		found, err := c.One("SELECT request, status, header, body, created_at FROM deckhand.answers WHERE username = $1 AND key = $2", func(v []any) {
			a = idempotency.Answer{
				User: user, Key: key, Request: pg.Text(v[0]), Status: int(pg.Number(v[1])),
				Header: pg.Bytes(v[2]), Body: pg.Bytes(v[3]), CreatedAt: pg.Moment(v[4]),
			}
		}, user, key)
		if err == nil && !found {
			err = idempotency.ErrNotFound
		}
		return err
	})
	return a, err
}

// SaveAnswer implements idempotency.Store.
func (s *Store) SaveAnswer(ctx context.Context, a idempotency.Answer) error {
	return s.DB.Update(ctx, func(c *pg.Conn) error {
		_, err := c.Exec(`INSERT INTO deckhand.answers (username, key, request, status, header, body, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
			ON CONFLICT (username, key) DO NOTHING`,
			a.User, a.Key, a.Request, int64(a.Status), pg.Blob(a.Header), pg.Blob(a.Body), pg.Micros(a.CreatedAt))
		return err
	})
}

// dropPiece is how many answers are dropped in one go: others write in between.
const dropPiece = 1000

// DropAnswers implements idempotency.Store.
func (s *Store) DropAnswers(ctx context.Context, before time.Time) error {
	for {
		var dropped int64
		err := s.DB.Update(ctx, func(c *pg.Conn) (err error) {
			dropped, err = c.Exec("DELETE FROM deckhand.answers WHERE ctid = ANY (ARRAY (SELECT ctid FROM deckhand.answers WHERE created_at < $1 LIMIT $2))",
				pg.Micros(before), int64(dropPiece))
			return err
		})
		if err != nil || dropped < dropPiece {
			return err
		}
	}
}

package postgres

import (
	"context"
	"time"

	"deckhand/internal/idempotency"
)

var _ idempotency.Store = (*DB)(nil)

// Answer implements idempotency.Store.
func (db *DB) Answer(ctx context.Context, user, key string) (a idempotency.Answer, err error) {
	err = db.read(ctx, func(c *conn) error {
		found, err := c.one("SELECT request, status, header, body, created_at FROM deckhand.answers WHERE username = $1 AND key = $2", func(v []any) {
			a = idempotency.Answer{
				User: user, Key: key, Request: text(v[0]), Status: int(number(v[1])),
				Header: bytesOf(v[2]), Body: bytesOf(v[3]), CreatedAt: moment(v[4]),
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
func (db *DB) SaveAnswer(ctx context.Context, a idempotency.Answer) error {
	return db.write(ctx, func(c *conn) error {
		_, err := c.exec(`INSERT INTO deckhand.answers (username, key, request, status, header, body, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)
			ON CONFLICT (username, key) DO NOTHING`,
			a.User, a.Key, a.Request, int64(a.Status), blob(a.Header), blob(a.Body), micros(a.CreatedAt))
		return err
	})
}

// dropPiece is how many answers are dropped in one go: others write in between.
const dropPiece = 1000

// DropAnswers implements idempotency.Store.
func (db *DB) DropAnswers(ctx context.Context, before time.Time) error {
	for {
		var dropped int64
		err := db.write(ctx, func(c *conn) (err error) {
			dropped, err = c.exec("DELETE FROM deckhand.answers WHERE ctid = ANY (ARRAY (SELECT ctid FROM deckhand.answers WHERE created_at < $1 LIMIT $2))",
				micros(before), int64(dropPiece))
			return err
		})
		if err != nil || dropped < dropPiece {
			return err
		}
	}
}

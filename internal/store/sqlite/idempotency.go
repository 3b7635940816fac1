package sqlite

import (
	"context"
	"database/sql/driver"
	"time"

	"deckhand/internal/idempotency"
)

var _ idempotency.Store = (*DB)(nil)

// Answer implements idempotency.Store.
func (db *DB) Answer(ctx context.Context, user, key string) (a idempotency.Answer, err error) {
	err = db.readers.read(ctx, func(c *conn) error {
		found, err := c.one("SELECT request, status, header, body, created_at FROM answers WHERE user = ? AND key = ?", func(v []driver.Value) {
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
	return db.write(ctx, len(a.Header)+len(a.Body), func(c *conn) error {
		_, err := c.exec(`INSERT INTO answers (user, key, request, status, header, body, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (user, key) DO NOTHING`,
			a.User, a.Key, a.Request, int64(a.Status), a.Header, a.Body, micros(a.CreatedAt))
		return err
	})
}

// dropPiece is how many answers are dropped in one go: others write in between.
const dropPiece = 1000

// DropAnswers implements idempotency.Store.
func (db *DB) DropAnswers(ctx context.Context, before time.Time) error {
	for {
		var dropped int64
		err := db.write(ctx, 0, func(c *conn) (err error) {
			dropped, err = c.exec("DELETE FROM answers WHERE rowid IN (SELECT rowid FROM answers WHERE created_at < ? LIMIT ?)",
				micros(before), int64(dropPiece))
			return err
		})
		if err != nil || dropped < dropPiece {
			return err
		}
	}
}

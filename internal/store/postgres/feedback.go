package postgres

import (
	"context"

	"deckhand/internal/feedback"
)

// Feedback is the store of what people say of the agent's work.
func (db *DB) Feedback() feedback.Store { return feedbackStore{db} }

// feedbackStore has a type of its own because its methods have general names.
type feedbackStore struct{ db *DB }

const selectFeedback = "SELECT id, username, session, at, rating, event, reason, metadata, polarity, permissions, email, version FROM deckhand.feedback"

func feedbackOf(v []any) feedback.Entry {
	return feedback.Entry{
		ID: number(v[0]), User: text(v[1]), Session: text(v[2]), At: moment(v[3]), Rating: int(number(v[4])), Event: number(v[5]),
		Reason: text(v[6]), Metadata: bytesOf(v[7]), Polarity: text(v[8]), Permissions: text(v[9]), Email: text(v[10]), Version: text(v[11]),
	}
}

// Add implements feedback.Store.
func (s feedbackStore) Add(ctx context.Context, e feedback.Entry) (feedback.Entry, error) {
	err := s.db.write(ctx, func(c *conn) error {
		if e.Rating > 0 {
			if _, err := c.exec("DELETE FROM deckhand.feedback WHERE session = $1 AND username = $2 AND event = $3 AND rating > 0", e.Session, e.User, e.Event); err != nil {
				return err
			}
		}
		var metadata any
		if e.Metadata != nil {
			metadata = e.Metadata
		}
		_, err := c.one(`INSERT INTO deckhand.feedback (username, session, at, rating, event, reason, metadata, polarity, permissions, email, version)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) RETURNING id`, func(v []any) { e.ID = number(v[0]) },
			e.User, e.Session, micros(e.At), int64(e.Rating), e.Event, e.Reason, metadata, e.Polarity, e.Permissions, e.Email, e.Version)
		if err != nil {
			return err
		}
		_, err = c.exec("DELETE FROM deckhand.feedback WHERE id IN (SELECT id FROM deckhand.feedback WHERE session = $1 ORDER BY id DESC OFFSET $2)", e.Session, int64(feedback.Kept))
		return err
	})
	return e, err
}

// Ratings implements feedback.Store.
func (s feedbackStore) Ratings(ctx context.Context, user, session string) ([]feedback.Entry, error) {
	return s.read(ctx, feedback.Kept, selectFeedback+" WHERE session = $1 AND username = $2 AND rating > 0 ORDER BY event", session, user)
}

// Page implements feedback.Store.
func (s feedbackStore) Page(ctx context.Context, before int64, limit int) ([]feedback.Entry, error) {
	if limit <= 0 {
		return nil, ctx.Err()
	}
	if before <= 0 {
		before = 1<<63 - 1
	}
	return s.read(ctx, limit, selectFeedback+" WHERE id < $1 ORDER BY id DESC", before)
}

func (s feedbackStore) read(ctx context.Context, limit int, sql string, args ...any) (found []feedback.Entry, err error) {
	err = s.db.read(ctx, func(c *conn) error {
		return c.query(sql, func(v []any) error {
			if found = append(found, feedbackOf(v)); len(found) == limit {
				return enough
			}
			return nil
		}, args...)
	})
	return found, err
}

// Forget implements feedback.Store.
func (s feedbackStore) Forget(ctx context.Context, session string) error {
	return s.db.write(ctx, func(c *conn) error {
		_, err := c.exec("DELETE FROM deckhand.feedback WHERE session = $1", session)
		return err
	})
}

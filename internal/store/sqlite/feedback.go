package sqlite

import (
	"context"
	"database/sql/driver"

	"deckhand/internal/feedback"
)

// Feedback is the store of what people say of the agent's work.
func (db *DB) Feedback() feedback.Store { return feedbackStore{db} }

// feedbackStore has a type of its own because its methods have general names.
type feedbackStore struct{ db *DB }

const selectFeedback = "SELECT id, user, session, at, rating, event, reason, metadata, polarity, permissions, email, version FROM feedback"

func feedbackOf(v []driver.Value) feedback.Entry {
	return feedback.Entry{
		ID: number(v[0]), User: text(v[1]), Session: text(v[2]), At: moment(v[3]), Rating: int(number(v[4])), Event: number(v[5]),
		Reason: text(v[6]), Metadata: bytesOf(v[7]), Polarity: text(v[8]), Permissions: text(v[9]), Email: text(v[10]), Version: text(v[11]),
	}
}

// Add implements feedback.Store.
func (s feedbackStore) Add(ctx context.Context, e feedback.Entry) (feedback.Entry, error) {
	err := s.db.write(ctx, len(e.Reason)+len(e.Metadata), func(c *conn) error {
		if e.Rating > 0 {
			if _, err := c.exec("DELETE FROM feedback WHERE session = ? AND user = ? AND event = ? AND rating > 0", e.Session, e.User, e.Event); err != nil {
				return err
			}
		}
		var metadata driver.Value
		if e.Metadata != nil {
			metadata = e.Metadata
		}
		_, err := c.one(`INSERT INTO feedback (user, session, at, rating, event, reason, metadata, polarity, permissions, email, version)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`, func(v []driver.Value) { e.ID = number(v[0]) },
			e.User, e.Session, micros(e.At), int64(e.Rating), e.Event, e.Reason, metadata, e.Polarity, e.Permissions, e.Email, e.Version)
		if err != nil {
			return err
		}
		_, err = c.exec("DELETE FROM feedback WHERE id IN (SELECT id FROM feedback WHERE session = ? ORDER BY id DESC LIMIT -1 OFFSET ?)", e.Session, int64(feedback.Kept))
		return err
	})
	return e, err
}

// Ratings implements feedback.Store.
func (s feedbackStore) Ratings(ctx context.Context, user, session string) ([]feedback.Entry, error) {
	return s.read(ctx, feedback.Kept, selectFeedback+" WHERE session = ? AND user = ? AND rating > 0 ORDER BY event", session, user)
}

// Page implements feedback.Store.
func (s feedbackStore) Page(ctx context.Context, before int64, limit int) ([]feedback.Entry, error) {
	if limit <= 0 {
		return nil, ctx.Err()
	}
	if before <= 0 {
		before = 1<<63 - 1
	}
	return s.read(ctx, limit, selectFeedback+" WHERE id < ? ORDER BY id DESC", before)
}

// read stops by itself in place of a LIMIT, which costs a statement per value.
func (s feedbackStore) read(ctx context.Context, limit int, sql string, args ...driver.Value) (found []feedback.Entry, err error) {
	err = s.db.readers.read(ctx, func(c *conn) error {
		return c.query(sql, func(v []driver.Value) error {
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
	return s.db.writeAtLast(ctx, 0, true, func(c *conn) error {
		_, err := c.exec("DELETE FROM feedback WHERE session = ?", session)
		return err
	})
}

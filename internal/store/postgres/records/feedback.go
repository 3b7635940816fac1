package records

import (
	"context"

	"deckhand/internal/feedback"
	"deckhand/internal/store/postgres/pg"
)

// Feedback is the store of what people say of the agent's work.
func (s *Store) Feedback() feedback.Store { return feedbackStore{s} }

// feedbackStore has a type of its own because its methods have general names.
type feedbackStore struct{ store *Store }

const selectFeedback = "SELECT id, username, session, at, rating, event, reason, metadata, polarity, permissions, email, version FROM deckhand.feedback"

func feedbackOf(v []any) feedback.Entry {
	return feedback.Entry{
		ID: pg.Number(v[0]), User: pg.Text(v[1]), Session: pg.Text(v[2]), At: pg.Moment(v[3]), Rating: int(pg.Number(v[4])), Event: pg.Number(v[5]),
		Reason: pg.Text(v[6]), Metadata: pg.Bytes(v[7]), Polarity: pg.Text(v[8]), Permissions: pg.Text(v[9]), Email: pg.Text(v[10]), Version: pg.Text(v[11]),
	}
}

// Add implements feedback.Store.
func (s feedbackStore) Add(ctx context.Context, e feedback.Entry) (feedback.Entry, error) {
	err := s.store.DB.Update(ctx, func(c *pg.Conn) error {
		if e.Rating > 0 {
			if _, err := c.Exec("DELETE FROM deckhand.feedback WHERE session = $1 AND username = $2 AND event = $3 AND rating > 0", e.Session, e.User, e.Event); err != nil {
				return err
			}
		}
		var metadata any
		if e.Metadata != nil {
			metadata = e.Metadata
		}
		_, err := c.One(`INSERT INTO deckhand.feedback (username, session, at, rating, event, reason, metadata, polarity, permissions, email, version)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) RETURNING id`, func(v []any) { e.ID = pg.Number(v[0]) },
			e.User, e.Session, pg.Micros(e.At), int64(e.Rating), e.Event, e.Reason, metadata, e.Polarity, e.Permissions, e.Email, e.Version)
		if err != nil {
			return err
		}
		_, err = c.Exec("DELETE FROM deckhand.feedback WHERE id IN (SELECT id FROM deckhand.feedback WHERE session = $1 ORDER BY id DESC OFFSET $2)", e.Session, int64(feedback.Kept))
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
	err = s.store.DB.View(ctx, func(c *pg.Conn) error {
		return c.Query(sql, func(v []any) error {
			if found = append(found, feedbackOf(v)); len(found) == limit {
				return pg.Enough
			}
			return nil
		}, args...)
	})
	return found, err
}

// Forget implements feedback.Store.
func (s feedbackStore) Forget(ctx context.Context, session string) error {
	return s.store.DB.Update(ctx, func(c *pg.Conn) error {
		_, err := c.Exec("DELETE FROM deckhand.feedback WHERE session = $1", session)
		return err
	})
}

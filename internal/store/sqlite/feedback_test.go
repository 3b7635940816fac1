package sqlite

import (
	"database/sql/driver"
	"strings"
	"testing"

	"deckhand/internal/feedback"
	"deckhand/internal/feedback/feedbacktest"
)

func TestFeedback(t *testing.T) {
	feedbacktest.Run(t, func(t *testing.T) feedback.Store { return openNew(t).Feedback() })
}

// Nothing of it reads the whole table, or sorts.
func TestFeedbackIsFoundByIndex(t *testing.T) {
	db := openNew(t)
	for sql, args := range map[string][]driver.Value{
		selectFeedback + " WHERE session = ? AND user = ? AND rating > 0 ORDER BY event": {"a", "ada"},
		selectFeedback + " WHERE id < ? ORDER BY id DESC":                                {int64(9)},
		"DELETE FROM feedback WHERE session = ?":                                         {"a"},
	} {
		must(t, db.readers.read(t.Context(), func(c *conn) error {
			return c.query("EXPLAIN QUERY PLAN "+sql, func(v []driver.Value) error {
				if plan := text(v[3]); !strings.HasPrefix(plan, "SEARCH feedback USING ") {
					t.Errorf("%s: the plan is %q", sql, plan)
				}
				return nil
			}, args...)
		}))
	}
}

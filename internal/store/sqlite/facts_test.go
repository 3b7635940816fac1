package sqlite

import (
	"testing"

	"deckhand/internal/notify"
)

// What a transaction read once is read again after it was changed, in the same transaction and
// in the next one.
func TestFactsFollowChanges(t *testing.T) {
	t.Parallel()
	db := listening(t)
	must(t, db.Webhooks().RemoveWebhook(t.Context(), "maria", "a"))
	look := func(c *conn, when string, want bool) {
		t.Helper()
		if f, err := c.facts(); err != nil || f.webhooks != want {
			t.Errorf("%s: webhooks %t, want %t: %v", when, f.webhooks, want, err)
		}
	}
	must(t, db.write(t.Context(), 0, func(c *conn) error {
		look(c, "none", false)
		err := tx{c: c, db: db, queue: notify.Queue, wrote: new(bool)}.PutWebhook(notify.Webhook{ID: "b", User: "maria", Sealed: []byte("x")})
		look(c, "one was added", true)
		return err
	}))
	other := openAt(t, db.path)
	must(t, other.write(t.Context(), 0, func(c *conn) error {
		_, err := c.exec("DELETE FROM webhooks")
		return err
	}))
	must(t, db.write(t.Context(), 0, func(c *conn) error {
		look(c, "another process removed it", false)
		return nil
	}))
}

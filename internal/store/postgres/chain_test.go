package postgres

import (
	"errors"
	"testing"
	"time"

	"deckhand/internal/session"
	"deckhand/internal/store/postgres/pg"
)

// whole reads a log from its beginning, not from memory, and returns how many events came and the error.
func whole(t *testing.T, db *DB, id session.ID) (n int, err error) {
	t.Helper()
	db.recent.Forget(id)
	for _, err := range db.Read(t.Context(), id, 0) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// What is changed in the database is noticed, before and after rows were joined, and the doctor can accept it.
func TestChain(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	first := newSession(db.NewID())
	must(t, db.Append(t.Context(), first))
	b := first
	for range 10 {
		b = noted(b, "a line")
		must(t, db.Append(t.Context(), b))
	}
	tamper := func(sql string) {
		t.Helper()
		must(t, db.base.Update(t.Context(), func(c *pg.Conn) error {
			n, _, _, err := db.findSession(c, first.ID)
			if err == nil {
				_, err = c.Exec(sql, n)
			}
			return err
		}))
	}
	expect := func(want int, damaged bool) {
		t.Helper()
		if got, err := whole(t, db.DB, first.ID); got != want || errors.Is(err, session.ErrCorrupt) != damaged {
			t.Errorf("%d events, %v", got, err)
		}
	}
	expect(12, false)
	tamper("UPDATE deckhand.events SET at = at + 1 WHERE n = $1 AND last = 7")
	expect(6, true)
	must(t, db.RestartChain(t.Context(), first.ID))
	expect(12, false)
	tamper("UPDATE deckhand.events SET body = substr(body, 1, length(body) - 17) WHERE n = $1 AND last = 12")
	expect(11, true)
	must(t, db.RestartChain(t.Context(), first.ID))
	must(t, db.Tend(t.Context(), time.Now().Add(time.Hour)))
	expect(12, false)
	db = db.reopened(t)
	b = noted(b, "more")
	must(t, db.Append(t.Context(), b))
	expect(13, false)
	row := b.Row
	row.Last = 5
	must(t, db.Repair(t.Context(), first.ID, 5, row))
	expect(5, false)
	tamper("UPDATE deckhand.events SET body = substr(body, 1, length(body) - 17) WHERE n = $1")
	expect(5, true)
}

// A long log is read in pieces. A session that another server deletes in between is not damaged.
func TestDeletedWhileRead(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	first := newSession(db.NewID())
	must(t, db.Append(t.Context(), first))
	b := first
	for range pieceRows {
		b = noted(b, "a line")
		must(t, db.Append(t.Context(), b))
	}
	db.recent.Forget(first.ID)
	var last session.Event
	for e, err := range db.Read(t.Context(), first.ID, 0) {
		must(t, err)
		if e.Number == 1 {
			gone := noted(b, "")
			gone.Events[0].Payload, gone.Row.Deleted = session.Deleted{}, true
			must(t, db.Append(t.Context(), gone))
		}
		last = e
	}
	if last.Payload != (session.Payload)(session.Deleted{}) {
		t.Errorf("read until event %d, %T", last.Number, last.Payload)
	}
}

package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"
	"time"

	"deckhand/internal/session"
	"deckhand/internal/store/packed"
)

// whole reads a log from its beginning, not from memory, and returns how many events came and the error.
func whole(db *DB, id session.ID) (n int, err error) {
	db.recent.Forget(id)
	for _, err := range db.Read(context.Background(), id, 0) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// tampered runs a statement on the events of the session with the number n.
func tampered(t *testing.T, db *DB, sql string, args ...driver.Value) {
	t.Helper()
	must(t, db.write(t.Context(), 0, func(c *conn) error {
		changed, err := c.exec(sql, args...)
		if err == nil && changed == 0 {
			err = errors.New("nothing was changed")
		}
		return err
	}))
}

// grown is a session with 12 events in 11 rows, and its number.
func grown(t *testing.T, db *DB) (first session.Batch, n int64) {
	t.Helper()
	first = newSession()
	must(t, db.Append(t.Context(), first))
	for i := range int64(10) {
		must(t, db.Append(t.Context(), batch(first, 2+i, 1)))
	}
	must(t, db.readers.read(t.Context(), func(c *conn) (err error) {
		n, _, _, err = db.findSession(c, first.ID)
		return err
	}))
	return first, n
}

// What is changed in the file is noticed, up to where the log is good, also after rows were joined. The doctor can
// accept it.
func TestChain(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]struct {
		sql  string
		good int
	}{
		"a word":             {"UPDATE events SET body = CAST(replace(CAST(body AS TEXT), 'line', 'lime') AS BLOB) WHERE id = ?", 6},
		"the time":           {"UPDATE events SET at = at + 1 WHERE id = ?", 6},
		"a mark":             {"UPDATE events SET body = CAST(substr(body, 1, length(body) - 1) || x'00' AS BLOB) WHERE id = ?", 6},
		"a mark is removed":  {"UPDATE events SET body = substr(body, 1, length(body) - 17) WHERE id = ?", 6},
		"a row of another":   {"UPDATE events SET body = (SELECT body FROM events e WHERE e.id = events.id - 1) WHERE id = ?", 6},
		"all marks are gone": {"UPDATE events SET body = substr(body, 1, length(body) - 17) WHERE id >> 32 = ? >> 32", 12},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			db := openNew(t)
			first, n := grown(t, db)
			if got, err := whole(db, first.ID); got != 12 || err != nil {
				t.Fatalf("before: %d events, %v", got, err)
			}
			tampered(t, db, change.sql, key(n, 7))
			got, err := whole(db, first.ID)
			var broken interface{ ChainBroken() int64 }
			if got != change.good || !errors.Is(err, session.ErrCorrupt) || !errors.As(err, &broken) {
				t.Errorf("%d events, %v", got, err)
			}
			must(t, db.RestartChain(t.Context(), first.ID))
			if got, err = whole(db, first.ID); got != 12 || err != nil {
				t.Errorf("after a restart: %d events, %v", got, err)
			}
			db = reopened(t, db)
			must(t, db.Append(t.Context(), batch(first, 12, 1)))
			if got, err = whole(db, first.ID); got != 13 || err != nil {
				t.Errorf("after an append: %d events, %v", got, err)
			}
		})
	}
}

// Joined rows keep the chain, and a change in them is noticed.
func TestChainOfJoinedRows(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	first, n := grown(t, db)
	must(t, db.Tend(t.Context(), time.Now().Add(time.Hour)))
	if got, err := whole(db, first.ID); got != 12 || err != nil {
		t.Fatalf("%d events, %v", got, err)
	}
	db = reopened(t, db) // the mark is read from the joined row
	must(t, db.Append(t.Context(), batch(first, 12, 2)))
	if got, err := whole(db, first.ID); got != 14 || err != nil {
		t.Fatalf("%d events, %v", got, err)
	}
	must(t, db.write(t.Context(), 0, func(c *conn) error {
		var body []byte
		if _, err := c.one("SELECT body FROM events WHERE id = ?", func(v []driver.Value) { body = packed.Opened(bytesOf(v[0])) }, key(n, 12)); err != nil {
			return err
		}
		forged := packed.Compress([]byte(strings.Replace(string(body), "line", "lime", 1)))
		_, err := c.exec("UPDATE events SET body = ? WHERE id = ?", forged, key(n, 12))
		return err
	}))
	if got, err := whole(db, first.ID); got != 0 || !errors.Is(err, session.ErrCorrupt) {
		t.Errorf("%d events, %v", got, err)
	}
}

// A log that is older than the chain can be read, and its first append with a mark covers what was before.
func TestChainOfAnOldLog(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	db.chain = packed.Chain{} // as an earlier version
	first, n := grown(t, db)
	db = reopened(t, db)
	db.UseChain([32]byte{1}, n)
	if got, err := whole(db, first.ID); got != 12 || err != nil {
		t.Fatalf("%d events, %v", got, err)
	}
	must(t, db.Append(t.Context(), batch(first, 12, 1)))
	if got, err := whole(db, first.ID); got != 13 || err != nil {
		t.Fatalf("%d events, %v", got, err)
	}
	tampered(t, db, "UPDATE events SET body = CAST(replace(CAST(body AS TEXT), 'line', 'lime') AS BLOB) WHERE id = ?", key(n, 5))
	if got, err := whole(db, first.ID); got != 12 || !errors.Is(err, session.ErrCorrupt) {
		t.Errorf("%d events, %v", got, err)
	}
	other := openAt(t, db.path)
	other.UseChain([32]byte{2}, n)
	if _, err := whole(other, first.ID); !errors.Is(err, session.ErrCorrupt) {
		t.Errorf("with another key: %v", err)
	}
}

// A log that is cut by the doctor has a chain, and so has what is left of a deleted session.
func TestChainOfACutLog(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	first := newSession()
	must(t, db.Append(t.Context(), first))
	must(t, db.Append(t.Context(), batch(first, 2, 5)))
	row := first.Row
	row.Last = 4
	must(t, db.Repair(t.Context(), first.ID, 4, row))
	must(t, db.Append(t.Context(), batch(first, 4, 1)))
	if got, err := whole(db, first.ID); got != 5 || err != nil {
		t.Errorf("%d events, %v", got, err)
	}
	gone := batch(first, 5, 1)
	gone.Events[0].Payload, gone.Row.Deleted = session.Deleted{}, true
	must(t, db.Append(t.Context(), gone))
	if got, err := whole(db, first.ID); got != 1 || err != nil {
		t.Errorf("%d events, %v", got, err)
	}
}

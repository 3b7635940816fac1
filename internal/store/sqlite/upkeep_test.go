package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"testing"
	"time"

	"deckhand/internal/session"
	"deckhand/internal/session/logtest"
	"deckhand/internal/store/packed"
)

// tended has all upkeep done before each read.
type tended struct{ *DB }

func (d tended) Reopen(t *testing.T) logtest.Store { return tended{reopened(t, d.DB)} }

func (d tended) Rows(ctx context.Context, q session.Query) ([]session.Row, error) {
	if err := d.Tend(ctx, time.Now().Add(time.Hour)); err != nil {
		return nil, err
	}
	return d.DB.Rows(ctx, q)
}

func (d tended) Read(ctx context.Context, id session.ID, after int64) iter.Seq2[session.Event, error] {
	err := d.compress(ctx, time.Now().Add(time.Hour), 0)
	d.recent.Forget(id)
	if err != nil {
		return func(yield func(session.Event, error) bool) { yield(session.Event{}, err) }
	}
	return d.DB.Read(ctx, id, after)
}

func TestLogWithUpkeep(t *testing.T) {
	t.Parallel()
	logtest.Run(t, func(t *testing.T) logtest.Store { return tended{openDeferring(t)} })
}

// openDeferring opens a new file whose sessions are filed when a test says so.
func openDeferring(t *testing.T) *DB {
	db := openNew(t)
	db.defers = true
	return db
}

// unfiled has sessions that are never filed.
type unfiled struct{ *DB }

func (d unfiled) Reopen(t *testing.T) logtest.Store {
	db := reopened(t, d.DB)
	db.defers = true
	return unfiled{db}
}

func TestLogBeforeUpkeep(t *testing.T) {
	t.Parallel()
	logtest.Run(t, func(t *testing.T) logtest.Store { return unfiled{openDeferring(t)} })
}

// A list has each session once: before it is filed, after it, with a number that was given away
// before those of others that are filed, and no more when it was deleted.
func TestListWhateverIsFiled(t *testing.T) {
	t.Parallel()
	db := openDeferring(t)
	look := func(when string, want ...string) {
		t.Helper()
		var got []string
		q := session.Query{Owner: "maria", Limit: 2} // two pages
		for range 2 {
			rows, err := db.Rows(t.Context(), q)
			must(t, err)
			for _, r := range rows {
				got = append(got, r.Title)
				at := packed.CursorOf(r)
				q.Before = &at
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: the list is %q, want %q", when, got, want)
		}
		totals, err := db.Totals(t.Context(), "2026-11")
		must(t, err)
		if n := totals["maria"].Sessions; n != int64(len(want)) {
			t.Errorf("%s: %d sessions are counted, want %d", when, n, len(want))
		}
	}
	late, first := titled(db, "late", noon), titled(db, "first", noon.Add(time.Second))
	last := titled(db, "last", noon.Add(2*time.Second))
	must(t, db.Append(t.Context(), first))
	look("not filed", "first")
	must(t, db.fileOwners(t.Context(), 0))
	look("filed", "first")
	must(t, db.Append(t.Context(), last))
	look("one of two filed", "last", "first")
	must(t, db.Append(t.Context(), late))
	look("stored late", "last", "first", "late")
	gone := batch(last, last.Row.Last, 1)
	gone.Row.Deleted = true
	must(t, db.Append(t.Context(), gone))
	for _, when := range []string{"deleted", "deleted and filed"} {
		look(when, "first", "late")
		must(t, db.fileOwners(t.Context(), 0))
	}
	if n := tableCount(t, db, "SELECT count(*) FROM sessions WHERE filed = 0"); n != 0 {
		t.Errorf("%d sessions are not filed", n)
	}
}

// Without upkeep, sessions are filed at once, and lists have nothing to read besides the index,
// unless upkeep left something.
func TestFiledWithoutUpkeep(t *testing.T) {
	t.Parallel()
	db := openDeferring(t)
	must(t, db.Append(t.Context(), titled(db, "left", noon)))
	db.defers = false
	must(t, db.Append(t.Context(), titled(db, "filed", noon.Add(time.Second))))
	if got := fmt.Sprint(found(t, db, "")); got != "[filed left]" {
		t.Errorf("the list is %s", got)
	}
	must(t, db.fileOwners(t.Context(), 0))
	must(t, db.Append(t.Context(), titled(db, "next", noon.Add(2*time.Second))))
	if got := fmt.Sprint(found(t, db, "")); got != "[next filed left]" {
		t.Errorf("the list is %s", got)
	}
	if n := tableCount(t, db, "SELECT count(*) FROM sessions WHERE n > (SELECT value FROM counters WHERE name = 'filed')"); n != 0 {
		t.Errorf("lists read %d sessions besides the index", n)
	}
}

// A session whose number is below those that are just being filed is not left out.
func TestStoredWhileOthersAreFiled(t *testing.T) {
	t.Parallel()
	db := openDeferring(t)
	late, first := titled(db, "late", noon), titled(db, "first", noon.Add(time.Second))
	must(t, db.Append(t.Context(), first))
	n, _ := db.ids.place(first.ID)
	must(t, db.Append(t.Context(), late))
	must(t, db.write(t.Context(), 0, func(c *conn) error {
		if _, err := c.exec(fileOwner, n); err != nil {
			return err
		}
		_, err := c.exec(moveFiled, n)
		return err
	}))
	for _, when := range []string{"not filed", "filed"} {
		if rows, err := db.Rows(t.Context(), session.Query{Owner: "maria", Limit: 9}); err != nil || len(rows) != 2 {
			t.Errorf("%s: %d sessions, %v; want 2", when, len(rows), err)
		}
		must(t, db.fileOwners(t.Context(), 0))
	}
}

// titled is a session with a title.
func titled(db *DB, title string, at time.Time) session.Batch {
	b := listedSession(db.NewID(), 1, at)
	b.Row.Title = title
	return b
}

func found(t *testing.T, db *DB, text string) (titles []string) {
	t.Helper()
	rows, err := db.Rows(t.Context(), session.Query{Owner: "maria", Text: text, Limit: 100})
	must(t, err)
	for _, r := range rows {
		titles = append(titles, r.Title)
	}
	return titles
}

// What a search finds is the same before a session is filed, after it, and after its
// title changed or it was deleted.
func TestSearchWhateverIsFiled(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	old, late := titled(db, "Mend the lexer", noon), titled(db, "Mend the parser", noon)
	must(t, db.Append(t.Context(), old))
	look := func(when, text string, want ...string) {
		t.Helper()
		if got := found(t, db, text); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %q finds %q, want %q", when, text, got, want)
		}
	}
	look("not filed", "LEXER", "Mend the lexer")
	second := titled(db, "Mend the compiler", noon.Add(time.Second))
	must(t, db.Append(t.Context(), second))
	must(t, db.fileAll(t.Context(), 0))
	look("filed", "mend the", "Mend the compiler", "Mend the lexer")
	look("filed", "lexer", "Mend the lexer")
	// Its number was given away before those of the others that are filed.
	must(t, db.Append(t.Context(), late))
	look("stored late", "parser", "Mend the parser")
	must(t, db.fileAll(t.Context(), 0))
	look("stored late and filed", "parser", "Mend the parser")
	renamed := batch(old, old.Row.Last, 1)
	renamed.Row.Title = "Rewrite the scanner"
	must(t, db.Append(t.Context(), renamed))
	for _, when := range []string{"renamed", "renamed and filed"} {
		look(when, "lexer")
		look(when, "scanner", "Rewrite the scanner")
		must(t, db.fileAll(t.Context(), 0))
	}
	gone := batch(second, second.Row.Last, 1)
	gone.Row.Deleted = true
	must(t, db.Append(t.Context(), gone))
	for _, when := range []string{"deleted", "deleted and filed"} {
		look(when, "compiler")
		must(t, db.fileAll(t.Context(), 0))
	}
}

// The background work of an open file reaches what is stored, without being asked.
func TestUpkeepFiles(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), t.TempDir()+"/deckhand.db", Options{Upkeep: true})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	must(t, db.Append(t.Context(), titled(db, "Mend the lexer", noon)))
	for tick := time.Tick(5 * time.Millisecond); tableCount(t, db, "SELECT count(*) FROM counters WHERE name IN ('words', 'filed') AND value = 1") != 2; <-tick {
	}
}

// rowsOf counts the rows of events of a session, and their bytes.
func rowsOf(t *testing.T, db *DB, id session.ID) (rows, size int64) {
	t.Helper()
	n, _ := db.ids.place(id)
	must(t, db.readers.read(t.Context(), func(c *conn) error {
		_, err := c.one("SELECT count(*), total(length(body)) FROM events WHERE id > ? AND id < ?", func(v []driver.Value) {
			f, _ := v[1].(float64)
			rows, size = number(v[0]), int64(f)
		}, key(n, 0), key(n+1, 0))
		return err
	}))
	return rows, size
}

// long is a stored session with many rows of events.
func long(t *testing.T, db *DB, rows int) session.Batch {
	t.Helper()
	first := newSession()
	first.ID = db.NewID()
	first.Row.ID = first.ID
	must(t, db.Append(t.Context(), first))
	for i := range rows {
		must(t, db.Append(t.Context(), batch(first, 2+3*int64(i), 3)))
	}
	return first
}

// compressed has the log of a session compressed, and read from the file again.
func compressed(t *testing.T, db *DB, id session.ID) {
	t.Helper()
	must(t, db.compress(t.Context(), time.Now().Add(time.Hour), 0))
	db.recent.Forget(id)
}

// A compressed log is small, is read like any other, and grows, ends and is repaired.
func TestCompressedLog(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	first := long(t, db, 1000)
	last := int64(2 + 3*1000)
	_, before := rowsOf(t, db, first.ID)
	compressed(t, db, first.ID)
	rows, size := rowsOf(t, db, first.ID)
	if rows < 2 || rows > 10 || size*4 > before {
		t.Errorf("%d bytes became %d in %d rows", before, size, rows)
	}
	t.Logf("%.1f bytes an event, %.1f before", float64(size)/float64(last), float64(before)/float64(last))
	for _, after := range []int64{0, 1, last / 2, last - 1} {
		verify(t, db, first.ID, after, last)
	}
	must(t, db.Append(t.Context(), batch(first, last, 2)))
	db.recent.Forget(first.ID)
	verify(t, db, first.ID, 0, last+2)
	compressed(t, db, first.ID)
	if again, _ := rowsOf(t, db, first.ID); again != rows+1 {
		t.Errorf("%d rows became %d", rows, again)
	}
	row, err := db.Row(t.Context(), first.ID)
	must(t, err)
	row.Last = 1000
	must(t, db.Repair(t.Context(), first.ID, 1000, row))
	verify(t, db, first.ID, 0, 1000)
	if cut, err := db.Dump(t.Context(), first.ID, 998); err != nil || !strings.Contains(string(cut), "A line of what happened.") {
		t.Errorf("dump: %s %v", cut, err)
	}
	end := batch(first, 1000, 1)
	end.Events[0].Payload, end.Row.Deleted = session.Deleted{}, true
	must(t, db.Append(t.Context(), end))
	if rows, _ := rowsOf(t, db, first.ID); rows != 1 {
		t.Errorf("%d rows are left of a deleted session", rows)
	}
}

// A log that is deleted while it is being compressed stays deleted.
func TestDeletedWhileCompressed(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	first := long(t, db, 10)
	n, _ := db.ids.place(first.ID)
	last := int64(2 + 3*10)
	l := cold{n: n, to: last}
	p, err := db.join(t.Context(), l)
	must(t, err)
	end := batch(first, last, 1)
	end.Events[0].Payload, end.Row.Deleted = session.Deleted{}, true
	must(t, db.Append(t.Context(), end))
	must(t, db.replace(t.Context(), p, l))
	if rows, _ := rowsOf(t, db, first.ID); rows != 1 {
		t.Errorf("%d rows are left of a deleted session", rows)
	}
}

// A damaged log is left as it is, for the doctor.
func TestDamagedLogIsNotCompressed(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	first := long(t, db, 10)
	n, _ := db.ids.place(first.ID)
	must(t, db.write(t.Context(), 0, func(c *conn) error {
		_, err := c.exec("UPDATE events SET body = x'05' WHERE id = ?", key(n, 5))
		return err
	}))
	before, _ := rowsOf(t, db, first.ID)
	compressed(t, db, first.ID)
	if after, _ := rowsOf(t, db, first.ID); after != before {
		t.Errorf("%d rows became %d", before, after)
	}
}

// Readers see every event once while the log under them is compressed.
func TestReadWhileCompressed(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	first := long(t, db, 2000)
	db.recent.Forget(first.ID)
	at := int64(0)
	for e, err := range db.Read(t.Context(), first.ID, 0) {
		must(t, err)
		if at++; e.Number != at {
			t.Fatalf("event %d follows event %d", e.Number, at-1)
		}
		if at == 300 {
			compressed(t, db, first.ID)
		}
	}
	if at != 2+3*2000 {
		t.Errorf("the log ends at %d", at)
	}
}

// If a log cannot be compressed, those after it still are. Compression begins when the server starts.
func TestUpkeepBeginsAtOnce(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	bad, good := long(t, db, 10), long(t, db, 10)
	n, _ := db.ids.place(bad.ID)
	must(t, db.write(t.Context(), 0, func(c *conn) error {
		if _, err := c.exec("UPDATE sessions SET updated_at = 1"); err != nil { // a long time ago
			return err
		}
		_, err := c.exec(fmt.Sprintf("CREATE TRIGGER refuse BEFORE DELETE ON events WHEN OLD.id >> 32 = %d BEGIN SELECT RAISE(ABORT, 'no'); END", n))
		return err
	}))
	before, _ := rowsOf(t, db, bad.ID)
	again, err := Open(t.Context(), db.path, Options{Upkeep: true})
	must(t, err)
	defer again.Close()
	for rows := before; rows == before; rows, _ = rowsOf(t, db, good.ID) {
		runtime.Gosched()
	}
	if after, _ := rowsOf(t, db, bad.ID); after != before {
		t.Errorf("%d rows became %d", before, after)
	}
	if err := db.compress(t.Context(), time.Now().Add(time.Hour), 0); err == nil {
		t.Error("the failure is not returned")
	}
}

package move_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"deckhand/internal/config"
	"deckhand/internal/move"
	"deckhand/internal/session"
	"deckhand/internal/store"
	"deckhand/internal/store/open"
	"deckhand/internal/store/postgres/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newFile(t testing.TB) config.Database {
	return config.Database{Path: filepath.Join(t.TempDir(), "deckhand.db")}
}

func newServer(t testing.TB) config.Database { return config.Database{Address: pgtest.New(t)} }

func side(t testing.TB, d config.Database, target bool) store.Side {
	t.Helper()
	s, err := open.Side(t.Context(), d, target)
	must(t, err)
	return s
}

func run(t testing.TB, from, to config.Database, change func(*move.Move)) (move.Report, error) {
	t.Helper()
	source := side(t, from, false)
	defer source.Close()
	target, err := open.Side(t.Context(), to, true)
	if err != nil {
		return move.Report{}, err
	}
	defer target.Close()
	m := move.Move{From: source, To: target}
	if change != nil {
		change(&m)
	}
	return m.Run(t.Context())
}

// Texts and blobs that databases store in different ways, if at all.
var (
	texts = []string{"plain", "", "zero\x00byte", "no utf-8 \xff\xfe", "\x01escaped", "Grüße 世界", strings.Repeat("long ", 2000)}
	blobs = [][]byte{{}, {0}, []byte("some"), bytes.Repeat([]byte{0xff, 0x00}, 5000)}
)

// nullable are the columns that may be empty.
var nullable = map[string]bool{
	"meta.value": true, "keys.expires_at": true, "keys.revoked_at": true, "settings.body": true, "answers.header": true, "answers.body": true,
	"feedback.metadata": true, "webhooks.failing_since": true, "queue_items.print": true, "queue_items.next_at": true,
	"queue_items.body": true, "queue_items.details": true, "queue_lanes.due_at": true, "queue_lanes.until": true, "queue_lanes.ready_at": true,
}

const rowsEach = 9

// value is the value of a column in row i of a table. Keys differ, and references name rows that exist.
func value(t store.Table, column, i int) any {
	c := t.Columns[column]
	switch name := t.Name + "." + c.Name; {
	case c.Name == "username":
		return fmt.Sprintf("users %d", i)
	case t.Name == "threads" && c.Name == "integration":
		return fmt.Sprintf("integrations %d", i)
	case t.Name == "queue_items" && c.Name == "queue", t.Name == "queue_items" && c.Name == "owner":
		return fmt.Sprintf("queue_owners %d", i)
	case t.Name == "counters" && c.Name == "name":
		return "access"
	case nullable[name] && i%3 == 0:
		return nil
	case name == "feedback.id", name == "feedback.rating":
		return int64(10 + i)
	case c.Type == store.Bool:
		return i%2 == 0
	case c.Type == store.Int:
		return int64(1)<<62 - int64(i)
	case c.Type == store.Blob && name == "keys.hash":
		return fmt.Appendf(nil, "hash %d", i)
	case c.Type == store.Blob:
		return blobs[i%len(blobs)]
	case column < t.Key, name == "queue_items.id", name == "queue_items.print":
		return fmt.Sprintf("%s %d", t.Name, i)
	}
	return texts[i%len(texts)]
}

// populate makes an installation with rows in every table.
func populate(t testing.TB, d config.Database) {
	t.Helper()
	db, err := open.Database(t.Context(), d, store.Options{})
	must(t, err)
	at := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 20 {
		events := []session.Event{{At: at, Payload: session.Created{Owner: fmt.Sprintf("users %d", i%3)}}, {At: at, Payload: session.Titled{Title: fmt.Sprintf("Task %d Grüße", i)}}}
		for j := range 10 * i {
			events = append(events, session.Event{At: at.Add(time.Duration(j) * time.Second), Payload: session.Imported{Said: &session.UserSaid{Text: fmt.Sprint("message ", j)}}})
		}
		id := db.NewID()
		if i%4 == 0 {
			id = session.ID(fmt.Sprintf("chosen-%d", i))
		}
		batches, st, err := session.Import(id, append(events, session.Event{At: at.Add(time.Hour), Payload: session.Stopped{}}))
		must(t, err)
		must(t, db.AppendAll(t.Context(), batches))
		if i == 7 { // a tombstone
			e := session.Event{Number: st.Last + 1, At: at.Add(2 * time.Hour), Payload: session.Deleted{}}
			must(t, db.Append(t.Context(), session.Batch{ID: id, After: st.Last, Events: []session.Event{e}, Row: st.Apply(e).Row()}))
		}
	}
	_, err = db.SetMetaOnce(t.Context(), "instance", []byte("0123456789abcdef"))
	must(t, err)
	must(t, db.(interface {
		Tend(context.Context, time.Time) error
	}).Tend(t.Context(), at.Add(90*time.Minute))) // compresses some logs
	must(t, db.Close())
	s := side(t, d, true)
	defer s.Close()
	for _, table := range store.Tables {
		var rows [][]any
		switch table.Name {
		case store.SessionsTable, store.EventsTable, "names":
			continue
		case "sequences":
			rows = [][]any{{"feedback", int64(99)}} // the last ones were deleted
		case "counters":
			rows = [][]any{{"access", int64(7)}}
		default:
			for i := range rowsEach {
				row := make([]any, len(table.Columns))
				for c := range row {
					row[c] = value(table, c, i)
				}
				rows = append(rows, row)
			}
		}
		must(t, s.Write(t.Context(), table, rows, []byte("{}"), table.Name == "counters"))
	}
	must(t, s.Done(t.Context()))
}

// all reads everything that travels.
func all(t testing.TB, d config.Database) map[string][]string {
	t.Helper()
	s := side(t, d, false)
	defer s.Close()
	out := map[string][]string{}
	for _, table := range store.Tables {
		must(t, s.Read(t.Context(), table, nil, 100_000, func(row []any) error {
			out[table.Name] = append(out[table.Name], fmt.Sprintf("%#v", row))
			return nil
		}))
		if len(out[table.Name]) == 0 {
			t.Fatalf("the table %s of %s has no rows, so its copy is not tested", table.Name, s)
		}
	}
	return out
}

func equal(t testing.TB, a, b map[string][]string) {
	t.Helper()
	for name := range a {
		if !reflect.DeepEqual(a[name], b[name]) {
			t.Errorf("the table %s:\n%.2000s\nwas:\n%.2000s", name, strings.Join(b[name], "\n"), strings.Join(a[name], "\n"))
		}
	}
}

// An installation with rows in every table moves to PostgreSQL and back, and stays the same to the byte. The source does not
// change, and both databases go on from there.
func TestThereAndBack(t *testing.T) {
	t.Parallel()
	first, middle, last := newFile(t), newServer(t), newFile(t)
	populate(t, first)
	before, err := os.ReadFile(first.Path)
	must(t, err)
	want := all(t, first)
	for _, step := range [][2]config.Database{{first, middle}, {middle, last}} {
		report, err := run(t, step[0], step[1], func(m *move.Move) { m.Rows = 7 })
		must(t, err)
		if len(report.Tables) != len(store.Tables) || report.Conversations != 20 || report.Already {
			t.Errorf("%+v", report)
		}
		for _, d := range report.Tables {
			if d.From != d.To || d.From.Rows != int64(len(want[d.Table])) {
				t.Errorf("%s: %d rows, want %d", d.Table, d.From.Rows, len(want[d.Table]))
			}
		}
		equal(t, want, all(t, step[1]))
		if report, err = run(t, step[0], step[1], nil); err != nil || !report.Already {
			t.Errorf("a second run: %+v %v", report, err)
		}
	}
	if after, err := os.ReadFile(first.Path); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the source has changed: %v", err)
	}
	for _, d := range []config.Database{middle, last} {
		goesOn(t, d)
	}
}

// A database that an installation was moved to has an ID of its own, which a second run keeps: servers that use the source again
// must not receive the messages of its servers.
func TestCopyID(t *testing.T) {
	t.Parallel()
	source, target := newServer(t), newServer(t)
	populate(t, source)
	id := func(d config.Database) string {
		t.Helper()
		db, err := open.Database(t.Context(), d, store.Options{})
		must(t, err)
		defer db.Close()
		id, err := db.(interface {
			CopyID(context.Context) (string, error)
		}).CopyID(t.Context())
		must(t, err)
		return id
	}
	_, err := run(t, source, target, nil)
	must(t, err)
	moved := id(target)
	if moved == "" || moved == id(source) {
		t.Errorf("the target has the ID %q", moved)
	}
	_, err = run(t, source, target, nil)
	must(t, err)
	if again := id(target); again != moved {
		t.Errorf("the ID was %q and is %q", moved, again)
	}
}

// goesOn uses a database after a move: searches, appends and new IDs work.
func goesOn(t *testing.T, d config.Database) {
	t.Helper()
	db, err := open.Database(t.Context(), d, store.Options{})
	must(t, err)
	defer db.Close()
	rows, err := db.Rows(t.Context(), session.Query{Owner: "users 1", Text: "task 13", Limit: 10})
	if err != nil || len(rows) != 1 || rows[0].Title != "Task 13 Grüße" {
		t.Fatalf("%s: search finds %+v %v", d, rows, err)
	}
	if _, err := db.Row(t.Context(), "chosen-8"); err != nil {
		t.Errorf("%s: %v", d, err)
	}
	var st session.State
	st.ID = rows[0].ID
	for e, err := range db.Read(t.Context(), rows[0].ID, 0) {
		must(t, err)
		st = st.Apply(e)
	}
	e := session.Event{Number: st.Last + 1, At: time.Now(), Payload: session.Titled{Title: "Another"}}
	must(t, db.Append(t.Context(), session.Batch{ID: st.ID, After: st.Last, Events: []session.Event{e}, Row: st.Apply(e).Row()}))
	seen := map[session.ID]bool{}
	for range 3 {
		batches, _, err := session.Import(db.NewID(), []session.Event{{At: time.Now(), Payload: session.Created{Owner: "users 1"}}, {At: time.Now(), Payload: session.Stopped{}}})
		must(t, err)
		must(t, db.AppendAll(t.Context(), batches))
		seen[batches[0].ID] = true
	}
	list, err := db.Rows(t.Context(), session.Query{Owner: "users 1", Limit: 3})
	if err != nil || len(list) != 3 || !seen[list[0].ID] || !seen[list[1].ID] || !seen[list[2].ID] {
		t.Errorf("%s: the newest are %+v %v", d, list, err)
	}
	must(t, db.Check(t.Context()))
}

// A move that ends after any batch continues there. Meanwhile no server can use the target, and no other installation can be
// moved into it.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	source, other := newFile(t), newFile(t)
	populate(t, source)
	populate(t, other)
	want := all(t, source)
	for name, target := range map[string]config.Database{"postgres": newServer(t), "sqlite": newFile(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ends := map[string]int{} // how often it ended in each phase
			for runs := 0; ; runs++ {
				if runs > 200 {
					t.Fatal("it does not end")
				}
				from, to := side(t, source, false), side(t, target, true)
				ctx, stop := context.WithCancel(t.Context())
				batches := 0
				m := move.Move{From: from, To: to, Rows: 5, OnProgress: func(p move.Progress) {
					if batches++; p.Phase == move.Copying && batches > runs%4 || p.Phase != move.Copying && ends[p.Phase] == 0 {
						ends[p.Phase]++
						stop()
					}
				}}
				_, err := m.Run(ctx)
				stop()
				must(t, errors.Join(from.Close(), to.Close()))
				if err == nil {
					break
				}
				if !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				if runs < 3 || ends[move.Verifying] > 0 {
					unusable(t, other, target)
				}
			}
			if ends[move.Copying] < 15 || ends[move.Indexing] != 1 || ends[move.Verifying] != 1 {
				t.Errorf("it ended at %v", ends)
			}
			equal(t, want, all(t, target))
		})
	}
}

// unusable checks what cannot be done with the target of an unfinished move.
func unusable(t *testing.T, other, target config.Database) {
	t.Helper()
	if _, err := open.Database(t.Context(), target, store.Options{}); err == nil || !strings.Contains(err.Error(), "run the same deckhand migrate command again") {
		t.Fatalf("a server uses it: %v", err)
	}
	if _, err := run(t, other, target, nil); !errors.Is(err, move.ErrOther) {
		t.Fatalf("another installation moves into it: %v", err)
	}
	s := side(t, target, false)
	defer s.Close()
	if _, err := (&move.Move{From: s, To: s}).Run(t.Context()); !errors.Is(err, move.ErrUnfinished) {
		t.Fatalf("it is a source: %v", err)
	}
}

// A target with other data is refused, and a copy that differs is reported with the conversation that does.
func TestRefusedTargets(t *testing.T) {
	t.Parallel()
	source, other := newFile(t), newFile(t)
	populate(t, source)
	populate(t, other)
	if _, err := run(t, source, other, nil); !errors.Is(err, move.ErrOther) {
		t.Errorf("data of another installation: %v", err)
	}
	for name, target := range map[string]config.Database{"postgres": newServer(t), "sqlite": newFile(t)} {
		_, err := run(t, source, target, nil)
		must(t, err)
		db, err := open.Database(t.Context(), target, store.Options{})
		must(t, err)
		row, err := db.Row(t.Context(), "chosen-8")
		must(t, err)
		e := session.Event{Number: row.Last + 1, At: time.Now(), Payload: session.Titled{Title: "Changed"}}
		row.Title, row.Last = "Changed", row.Last+1
		must(t, db.Append(t.Context(), session.Batch{ID: row.ID, After: row.Last - 1, Events: []session.Event{e}, Row: row}))
		must(t, db.Close())
		_, err = run(t, source, target, nil)
		if !errors.Is(err, move.ErrDiffers) || !strings.Contains(err.Error(), "conversation chosen-8") || !strings.Contains(err.Error(), "table events") || strings.Contains(err.Error(), "table users") {
			t.Errorf("%s: %v", name, err)
		}
	}
	empty := newServer(t)
	if _, err := open.Side(t.Context(), empty, false); err == nil || !strings.Contains(err.Error(), "no Deckhand data") {
		t.Errorf("an empty source: %v", err)
	}
}

// A table that a migration of the schema adds is carried or refused, never forgotten.
func TestTablesAreKnown(t *testing.T) {
	t.Parallel()
	for _, d := range []config.Database{newFile(t), newServer(t)} {
		s := side(t, d, true) // which fails if the schema has an unknown table
		has, err := s.Schema(t.Context())
		must(t, err)
		must(t, s.Close())
		local := map[string]string{}
		for name := range has {
			if err := store.CheckSchema(map[string][]string{name: has[name]}, nil); strings.Contains(fmt.Sprint(err), "neither") {
				local[name] = "of the database"
			}
		}
		local["sessions.filed"] = "of the database"
		has["added"] = []string{"id"}
		if err := store.CheckSchema(has, local); err == nil || !strings.Contains(err.Error(), "the table added") {
			t.Errorf("%s: a new table is not noticed: %v", s, err)
		}
		delete(has, "added")
		has["users"] = append(has["users"], "added")
		if err := store.CheckSchema(has, local); err == nil || !strings.Contains(err.Error(), "the column added") {
			t.Errorf("%s: a new column is not noticed: %v", s, err)
		}
	}
}

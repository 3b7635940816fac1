package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deckhand/internal/session"
	"deckhand/internal/session/logtest"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childPath); path != "" {
		child(path)
		return
	}
	goleak.VerifyTestMain(m)
}

func openAt(t testing.TB, path string) *DB {
	t.Helper()
	db, err := Open(context.Background(), path, Options{})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	chained(t, db)
	return db
}

// chained gives a database the key of a chain, as the server does.
func chained(t testing.TB, db *DB) {
	t.Helper()
	start, err := db.ChainStart(context.Background())
	must(t, err)
	db.UseChain([32]byte{1}, start)
}

func openNew(t testing.TB) *DB {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "deckhand.db"))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// reopening lets the suite close the file and open it again.
type reopening struct{ *DB }

func (r reopening) Reopen(t *testing.T) logtest.Store {
	return reopening{reopened(t, r.DB)}
}

func TestLog(t *testing.T) {
	logtest.Run(t, func(t *testing.T) logtest.Store { return reopening{openNew(t)} })
}

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a?b#c%20 d.db")
	db := openAt(t, path)
	must(t, db.Ping(t.Context()))
	must(t, db.Healthy())
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, want 0600", info.Mode().Perm())
	}
	for pragma, want := range map[string]driver.Value{"journal_mode": "wal", "synchronous": int64(2), "foreign_keys": int64(1)} {
		got, err := pragmaOf(db, pragma)
		must(t, err)
		if got != want {
			t.Errorf("%s is %v, want %v", pragma, got, want)
		}
	}
	must(t, db.Close())
	must(t, db.Close())
	if left, _ := filepath.Glob(filepath.Dir(path) + "/*"); len(left) != 1 {
		t.Errorf("closing leaves %v", left)
	}
	if err := db.Append(t.Context(), newSession()); !errors.Is(err, ErrClosed) {
		t.Errorf("append after Close: %v", err)
	}
	if _, err := db.Row(t.Context(), "x"); !errors.Is(err, ErrClosed) {
		t.Errorf("read after Close: %v", err)
	}
}

// pragmaOf asks the writer's connection.
func pragmaOf(db *DB, name string) (v driver.Value, err error) {
	err = db.write(context.Background(), 0, func(c *conn) error {
		_, err := c.one("PRAGMA "+name, func(row []driver.Value) { v = row[0] })
		return err
	})
	return v, err
}

// Several processes that start together on a new file all find it ready.
func TestOpenTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deckhand.db")
	opened := make(chan error, 8)
	dbs := make([]*DB, 8)
	for i := range dbs {
		go func() {
			var err error
			dbs[i], err = Open(t.Context(), path, Options{})
			opened <- err
		}()
	}
	for range dbs {
		if err := <-opened; err != nil {
			t.Error(err)
		}
	}
	for _, db := range dbs {
		if db != nil {
			must(t, db.Append(t.Context(), newSession()))
			must(t, db.Close())
		}
	}
}

func TestNewer(t *testing.T) {
	db := openNew(t)
	must(t, db.write(t.Context(), 0, func(c *conn) error {
		_, err := c.exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (?, 1)", int64(schema+1))
		return err
	}))
	must(t, db.Close())
	_, err := Open(t.Context(), db.path, Options{})
	if !errors.Is(err, ErrNewer) {
		t.Fatalf("got %v, want ErrNewer", err)
	}
}

// The constant that spares us goose at every start must be the last migration's number.
func TestSchemaIsLastMigration(t *testing.T) {
	files, err := migrations.ReadDir("migrations")
	must(t, err)
	last := files[len(files)-1].Name()
	if want := fmt.Sprintf("%05d_", schema); !strings.HasPrefix(last, want) {
		t.Errorf("the last migration is %s, but schema is %d", last, schema)
	}
}

func TestNotADatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deckhand.db")
	must(t, os.WriteFile(path, []byte(strings.Repeat("This is a letter and no database. ", 100)), 0o600))
	if db, err := Open(t.Context(), path, Options{}); err == nil {
		_ = db.Close()
		t.Fatal("a letter was opened as a database")
	}
}

// Two processes on one file: what one remembers of a session is not believed
// when the other has changed it.
func TestTwoProcesses(t *testing.T) {
	a := openNew(t)
	b := openAt(t, a.path)
	first := newSession()
	must(t, a.Append(t.Context(), first))
	must(t, b.Append(t.Context(), batch(first, 2, 1)))
	if err := a.Append(t.Context(), batch(first, 2, 1)); !errors.Is(err, session.ErrConflict) {
		t.Errorf("got %v, want ErrConflict", err)
	}
	must(t, a.Append(t.Context(), batch(first, 3, 1)))
	must(t, b.Append(t.Context(), batch(first, 4, 1)))
	st, err := session.Fold(t.Context(), a, session.State{ID: first.ID})
	must(t, err)
	if st.Last != 5 {
		t.Errorf("the log ends at event %d, want 5", st.Last)
	}
}

// A list, and the questions asked at every start, must not look at every session.
func TestIndexesAreUsed(t *testing.T) {
	db := openNew(t)
	full := session.Query{Owner: "o", Repository: "r", Trigger: "t", Status: session.Running, Before: &session.Cursor{CreatedAt: time.Now(), ID: "x"}}
	plainList, plainArgs := list(session.Query{Owner: "o"})
	fullList, fullArgs := list(full)
	for _, test := range []struct {
		sql  string
		args []driver.Value
		want string
	}{
		{plainList, plainArgs, "sessions_by_owner (owner=? AND deleted=?)"},
		{fullList, fullArgs, "sessions_by_owner (owner=? AND deleted=? AND created_at<?)"},
		{selectWanting, nil, "USING INDEX sessions_by_attention"},
		{selectIdle, []driver.Value{int64(1)}, "USING INDEX sessions_by_attention"},
	} {
		var plan []string
		must(t, db.readers.read(t.Context(), func(c *conn) error {
			return c.query("EXPLAIN QUERY PLAN "+test.sql, func(row []driver.Value) error {
				plan = append(plan, text(row[3]))
				return nil
			}, test.args...)
		}))
		if !slices.ContainsFunc(plan, func(s string) bool { return strings.Contains(s, test.want) }) {
			t.Errorf("%s\nis planned as %q, want %s", test.sql, plan, test.want)
		}
		// Only the few that are not filed yet are sorted.
		filed, _, _ := strings.Cut(strings.Join(plan, "\n"), "RIGHT")
		if strings.Contains(test.sql, "owner = ?") && strings.Contains(filed, "TEMP B-TREE") {
			t.Errorf("%s\nsorts: %q", test.sql, plan)
		}
	}
}

func TestCheck(t *testing.T) {
	db := openNew(t)
	first := newSession()
	wrong := first
	wrong.Events = slices.Clone(first.Events)
	wrong.Events[1].Number = 7
	if err := db.Append(t.Context(), wrong); err == nil {
		t.Error("events with wrong numbers were stored")
	}
	if err := db.Append(t.Context(), session.Batch{ID: "x"}); err == nil {
		t.Error("a batch without events was stored")
	}
	must(t, db.Append(t.Context(), first))
	must(t, quickCheck(db))
}

func quickCheck(db *DB) error {
	return db.readers.read(context.Background(), func(c *conn) error {
		return c.query("PRAGMA quick_check", func(row []driver.Value) error {
			if row[0] != "ok" {
				return fmt.Errorf("quick_check: %v", row[0])
			}
			return nil
		})
	})
}

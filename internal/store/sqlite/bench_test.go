package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"deckhand/internal/session"
)

// The yardstick is one durable insert of one row into a table of its own, with
// the same settings: by one caller, and by 64 through the same group commit.

func BenchmarkRawInsert(b *testing.B) {
	db := benchDB(b)
	rawTable(b, db)
	for b.Loop() {
		if err := rawInsert(db); err != nil {
			b.Fatal(err)
		}
	}
	perSecond(b)
}

func BenchmarkRawInsertDatabaseSQL(b *testing.B) {
	db := benchDB(b)
	rawTable(b, db)
	std, err := sql.Open("sqlite", dsn(db.path, nil)+"?_txlock=immediate&_pragma=synchronous(full)")
	if err != nil {
		b.Fatal(err)
	}
	defer std.Close()
	std.SetMaxOpenConns(1)
	insert, err := std.Prepare(rawInsertSQL)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := insert.Exec(string(session.NewID()), time.Now().UnixMicro(), rawBody); err != nil {
			b.Fatal(err)
		}
	}
	perSecond(b)
}

func BenchmarkRawInsert64(b *testing.B) {
	db := benchDB(b)
	rawTable(b, db)
	parallel(b, 64, func() error { return rawInsert(db) })
	groups(b, db)
}

func BenchmarkCreate(b *testing.B) {
	db := benchDB(b)
	for b.Loop() {
		if err := db.Append(context.Background(), newSession()); err != nil {
			b.Fatal(err)
		}
	}
	perSecond(b)
}

func BenchmarkCreate64(b *testing.B) {
	db := benchDB(b)
	parallel(b, 64, func() error { return db.Append(context.Background(), newSession()) })
	groups(b, db)
}

// One caller, one session that grows.
func BenchmarkAppend(b *testing.B) {
	db := benchDB(b)
	next := growing(b, db)
	for b.Loop() {
		if err := next(); err != nil {
			b.Fatal(err)
		}
	}
	perSecond(b)
}

// The same, where every second batch reserves money under a limit and the others settle it.
func BenchmarkAppendMoney(b *testing.B) {
	db := benchDB(b)
	first := newSession()
	if err := db.Append(context.Background(), first); err != nil {
		b.Fatal(err)
	}
	last := int64(2)
	for b.Loop() {
		next := batch(first, last, 1)
		next.Charge = session.Charge{Month: "2026-11", Reserves: true, Reserved: 100, Limit: 1e18}
		if last%2 == 1 {
			next.Charge = session.Charge{Month: "2026-11", Reserves: true, Spent: 50}
		}
		if err := db.Append(context.Background(), next); err != nil {
			b.Fatal(err)
		}
		last++
	}
	perSecond(b)
}

// 64 callers, each with a session that grows.
func BenchmarkAppend64(b *testing.B) {
	db := benchDB(b)
	sessions := make(chan func() error, 64)
	for range 64 {
		sessions <- growing(b, db)
	}
	parallel(b, 64, func() error {
		next := <-sessions
		defer func() { sessions <- next }()
		return next()
	})
	groups(b, db)
}

func BenchmarkRead(b *testing.B) {
	db := benchDB(b)
	for _, n := range []int{10, 1000, 100_000} {
		first := newSession()
		if err := db.Append(context.Background(), first); err != nil {
			b.Fatal(err)
		}
		for last := int64(2); last < int64(n); {
			more := batch(first, last, min(1000, n-int(last)))
			if err := db.Append(context.Background(), more); err != nil {
				b.Fatal(err)
			}
			last += int64(len(more.Events))
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if st, err := session.Fold(context.Background(), db, session.State{ID: first.ID}); err != nil || st.Last != int64(n) {
					b.Fatal(st.Last, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/event")
		})
	}
}

func BenchmarkRow(b *testing.B) {
	db := benchDB(b)
	first := newSession()
	if err := db.Append(context.Background(), first); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := db.Row(context.Background(), first.ID); err != nil {
			b.Fatal(err)
		}
	}
}

func benchDB(b *testing.B) *DB {
	db, err := Open(context.Background(), filepath.Join(b.TempDir(), "bench.db"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	chained(b, db)
	return db
}

const rawInsertSQL = "INSERT INTO raw (id, at, body) VALUES (?, ?, ?)"

var rawBody = []byte(`{"owner":"maria","text":"Please fix the flaky test in the parser package."}`)

func rawTable(b *testing.B, db *DB) {
	err := db.write(context.Background(), 0, func(c *conn) error {
		_, err := c.exec("CREATE TABLE raw (id TEXT NOT NULL, at INTEGER NOT NULL, body BLOB NOT NULL)")
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
}

func rawInsert(db *DB) error {
	id := string(session.NewID())
	return db.write(context.Background(), len(rawBody), func(c *conn) error {
		_, err := c.exec(rawInsertSQL, id, time.Now().UnixMicro(), rawBody)
		return err
	})
}

// newSession is a conversation with its first message, as the door makes it.
func newSession() session.Batch {
	now := time.Now().UTC().Truncate(time.Microsecond)
	st := session.State{ID: session.NewID()}
	b := session.Batch{ID: st.ID, Events: []session.Event{
		{Number: 1, At: now, Payload: session.Created{Owner: "maria", Trigger: "gui", Repository: "maria/parser"}},
		{Number: 2, At: now, Payload: session.UserSaid{Text: "Please fix the flaky test in the parser package."}},
	}}
	for _, e := range b.Events {
		st = st.Apply(e)
	}
	b.Row = st.Row()
	return b
}

// batch is n more events of a session.
func batch(first session.Batch, after int64, n int) session.Batch {
	b := session.Batch{ID: first.ID, After: after, Row: first.Row}
	for i := range n {
		b.Events = append(b.Events, session.Event{
			Number: after + int64(i) + 1, At: first.Row.CreatedAt, Payload: session.Noted{ID: "n", Message: "A line of what happened."},
		})
	}
	b.Row.Last = after + int64(n)
	return b
}

// growing returns a function that appends one event to a session of its own.
func growing(b *testing.B, db *DB) func() error {
	first := newSession()
	if err := db.Append(context.Background(), first); err != nil {
		b.Fatal(err)
	}
	last := int64(2)
	return func() error {
		err := db.Append(context.Background(), batch(first, last, 1))
		last++
		return err
	}
}

func parallel(b *testing.B, callers int, do func() error) {
	left := atomic.Int64{}
	left.Store(int64(b.N))
	done := make(chan error, callers)
	b.ReportAllocs()
	b.ResetTimer()
	for range callers {
		go func() {
			for left.Add(-1) >= 0 {
				if err := do(); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range callers {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	perSecond(b)
}

func perSecond(b *testing.B) { b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s") }

func groups(b *testing.B, db *DB) {
	s := db.Stats()
	b.ReportMetric(float64(s.Writes)/float64(s.Commits), "writes/commit")
}

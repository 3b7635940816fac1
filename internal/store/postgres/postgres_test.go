package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

	"deckhand/internal/session"
	"deckhand/internal/session/logtest"
	"deckhand/internal/store/postgres/pg"
	"deckhand/internal/store/postgres/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var noon = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

// base is a database that has the schema.
var base = &pgtest.Template{Name: "base", Prepare: func(address string) error {
	db, err := Open(context.Background(), address, Options{})
	if err == nil {
		err = db.Close()
	}
	return err
}, Reset: `SET session_replication_role = replica;
	DO $$ DECLARE t text; BEGIN
		FOR t IN SELECT tablename FROM pg_tables WHERE schemaname = 'deckhand' AND tablename !~ '^events_|schema_version' LOOP
			EXECUTE 'DELETE FROM deckhand.' || t;
		END LOOP;
	END $$`}

// opened is an open database and its address.
type opened struct {
	*DB
	address string
}

func openAt(t testing.TB, address string) opened {
	t.Helper()
	db, err := Open(context.Background(), address, Options{})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	start, err := db.ChainStart(context.Background())
	must(t, err)
	db.UseChain([32]byte{1}, start) // as the server does
	return opened{db, address}
}

func openNew(t testing.TB) opened {
	t.Helper()
	return openAt(t, pgtest.Shared(t).Copy(t, base))
}

// reopened closes the database and opens it again.
func (o opened) reopened(t testing.TB) opened {
	t.Helper()
	must(t, o.Close())
	return openAt(t, o.address)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newSession is the first batch of a session with two events.
func newSession(id session.ID) session.Batch {
	st := session.State{ID: id}
	b := session.Batch{ID: id}
	for i, p := range []session.Payload{session.Created{Owner: "maria"}, session.Noted{ID: "n", Message: "first"}} {
		e := session.Event{Number: int64(i + 1), At: noon, Payload: p}
		b.Events = append(b.Events, e)
		st = st.Apply(e)
	}
	b.Row = st.Row()
	return b
}

// noted is a batch that continues one.
func noted(b session.Batch, message string) session.Batch {
	last := b.After + int64(len(b.Events))
	next := session.Batch{ID: b.ID, After: last, Row: b.Row, Events: []session.Event{{Number: last + 1, At: noon, Payload: session.Noted{ID: "n", Message: message}}}}
	next.Row.Last = last + 1
	return next
}

func readAll(t testing.TB, db session.Log, id session.ID, after int64) (out []session.Event) {
	t.Helper()
	for e, err := range db.Read(context.Background(), id, after) {
		must(t, err)
		out = append(out, e)
	}
	return out
}

// count runs a query for a number.
func count(t testing.TB, db *DB, sql string, args ...any) (n int64) {
	t.Helper()
	must(t, db.base.View(context.Background(), func(c *pg.Conn) error {
		_, err := c.One(sql, func(v []any) { n = pg.Number(v[0]) }, args...)
		return err
	}))
	return n
}

type reopening struct{ opened }

func (r reopening) Reopen(t *testing.T) logtest.Store { return reopening{r.reopened(t)} }

func TestLog(t *testing.T) {
	t.Parallel()
	logtest.Run(t, func(t *testing.T) logtest.Store { return reopening{openNew(t)} })
}

func TestLedger(t *testing.T) {
	t.Parallel()
	logtest.RunLedger(t, func(t *testing.T) logtest.LedgerStore { return reopening{openNew(t)} })
}

func TestMeta(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	got, err := db.Meta(t.Context(), "name")
	must(t, err)
	if got != nil {
		t.Errorf("a new database has %q", got)
	}
	won := make(chan string, 8)
	for i := range 8 {
		go func() {
			v, err := db.SetMetaOnce(t.Context(), "name", fmt.Append(nil, "value ", i))
			if err != nil {
				t.Error(err)
			}
			won <- string(v)
		}()
	}
	first := <-won
	for range 7 {
		if v := <-won; v != first {
			t.Errorf("two values are in force: %q and %q", v, first)
		}
	}
}

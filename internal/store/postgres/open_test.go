package postgres

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"deckhand/internal/advice"
	"deckhand/internal/session"
	"deckhand/internal/store"
	"deckhand/internal/store/postgres/pg"
	"deckhand/internal/store/postgres/pgtest"
	"deckhand/internal/store/postgres/refusal"
)

// Several processes that start together on an empty database all find it ready.
func TestOpenTogether(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	opened := make(chan error, 6)
	dbs := make([]*DB, 6)
	for i := range dbs {
		go func() {
			var err error
			dbs[i], err = Open(context.Background(), address, Options{})
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
			must(t, db.Append(t.Context(), newSession(db.NewID())))
			must(t, db.Check(t.Context()))
			must(t, db.Close())
			must(t, db.Close())
			if err := db.Append(t.Context(), newSession(session.NewID())); !errors.Is(err, pg.ErrClosed) {
				t.Errorf("append after Close: %v", err)
			}
			if _, err := db.Row(t.Context(), "x"); !errors.Is(err, pg.ErrClosed) {
				t.Errorf("read after Close: %v", err)
			}
		}
	}
}

func TestNewer(t *testing.T) {
	t.Parallel()
	db := openAt(t, pgtest.New(t))
	must(t, db.base.Update(t.Context(), func(c *pg.Conn) error {
		_, err := c.Exec("INSERT INTO deckhand.schema_version (version) VALUES ($1)", int64(schema+1))
		return err
	}))
	if _, err := Open(t.Context(), db.address, Options{}); !errors.Is(err, pg.ErrNewer) {
		t.Fatalf("got %v, want pg.ErrNewer", err)
	}
}

// During a rolling restart, servers of this version use a database that the next version has migrated, and
// start again on it. The next version may come and go.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	b := newSession(db.NewID())
	must(t, db.Append(t.Context(), b))
	must(t, db.base.Update(t.Context(), func(c *pg.Conn) error { // as a program that knows one migration more
		if err := c.Script("ALTER TABLE deckhand.sessions ADD COLUMN colour text; CREATE TABLE deckhand.colours (name text PRIMARY KEY)"); err != nil {
			return err
		}
		_, err := c.Exec("INSERT INTO deckhand.schema_version (version, needs) VALUES ($1, $2)", int64(schema+1), int64(schema))
		return err
	}))
	b = noted(b, "by a server that runs")
	must(t, db.Append(t.Context(), b))
	again := openAt(t, db.address)
	b = noted(b, "by one that was started again")
	must(t, again.Append(t.Context(), b))
	if got := readAll(t, openless(db), b.ID, 0); len(got) != 4 {
		t.Errorf("%d events", len(got))
	}
	must(t, again.Append(t.Context(), newSession(again.NewID())))
	must(t, again.Check(t.Context()))
}

// A database of the version before is brought up to date while a server of that version uses it.
func TestMigratedInUse(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	must(t, db.base.Update(t.Context(), func(c *pg.Conn) error { // the last migration was not run yet
		return c.Script("DELETE FROM deckhand.schema_version WHERE version = (SELECT max(version) FROM deckhand.schema_version); ALTER TABLE deckhand.schema_version DROP COLUMN needs")
	}))
	b := newSession(db.NewID())
	must(t, db.Append(t.Context(), b))
	next := openAt(t, db.address)
	b = noted(b, "by the next version")
	must(t, next.Append(t.Context(), b))
	b = noted(b, "by the version before")
	must(t, db.Append(t.Context(), b))
	if got := readAll(t, openless(next), b.ID, 0); len(got) != 4 {
		t.Errorf("%d events", len(got))
	}
}

func TestSchemaIsLastMigration(t *testing.T) {
	t.Parallel()
	files, err := migrations.ReadDir("migrations")
	must(t, err)
	last := files[len(files)-1].Name()
	if want := fmt.Sprintf("%05d_", schema); len(files) != schema || !strings.HasPrefix(last, want) {
		t.Errorf("the last migration is %s, but schema is %d", last, schema)
	}
	if len(oldest) != schema {
		t.Errorf("%d migrations say which programs can use the database after them", len(oldest))
	}
}

// No error says the password, whatever is wrong with the address.
func TestPasswordsAreNotTold(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"postgres://me:hunter2@127.0.0.1:1/db", "postgres://me:hunter2@127.0.0.1:notaport/db", "postgres://me:hunter2@[::1/db",
		"postgres://127.0.0.1:1/db?user=me&password=hunter2", "postgres://me:hunter2@127.0.0.1:1/db?pool_max_conns=none", "postgres://me:hunter2@127.0.0.1:1/db?sslmode=sometimes",
	} {
		_, err := Open(t.Context(), address, Options{})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// That a database cannot be reached is reported in one line, which says what to do.
func TestUnreachableDatabase(t *testing.T) {
	t.Parallel()
	const address = "postgres://me@127.0.0.1:1/db"
	_, err := Open(t.Context(), address, Options{})
	for _, err := range []error{err, Empty(t.Context(), address)} {
		if !errors.Is(err, pg.ErrDown) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v", err)
		}
	}
}

// An error of opening says why PostgreSQL refused it, and what to do.
func TestOpenAdvice(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	address := server.Database(t)
	db := openAt(t, address)
	must(t, db.base.Update(t.Context(), func(c *pg.Conn) error { return c.Script("CREATE ROLE weak LOGIN") }))
	empty := server.Database(t)
	as := func(address, user string) string { return strings.Replace(address, "user=postgres", "user="+user, 1) }
	for _, c := range []struct {
		address  string
		existing bool
		reason   string
		fix      string
	}{
		{server.Address("none"), false, `the database "none" does not exist (SQLSTATE 3D000)`, `CREATE DATABASE "none" OWNER "postgres"`},
		{as(address, "nobody_here"), false, `does not let the user "nobody_here" log in`, `CREATE ROLE "nobody_here" LOGIN`},
		{as(address, "weak"), false, `the user "weak" lacks a privilege`, "connect as the owner of the schema deckhand"},
		{as(empty, "weak"), false, `the user "weak" may not create the tables`, `GRANT CREATE ON DATABASE "test_`},
		{as(empty, "weak"), true, `the user "weak" may not create the tables`, `TO "weak"`},
		{"postgres://me@127.0.0.1:1/db", true, "the database cannot be reached: ", "host and port in --database-url"},
	} {
		_, err := Open(t.Context(), c.address, Options{Existing: c.existing})
		if err == nil {
			t.Errorf("%s: no error", c.address)
			continue
		}
		if text, fix := advice.Split(err); !strings.Contains(text, c.reason) || !strings.Contains(fix, c.fix) || strings.Contains(text, "\n") || strings.Count(text, "refused") > 1 {
			t.Errorf("%s: %q, fix %q", c.address, text, fix)
		}
	}
	// What was tried is rolled back.
	for range 2 {
		if _, err := Open(t.Context(), empty, Options{Existing: true}); !errors.Is(err, store.ErrNone) {
			t.Errorf("an empty database gave %v", err)
		}
	}
	// These need another configuration of PostgreSQL.
	for _, c := range []struct {
		err         error
		reason, fix string
	}{
		{&pgconn.PgError{Code: "28P01"}, "does not accept the password", "ALTER ROLE"},
		{&pgconn.PgError{Code: "28000", Message: `no pg_hba.conf entry for host "::1", user "u", database "d", no encryption`}, "without TLS", "sslmode=require"},
		{&pgconn.PgError{Code: "28000", Message: `no pg_hba.conf entry for host "::1"`}, "does not allow this connection", "pg_hba.conf, and reload"},
		{&pgconn.PgError{Code: "53300"}, "no free connections", "max_connections"},
		{&pgconn.PgError{Code: "42501", Message: `permission denied for database "d"`, Detail: "User does not have CONNECT privilege."}, "may not connect", `GRANT CONNECT ON DATABASE "d" TO "u"`},
		{errors.New("server refused TLS connection"), "requires TLS", "sslmode=disable"},
		{x509.UnknownAuthorityError{}, "certificate of PostgreSQL", "sslrootcert"},
	} {
		text, fix := advice.Split(refusal.Explain(&pgconn.Config{Database: "d", User: "u"}, "--database-url", c.err))
		if !strings.Contains(text, c.reason) || !strings.Contains(fix, c.fix) {
			t.Errorf("%v: %q, fix %q", c.err, text, fix)
		}
	}
}

// A second server does not get the database, until the first is gone.
func TestServerLease(t *testing.T) {
	t.Parallel()
	address := openNew(t).address
	first, err := Open(t.Context(), address, Options{Server: "first"})
	must(t, err)
	defer first.Close()
	must(t, first.Append(t.Context(), newSession(first.NewID())))
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	if db, err := Open(ctx, address, Options{Server: "third"}); err == nil {
		db.Close()
		t.Fatal("two servers have the database")
	}
	// The first is suspended for longer than it may, and another takes over.
	must(t, first.base.Update(t.Context(), func(c *pg.Conn) error {
		_, err := c.Exec("UPDATE deckhand.server_lease SET expires = clock_timestamp() - interval '1 second'")
		return err
	}))
	second, err := Open(t.Context(), address, Options{Server: "second"})
	must(t, err)
	defer second.Close()
	first.lease.renewed.Store(-int64(time.Hour)) // it wakes up
	if err := first.Append(t.Context(), newSession(first.NewID())); !errors.Is(err, ErrInUse) {
		t.Errorf("the first still writes: %v", err)
	}
	if err := first.SaveAnswer(t.Context(), answer); !errors.Is(err, ErrInUse) {
		t.Errorf("the first still writes: %v", err)
	}
	must(t, second.Append(t.Context(), newSession(second.NewID())))
	must(t, first.Close()) // and does not give away what it has not
	ctx, stop = context.WithTimeout(t.Context(), time.Second)
	defer stop()
	if db, err := Open(ctx, address, Options{Server: "third"}); err == nil {
		db.Close()
		t.Fatal("two servers have the database")
	}
	must(t, second.Close())
	third, err := Open(t.Context(), address, Options{Server: "third"})
	must(t, err)
	must(t, third.Close())
}

// A statement that takes too long ends, and so does one that waits too long for a lock; with the
// transaction, also through a pooler, nothing of that is left in the connection.
func TestLimitsAreOfTheTransaction(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	through := openAt(t, pgtest.Shared(t).Bounced(t)(db.address))
	for _, o := range []opened{db, through} {
		must(t, o.base.Update(t.Context(), func(c *pg.Conn) error {
			_, err := c.One("SELECT current_setting('statement_timeout') || ' ' || current_setting('lock_timeout')", func(v []any) {
				if pg.Text(v[0]) != "30s 10s" {
					t.Errorf("the limits of a write are %v", v)
				}
			})
			return err
		}))
		must(t, o.base.View(t.Context(), func(c *pg.Conn) error {
			_, err := c.One("SELECT current_setting('statement_timeout')", func(v []any) {
				if pg.Text(v[0]) != "30s" {
					t.Errorf("the limit of a read is %v", v)
				}
			})
			if err != nil {
				return err
			}
			return c.Script("DO $$ BEGIN IF current_setting('statement_timeout') <> '0' OR current_setting('enable_seqscan') <> 'on' " +
				"THEN RAISE 'settings are left in the connection'; END IF; END $$")
		}))
	}
}

// What may be lost elsewhere is not lost here: where commits do not wait for the disk, ours do.
func TestDurableWhereOthersAreNot(t *testing.T) {
	t.Parallel()
	address := pgtest.New(t)
	db := openAt(t, address)
	must(t, db.base.View(t.Context(), func(c *pg.Conn) error {
		return c.Script("ALTER DATABASE " + name(address) + " SET synchronous_commit = off")
	}))
	again := openAt(t, address)
	must(t, again.base.Update(t.Context(), func(c *pg.Conn) error {
		_, err := c.One("SELECT current_setting('synchronous_commit')", func(v []any) {
			if pg.Text(v[0]) != "on" {
				t.Errorf("synchronous_commit is %v", v[0])
			}
		})
		return err
	}))
}

func name(address string) string {
	address, _, _ = strings.Cut(strings.TrimPrefix(address, "postgres:///"), "?")
	return address
}

// Connections are bounded, however many ask.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	address := openNew(t).address + "&pool_max_conns=5"
	db := openAt(t, address)
	const n = 60
	done := make(chan error, 2*n)
	for range n {
		go func() { done <- db.Append(context.Background(), newSession(db.NewID())) }()
		go func() { done <- db.Ping(context.Background()) }()
	}
	for range 2 * n {
		must(t, <-done)
	}
	if n := count(t, db.DB, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'deckhand'"); n > 5+1 { // and that of the other handle
		t.Errorf("%d connections", n)
	}
	if _, err := Open(t.Context(), address+"1&pool_max_conns=1", Options{}); err == nil {
		t.Error("one connection is pg.Enough")
	}
}

// Old logs become few rows, and are read as before; they grow and are deleted as before.
func TestCompress(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	b := newSession(db.NewID())
	must(t, db.Append(t.Context(), b))
	for range 30 {
		b = noted(b, strings.Repeat("the same again ", 20))
		must(t, db.Append(t.Context(), b))
	}
	other := openAt(t, db.address) // it remembers nothing
	before := readAll(t, other, b.ID, 0)
	must(t, db.Tend(t.Context(), noon.Add(time.Hour)))
	if n := count(t, db.DB, "SELECT count(*) FROM deckhand.events"); n != 1 {
		t.Errorf("%d rows", n)
	}
	other = openAt(t, db.address)
	for after := range len(before) {
		if got := readAll(t, openless(other), b.ID, int64(after)); len(got) != len(before)-after || got[0].Number != int64(after+1) {
			t.Fatalf("after %d: %d events", after, len(got))
		}
	}
	b = noted(b, "more")
	must(t, db.Append(t.Context(), b))
	must(t, db.Tend(t.Context(), noon.Add(time.Hour)))
	must(t, db.Tend(t.Context(), noon.Add(time.Hour)))
	if got := readAll(t, openAt(t, db.address), b.ID, 0); len(got) != len(before)+1 {
		t.Errorf("%d events", len(got))
	}
	must(t, db.Check(t.Context()))
}

// openless forgets what was read.
func openless(o opened) opened {
	o.recentForget()
	return o
}

func TestCheckFindsWhatIsMissing(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	b := newSession("hurt")
	must(t, db.Append(t.Context(), b))
	must(t, db.Append(t.Context(), newSession(db.NewID())))
	must(t, db.Check(t.Context()))
	must(t, db.base.Update(t.Context(), func(c *pg.Conn) error {
		_, err := c.Exec("DELETE FROM deckhand.events WHERE n = (SELECT n FROM deckhand.sessions WHERE id = 'hurt')")
		return err
	}))
	if err := db.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "hurt") {
		t.Errorf("got %v", err)
	}
}

// Texts that PostgreSQL does not take are stored all the same.
func TestAnyText(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	for _, s := range []string{"a\x00b", "\xff\xfe", "\x01", "\x01ff", "", "täst"} {
		a := answer
		a.Key = s
		must(t, db.SaveAnswer(t.Context(), a))
		got, err := db.Answer(t.Context(), a.User, s)
		must(t, err)
		if got.Key != s || got.Request != a.Request {
			t.Errorf("%q: %+v", s, got)
		}
	}
	if _, err := db.Row(t.Context(), "a\x00b"); !errors.Is(err, session.ErrNotFound) {
		t.Error(err)
	}
}

// Lists, searches and logs are read from indexes, and of the parts of the log only one, also if the planner knows nothing of the tables.
func TestPlans(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	for range 200 { // so that a scan looks cheap
		must(t, db.Append(t.Context(), newSession(db.NewID())))
	}
	for _, q := range []struct {
		sql  string
		args []any
		want string
	}{
		{selectRows, []any{"ada", int64(20)}, "Index Scan Backward using sessions_by_owner"},
		{selectMore, []any{"ada", int64(20), int64(5), "x"}, "sessions_by_owner"},
		{selectWanting, nil, "sessions_by_attention"},
		{selectMatches, []any{[]int32{1, 2}, "ada"}, "words_by_gram"},
		{selectPiece, []any{int64(7), int64(0)}, "_pkey"},
	} {
		var plan strings.Builder
		must(t, db.base.View(t.Context(), func(c *pg.Conn) error {
			plan.Reset()
			return c.Query("EXPLAIN "+q.sql, func(v []any) error {
				plan.WriteString(pg.Text(v[0]) + "\n")
				return nil
			}, q.args...)
		}))
		if p := plan.String(); !strings.Contains(p, q.want) || strings.Contains(p, "Seq Scan") || strings.Count(p, " on events_") > 1 {
			t.Errorf("%s\n%s", q.sql, p)
		}
	}
}

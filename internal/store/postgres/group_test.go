package postgres

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"deckhand/internal/notify/notifytest"
	"deckhand/internal/secret"
	"deckhand/internal/secret/keystoretest"
	"deckhand/internal/session"
	"deckhand/internal/session/logtest"
	"deckhand/internal/store/packed"
	"deckhand/internal/store/postgres/pg"
	"deckhand/internal/store/postgres/pgtest"
)

// hold locks a table against appends, so that writers that have begun wait, and a test can decide
// what is in the next groups.
func hold(t *testing.T, o opened) (release func()) {
	t.Helper()
	other := openAt(t, o.address)
	begun, end, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- other.base.Update(context.Background(), func(c *pg.Conn) error {
			_, err := c.Exec("LOCK TABLE deckhand.events IN SHARE MODE")
			close(begun)
			<-end
			return err
		})
	}()
	<-begun
	return func() {
		close(end)
		must(t, <-done)
	}
}

// queued waits until n appends are waiting.
func queued(o opened, n int) {
	for len(o.writer.queue) < n {
		runtime.Gosched()
	}
}

// occupied makes every writer wait with an append, and returns their results.
func occupied(t *testing.T, o opened) <-chan error {
	t.Helper()
	done := make(chan error, writers)
	for i := range writers {
		go func() { done <- o.Append(context.Background(), newSession(o.NewID())) }()
		for blocked(t, o) < int64(i+1) {
			runtime.Gosched()
		}
	}
	return done
}

// blocked is how many wait for the lock of hold.
func blocked(t *testing.T, o opened) int64 {
	return count(t, o.DB, "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database WHERE NOT granted AND d.datname = current_database()")
}

// Whatever waits is stored by one statement, and a conflict in it harms nobody else.
func TestGroupIsOneCommit(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	first := newSession(db.NewID())
	must(t, db.Append(t.Context(), first))
	_, before := db.Written()
	release := hold(t, db)
	busy := occupied(t, db)
	const n = 64
	done, refused := make(chan error, n), make(chan error, 1)
	for range n {
		go func() { done <- db.Append(context.Background(), newSession(db.NewID())) }()
	}
	go func() { refused <- db.Append(context.Background(), first) }()
	queued(db, n+1)
	release()
	for range writers {
		must(t, <-busy)
	}
	for range n {
		must(t, <-done)
	}
	if err := <-refused; !errors.Is(err, session.ErrConflict) {
		t.Errorf("the conflict ended in %v", err)
	}
	_, after := db.Written()
	if commits := after - before; commits > 2*writers {
		t.Errorf("%d commits, want one for each writer that waited, and one or two for all others", commits)
	}
}

// An append that fails harms only itself.
func TestPoison(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	release := hold(t, db)
	busy := occupied(t, db)
	const n = 20
	done, poisoned := make(chan error, n), make(chan error, 1)
	var made []session.ID
	for range n {
		b := newSession(db.NewID())
		made = append(made, b.ID)
		go func() { done <- db.Append(context.Background(), b) }()
	}
	bad, err := db.DB.encode(newSession(db.NewID()), packed.Mark{})
	must(t, err)
	words := "no array"
	bad.words = &words
	go func() { poisoned <- db.writer.append(context.Background(), bad) }()
	queued(db, n+1)
	release()
	for range writers {
		must(t, <-busy)
	}
	for range n {
		must(t, <-done)
	}
	if err := <-poisoned; err == nil || !strings.Contains(err.Error(), "array") {
		t.Errorf("the poison ended in %v", err)
	}
	for _, id := range made {
		if got := readAll(t, db, id, 0); len(got) != 2 {
			t.Errorf("%d events of %s", len(got), id)
		}
	}
	if _, err := db.Row(t.Context(), bad.batch.ID); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("the poison was stored: %v", err)
	}
	if n := db.writer.splits.Load(); n > 1 { // none if a writer took the poison alone
		t.Errorf("%d groups were split", n)
	}
	must(t, db.Healthy()) // the database is not at fault
}

// Appends to one session that wait together are stored one after the other.
func TestSameSessionInOneGroup(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	first := newSession(db.NewID())
	must(t, db.Append(t.Context(), first))
	release := hold(t, db)
	busy := occupied(t, db)
	const n = 10
	done := make(chan error, n)
	for range n {
		go func() { done <- db.Append(context.Background(), noted(first, "mine")) }()
	}
	queued(db, n)
	release()
	for range writers {
		must(t, <-busy)
	}
	won := 0
	for range n {
		switch err := <-done; {
		case err == nil:
			won++
		case !errors.Is(err, session.ErrConflict):
			t.Error(err)
		}
	}
	if got := readAll(t, db, first.ID, 0); won != 1 || len(got) != 3 {
		t.Errorf("%d won, and there are %d events", won, len(got))
	}
}

func TestCancelledInQueue(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	release := hold(t, db)
	busy := occupied(t, db)
	ctx, cancel := context.WithCancel(t.Context())
	b := newSession(db.NewID())
	done := make(chan error, 1)
	go func() { done <- db.Append(ctx, b) }()
	queued(db, 1)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled while others hold the writers up", err)
	}
	release()
	for range writers {
		must(t, <-busy)
	}
	must(t, db.Append(t.Context(), newSession(db.NewID())))
	if _, err := db.Row(t.Context(), b.ID); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("what was given up while it waited was stored: %v", err)
	}
}

// Close answers all callers: what was queued is stored, what came later is told so.
func TestCloseAnswersAll(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	release := hold(t, db)
	busy := occupied(t, db)
	const n = 50
	done := make(chan error, 2*n)
	for range n {
		go func() { done <- db.Append(context.Background(), newSession(db.NewID())) }()
	}
	queued(db, n)
	closed := make(chan error, 1)
	go func() { closed <- db.Close() }()
	for range n {
		go func() { done <- db.Append(context.Background(), newSession(session.NewID())) }()
	}
	release()
	stored := writers
	for range writers {
		must(t, <-busy)
	}
	for range 2 * n {
		switch err := <-done; {
		case err == nil:
			stored++
		case !errors.Is(err, pg.ErrClosed):
			t.Error(err)
		}
	}
	must(t, <-closed)
	again := openAt(t, db.address)
	if n := count(t, again.DB, "SELECT count(*) FROM deckhand.sessions"); n != int64(stored) || stored < writers+50 {
		t.Errorf("%d appends were answered with success and %d are there, want all of at least %d", stored, n, writers+50)
	}
}

// Several processes append to the same sessions: exactly one of two wins each time, in whatever
// groups they are, and none waits for another forever.
func TestTwoProcessesOnTheSameSessions(t *testing.T) {
	t.Parallel()
	one := openNew(t)
	two := openAt(t, one.address)
	const sessions, rounds = 12, 6
	var firsts []session.Batch
	for range sessions {
		b := newSession(one.NewID())
		must(t, one.Append(t.Context(), b))
		firsts = append(firsts, b)
	}
	for round := range rounds {
		type result struct {
			i   int
			err error
		}
		done := make(chan result, 2*sessions)
		for i := range firsts {
			for _, db := range []opened{one, two} {
				b := noted(firsts[i], "mine")
				if round%2 == 0 { // else they are plain steps
					b.Charge = session.Charge{Month: "2026-11", Spent: 1}
				}
				b.Row.Owner = []string{"ada", "bob"}[i%2]
				go func() { done <- result{i, db.Append(context.Background(), b)} }()
			}
		}
		won := make([]int, sessions)
		for range 2 * sessions {
			r := <-done
			switch {
			case r.err == nil:
				won[r.i]++
			case !errors.Is(r.err, session.ErrConflict):
				t.Fatal(r.err)
			}
		}
		if slices.ContainsFunc(won, func(n int) bool { return n != 1 }) {
			t.Fatalf("wins per session: %v", won)
		}
		for i := range firsts {
			firsts[i] = noted(firsts[i], "mine")
		}
	}
	spent := int64(0)
	for _, user := range []string{"ada", "bob"} {
		s, err := one.Spending(t.Context(), user, "")
		must(t, err)
		spent += int64(s.In("2026-11"))
	}
	if spent != sessions*rounds/2 {
		t.Errorf("%d was spent, want %d", spent, sessions*rounds/2)
	}
	if n := one.writer.splits.Load() + two.writer.splits.Load(); n != 0 {
		t.Errorf("%d groups failed: a conflict is no failure", n)
	}
}

// Two processes keep one limit.
func TestLimitOfTwoProcesses(t *testing.T) {
	t.Parallel()
	one := openNew(t)
	two := openAt(t, one.address)
	const n = 20
	done := make(chan error, 2*n)
	for range n {
		for _, db := range []opened{one, two} {
			b := newSession(db.NewID())
			b.Charge = session.Charge{Month: "2026-11", Reserves: true, Reserved: 10, Limit: 100}
			go func() { done <- db.Append(context.Background(), b) }()
		}
	}
	stored := 0
	for range 2 * n {
		var over *session.BudgetError
		switch err := <-done; {
		case err == nil:
			stored++
		case !errors.As(err, &over):
			t.Error(err)
		}
	}
	if s, err := two.Spending(t.Context(), "maria", ""); err != nil || stored != 10 || s.Reserved != 100 {
		t.Errorf("%d were stored, and %d is reserved: %v", stored, s.Reserved, err)
	}
}

// A session is there as a whole or not at all, and never in the place of another.
func TestAppendAll(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	first := newSession("one")
	second := noted(first, "second")
	third := noted(second, "third")
	must(t, db.AppendAll(t.Context(), []session.Batch{first, second, third}))
	if n := len(readAll(t, db, "one", 0)); n != 4 {
		t.Errorf("%d events", n)
	}
	if err := db.AppendAll(t.Context(), []session.Batch{first, second}); !errors.Is(err, session.ErrConflict) {
		t.Errorf("the same again: %v", err)
	}
	torn := newSession("two")
	if err := db.AppendAll(t.Context(), []session.Batch{torn, noted(noted(torn, "x"), "y")}); err == nil {
		t.Error("a torn log was stored")
	}
	if _, err := db.Row(t.Context(), "two"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("a part of it is there: %v", err)
	}
	if n := len(readAll(t, db, "one", 0)); n != 4 {
		t.Errorf("%d events", n)
	}
}

// The suite again, where each transaction may get another connection.
func TestThroughPgBouncer(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	through := server.Bounced(t)
	open := func(t *testing.T) opened { return openAt(t, through(server.Copy(t, base))) }
	logtest.Run(t, func(t *testing.T) logtest.Store { return reopening{open(t)} })
	logtest.RunLedger(t, func(t *testing.T) logtest.LedgerStore { return reopening{open(t)} })
	keystoretest.Run(t, func(t *testing.T) secret.KeyStore { return dataKeyStore{open(t)} })
	notifytest.Run(t, func(t *testing.T) notifytest.Rig {
		db := open(t)
		return notifytest.Rig{Store: db.Webhooks(), Log: db, AddUser: db.addUser(t), DisableUser: db.disableUser(t)}
	})
	if made := openAt(t, through(pgtest.New(t))); made.Check(t.Context()) != nil {
		t.Error("a new database cannot be made through it")
	}
}

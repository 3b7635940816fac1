package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"deckhand/internal/session"
	"deckhand/internal/session/logtest"
	"deckhand/internal/store/packed"
)

// hold keeps the writer busy until release is called, so that a test can
// decide what is in the next group.
func hold(t *testing.T, db *DB) (release func()) {
	t.Helper()
	begun, end, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- db.write(context.Background(), 0, func(*conn) error {
			close(begun)
			<-end
			return nil
		})
	}()
	<-begun
	return func() {
		close(end)
		must(t, <-done)
	}
}

// queued waits until n writes are waiting.
func queued(db *DB, n int) {
	for db.Stats().Queued < n {
		runtime.Gosched()
	}
}

func TestGroupIsOneCommit(t *testing.T) {
	db := openNew(t)
	before := db.Stats()
	release := hold(t, db)
	const n = 64
	done := make(chan error, n)
	for range n {
		go func() { done <- db.Append(t.Context(), newSession()) }()
	}
	queued(db, n)
	release()
	for range n {
		must(t, <-done)
	}
	after := db.Stats()
	if commits := after.Commits - before.Commits; commits != 2 {
		t.Errorf("%d commits, want 2: one for the write that held the others up, one for all of them", commits)
	}
	if writes := after.Writes - before.Writes; writes != n+1 {
		t.Errorf("%d writes, want %d", writes, n+1)
	}
}

// The same without arranging anything: 64 callers share commits by themselves.
func TestGroupsForm(t *testing.T) {
	db := openNew(t)
	const callers, each = 64, 20
	done := make(chan error, callers)
	for range callers {
		go func() {
			for range each {
				if err := db.Append(t.Context(), newSession()); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range callers {
		must(t, <-done)
	}
	s := db.Stats()
	t.Logf("%d writes in %d commits", s.Writes, s.Commits)
	if s.Commits*4 > s.Writes {
		t.Errorf("%d writes took %d commits, want at most a quarter", s.Writes, s.Commits)
	}
}

// A write that fails harms only itself; neither does one that refuses, or panics.
func TestPoison(t *testing.T) {
	for name, poison := range map[string]func(*conn) error{
		"error": func(c *conn) error {
			if _, err := c.exec("INSERT INTO meta (name, value) VALUES ('poison', x'00')"); err != nil {
				return err
			}
			_, err := c.exec("INSERT INTO meta (name, value) VALUES ('poison', x'01')")
			return err
		},
		"broken": func(c *conn) error { _, err := c.exec("SELECT nonsense"); return err },
		"panic":  func(*conn) error { panic("poison") },
	} {
		t.Run(name, func(t *testing.T) {
			db := openNew(t)
			first := newSession()
			must(t, db.Append(t.Context(), first))
			release := hold(t, db)
			const n = 20
			var made []session.ID
			done, refused, poisoned := make(chan error, n), make(chan error, 1), make(chan error, 1)
			for i := range n {
				b := newSession()
				made = append(made, b.ID)
				go func() { done <- db.Append(context.Background(), b) }()
				queued(db, i+1)
			}
			go func() { poisoned <- db.write(context.Background(), 0, poison) }()
			queued(db, n+1)
			go func() { refused <- db.Append(context.Background(), first) }()
			queued(db, n+2)
			release()
			for range n {
				must(t, <-done)
			}
			if err := <-poisoned; err == nil {
				t.Error("the poison was stored")
			}
			if err := <-refused; !errors.Is(err, session.ErrConflict) {
				t.Errorf("the conflict ended in %v", err)
			}
			for _, id := range made {
				verify(t, db, id, 0, 2)
			}
			if v, err := db.Meta(t.Context(), "poison"); err != nil || v != nil {
				t.Errorf("half of the poison was stored: %v, %v", v, err)
			}
			s := db.Stats()
			if s.Splits != 1 || s.Failures != 1 || s.Refusals != 1 {
				t.Errorf("got %+v, want one split, one failure and one refusal", s)
			}
			must(t, db.Healthy()) // the database is not at fault
		})
	}
}

// What a rolled back group had learned is forgotten: the place of a session
// that was never made is given to another.
func TestRollbackForgets(t *testing.T) {
	db := openNew(t)
	lost := newSession()
	err := db.write(t.Context(), 0, func(c *conn) error {
		a, err := db.encode(lost, packed.Mark{})
		if err != nil {
			return err
		}
		if err := a.store(c); err != nil {
			return err
		}
		return errors.New("undo")
	})
	if err == nil {
		t.Fatal("the write did not fail")
	}
	other := newSession()
	must(t, db.Append(t.Context(), other))
	if err := db.Append(t.Context(), batch(lost, 2, 1)); !errors.Is(err, session.ErrConflict) {
		t.Errorf("an event was appended to a session that does not exist: %v", err)
	}
	verify(t, db, other.ID, 0, 2)
}

func TestCancelledInQueue(t *testing.T) {
	db := openNew(t)
	release := hold(t, db)
	ctx, cancel := context.WithCancel(t.Context())
	b := newSession()
	done := make(chan error, 1)
	go func() { done <- db.Append(ctx, b) }()
	queued(db, 1)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled while others hold the writer up", err)
	}
	release()
	must(t, db.Append(t.Context(), newSession()))
	if _, err := db.Row(t.Context(), b.ID); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("what was given up while it waited was stored: %v", err)
	}
}

func TestFullQueue(t *testing.T) {
	db := openNew(t)
	release := hold(t, db)
	done := make(chan error, queueLength)
	for range queueLength {
		go func() { done <- db.Append(context.Background(), newSession()) }()
	}
	queued(db, queueLength)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := db.Append(ctx, newSession()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want to be told that time is over", err)
	}
	release()
	for range queueLength {
		must(t, <-done)
	}
}

// Close answers all callers: what was queued is stored, what came later is told so.
func TestCloseAnswersAll(t *testing.T) {
	db := openNew(t)
	release := hold(t, db)
	const n = 50
	done := make(chan error, 2*n)
	for range n {
		go func() { done <- db.Append(context.Background(), newSession()) }()
	}
	queued(db, n)
	closed := make(chan error, 1)
	go func() { closed <- db.Close() }()
	for range n {
		go func() { done <- db.Append(context.Background(), newSession()) }()
	}
	release()
	stored := 0
	for range 2 * n {
		switch err := <-done; {
		case err == nil:
			stored++
		case !errors.Is(err, ErrClosed):
			t.Error(err)
		}
	}
	must(t, <-closed)
	again := openAt(t, db.path)
	ids := logtest.Wanting(t, again, nil, 1000)
	if stored < n || len(ids) != stored {
		t.Errorf("%d appends were answered with success and %d are there, want all of at least %d", stored, len(ids), n)
	}
}

// Another process that holds the file is waited for, and named when it takes too long.
func TestBusy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deckhand.db")
	db, err := Open(t.Context(), path, Options{BusyTimeout: 20 * time.Millisecond})
	must(t, err)
	defer db.Close()
	other := openAt(t, path)
	release := hold(t, other)
	done := make(chan error, 3)
	for range 3 {
		go func() { done <- db.Append(context.Background(), newSession()) }()
	}
	for range 3 {
		if err := <-done; !errors.Is(err, ErrBusy) {
			t.Errorf("got %v, want ErrBusy", err)
		}
	}
	if err := db.Healthy(); !errors.Is(err, ErrBusy) {
		t.Errorf("healthy: %v, want ErrBusy", err)
	}
	if err := db.Ping(t.Context()); err != nil {
		t.Errorf("reading waits for a writer: %v", err)
	}
	release()
	must(t, db.Append(t.Context(), newSession()))
	must(t, db.Healthy())
	if s := db.Stats(); s.Failures < 3 { // and that of a probe, perhaps
		t.Errorf("got %+v, want 3 failures", s)
	}
}

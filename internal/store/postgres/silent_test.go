package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"deckhand/internal/cluster"
	"deckhand/internal/session"
	"deckhand/internal/store/postgres/pg"
	"deckhand/internal/store/postgres/pgtest"
)

// While the network to the database drops all packets, every request gets an error within a limit, although neither TCP nor the
// caller would end it soon. When the network is back, everything works at once.
func TestSilentDatabase(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	direct := openNew(t)
	relay := server.Relay(t)
	db, err := Open(t.Context(), relay.Address(direct.address), Options{Together: true})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	db.UseChain([32]byte{1}, 0)
	leases := db.Leases(cluster.Info{})
	must(t, leases.Hold(t.Context(), "me"))
	first := newSession(db.NewID())
	must(t, db.Append(t.Context(), first))
	must(t, db.Ping(t.Context()))

	db.base.Limits = pg.Limits{Call: 3 * time.Second, Ping: time.Second}
	relay.Pause()
	const n = 40 // more than there are connections
	type outcome struct {
		what string
		err  error
	}
	done := make(chan outcome)
	ctx := context.Background() // a request without a deadline
	for range n {
		go func() { _, err := db.Row(ctx, first.ID); done <- outcome{"read", err} }()
		go func() { done <- outcome{"append", db.Append(ctx, newSession(session.NewID()))} }()
		go func() { done <- outcome{"write", db.SaveAnswer(ctx, answer)} }()
		go func() { done <- outcome{"ping", db.Ping(ctx)} }()
		go func() { done <- outcome{"renew", leases.Renew(ctx, "me")} }()
	}
	for range 5 * n {
		o := <-done
		var unavailable interface{ Unavailable() string }
		if !errors.As(o.err, &unavailable) {
			t.Errorf("%s: %v", o.what, o.err)
		}
	}
	if db.Healthy() == nil {
		t.Error("the database is healthy")
	}

	relay.Resume()
	must(t, db.Ping(t.Context()))
	if _, err := db.Row(t.Context(), first.ID); err != nil {
		t.Error(err)
	}
	must(t, db.Append(t.Context(), noted(first, "again")))
	must(t, db.SaveAnswer(t.Context(), answer))
	must(t, leases.Hold(t.Context(), "me"))
	must(t, leases.Renew(t.Context(), "me"))
	must(t, db.Healthy())
	if got := readAll(t, openless(direct), first.ID, 0); len(got) != 3 {
		t.Errorf("%d events", len(got))
	}
}

// While requests hold all connections, leases are renewed and the server is ready.
func TestLeasesHaveTheirConnection(t *testing.T) {
	t.Parallel()
	direct := openNew(t)
	db, err := Open(t.Context(), direct.address, Options{Server: "first"})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	leases := db.Leases(cluster.Info{})
	must(t, leases.Hold(t.Context(), "me"))
	begun, end, done := make(chan struct{}), make(chan struct{}), make(chan error)
	const conns = defaultConns - writers - 1
	for range conns {
		go func() {
			done <- db.base.View(context.Background(), func(*pg.Conn) error { begun <- struct{}{}; <-end; return nil })
		}()
	}
	for range conns {
		<-begun
	}
	must(t, db.Ping(t.Context()))
	must(t, leases.Renew(t.Context(), "me"))
	if held, err := db.lease.renew(t.Context()); err != nil || !held {
		t.Errorf("the server lease: %v, %v", held, err)
	}
	close(end)
	for range conns {
		must(t, <-done)
	}
}

// Settings that free locks soon after packets were dropped are part of each write.
func TestWritesEndWithTheirConnection(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	db := openAt(t, server.Relay(t).Address(openNew(t).address))
	must(t, db.base.Update(t.Context(), func(c *pg.Conn) error {
		_, err := c.One("SELECT current_setting('idle_in_transaction_session_timeout')", func(v []any) {
			if pg.Text(v[0]) != "35s" {
				t.Errorf("an abandoned transaction lasts for %v", v[0])
			}
		})
		return err
	}))
}

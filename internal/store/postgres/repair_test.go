package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"deckhand/internal/cluster"
	"deckhand/internal/store/postgres/pg"
)

// A repair refuses while a server uses the database, also one that was started after the repair has opened it.
func TestRepairNeedsTheDatabaseAlone(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	b := newSession(db.NewID())
	must(t, db.Append(t.Context(), b))
	repair := func() error {
		return errors.Join(db.Repair(t.Context(), b.ID, 2, b.Row), db.RestartChain(t.Context(), b.ID))
	}
	must(t, repair())
	single, err := Open(t.Context(), db.address, Options{Server: "single"})
	must(t, err)
	if err := repair(); !errors.Is(err, ErrInUse) {
		t.Errorf("beside a server: %v", err)
	}
	must(t, single.Close())
	must(t, repair())
	leases := db.Leases(cluster.Info{})
	must(t, leases.Hold(t.Context(), "member"))
	if err := repair(); !errors.Is(err, ErrInUse) {
		t.Errorf("beside a member: %v", err)
	}
	must(t, leases.Release(t.Context(), "member"))
	must(t, repair())
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	must(t, db.UpdateExclusive(t.Context(), func(*pg.Conn) error { // while it lasts, no server can start
		other, err := Open(ctx, db.address, Options{Server: "second"})
		if err == nil {
			other.Close()
			t.Error("a server started during a repair")
		}
		return nil
	}))
}

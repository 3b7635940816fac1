package postgres

import (
	"bytes"
	"testing"

	"deckhand/internal/store/postgres/pgtest"
)

// A restored database has an ID that its original and other copies do not have. It keeps it when it is opened again.
func TestCopyID(t *testing.T) {
	t.Parallel()
	db := openAt(t, pgtest.Shared(t).Database(t)) // that of the template may have tables of other tests
	restored := func(from string) string {
		t.Helper()
		var dump bytes.Buffer
		v, err := Copy(t.Context(), from, &dump)
		must(t, err)
		address := pgtest.Shared(t).Database(t)
		must(t, Load(t.Context(), address, v, &dump))
		return address
	}
	seen := map[string]bool{}
	id := func(what string, o opened) {
		t.Helper()
		id, err := o.CopyID(t.Context())
		must(t, err)
		if seen[id] {
			t.Errorf("%s has the ID %q of another database", what, id)
		}
		seen[id] = true
		if again, err := o.reopened(t).CopyID(t.Context()); err != nil || again != id {
			t.Errorf("%s: the ID was %q and is %q %v", what, id, again, err)
		}
	}
	first := restored(db.address)
	id("the original", db)
	id("a copy", openAt(t, first))
	id("another copy", openAt(t, restored(db.address)))
	id("a copy of the copy", openAt(t, restored(first)))
	if !seen[""] {
		t.Error("the original has an ID, so servers of the previous version do not receive its messages")
	}
}

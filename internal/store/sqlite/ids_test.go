package sqlite

import (
	"errors"
	"regexp"
	"sync"
	"testing"

	"deckhand/internal/session"
)

func first(id session.ID, owner string) session.Batch {
	b := newSession()
	b.ID, b.Row.ID, b.Row.Owner = id, id, owner
	return b
}

// Ids look random, differ, and are found again after a reopen without an index.
func TestNewID(t *testing.T) {
	db := openNew(t)
	looks := regexp.MustCompile(`^[0-9a-f]{32}$`)
	seen := map[session.ID]bool{}
	prefixes := map[string]bool{}
	for range 200 {
		id := db.NewID()
		if !looks.MatchString(string(id)) || seen[id] {
			t.Fatalf("id %q", id)
		}
		seen[id], prefixes[string(id[:5])] = true, true
		must(t, db.Append(t.Context(), first(id, "ada")))
		if err := db.Append(t.Context(), first(id, "ada")); !errors.Is(err, session.ErrConflict) {
			t.Fatalf("the same again: %v", err)
		}
	}
	if len(prefixes) < 195 {
		t.Errorf("only %d different beginnings: the ids are not random", len(prefixes))
	}
	path := db.path
	must(t, db.Close())
	db = openAt(t, path)
	for id := range seen {
		if row, err := db.Row(t.Context(), id); err != nil || row.ID != id {
			t.Fatalf("%s: %+v %v", id, row, err)
		}
	}
	if id := db.NewID(); seen[id] {
		t.Error("an id was made twice")
	}
}

// An ID chosen by a client is not confused with a generated one, whatever it looks like.
func TestChosenIDs(t *testing.T) {
	db := openNew(t)
	ours := db.NewID()
	near := []byte(ours)
	near[31] ^= 1 // another hex digit
	for _, id := range []session.ID{"mine", "A-b_9", session.ID(near), session.NewID()} {
		must(t, db.Append(t.Context(), first(id, "bob")))
		if err := db.Append(t.Context(), first(id, "eve")); !errors.Is(err, session.ErrConflict) {
			t.Errorf("%s taken twice: %v", id, err)
		}
		if row, err := db.Row(t.Context(), id); err != nil || row.Owner != "bob" {
			t.Errorf("%s: %+v %v", id, row, err)
		}
	}
	must(t, db.Append(t.Context(), first(ours, "ada"))) // given away before, stored after the others
	if row, err := db.Row(t.Context(), ours); err != nil || row.Owner != "ada" {
		t.Errorf("%+v %v", row, err)
	}
	if _, err := db.Row(t.Context(), db.NewID()); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("an id that was never stored: %v", err)
	}
}

// Two processes on one file take numbers from each other and lose nothing.
func TestIDsOfTwoProcesses(t *testing.T) {
	one := openNew(t)
	two := openAt(t, one.path)
	var wg sync.WaitGroup
	var mu sync.Mutex
	made := map[session.ID]bool{}
	for _, db := range []*DB{one, two} {
		for range 4 {
			wg.Go(func() {
				for range 25 {
					id := db.NewID()
					if err := db.Append(t.Context(), first(id, "ada")); err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					made[id] = true
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	for id := range made {
		for _, db := range []*DB{one, two} {
			if row, err := db.Row(t.Context(), id); err != nil || row.ID != id {
				t.Fatalf("%s: %v", id, err)
			}
		}
	}
}

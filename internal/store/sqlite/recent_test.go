package sqlite

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"deckhand/internal/session"
	"deckhand/internal/store/packed"
)

// writing is a session that grows through one handle of a file.
type writing struct {
	db    *DB
	state session.State
}

func (w *writing) add(t *testing.T, payloads ...session.Payload) {
	t.Helper()
	b := session.Batch{ID: w.state.ID, After: w.state.Last}
	at := time.Unix(1_700_000_000, 0).UTC()
	for _, p := range payloads {
		e := session.Event{Number: w.state.Last + 1, At: at, Payload: p}
		b.Events = append(b.Events, e)
		w.state = w.state.Apply(e)
	}
	b.Row = w.state.Row()
	if err := w.db.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// twoHandles opens a file twice: what the second reads comes from the file.
func twoHandles(t *testing.T) (ours, others *DB) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "recent.db")
	open := func() *DB {
		db, err := Open(t.Context(), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	return open(), open()
}

func readAll(t *testing.T, db *DB, id session.ID, after int64) []session.Event {
	t.Helper()
	var out []session.Event
	for e, err := range db.Read(t.Context(), id, after) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

// agree compares what is read through two handles from every event on, twice:
// the second time from memory.
func agree(t *testing.T, a, b *DB, id session.ID, last int64) {
	t.Helper()
	for range 2 {
		for after := range last + 1 {
			x, y := readAll(t, a, id, after), readAll(t, b, id, after)
			if int64(len(x)) != last-after || !reflect.DeepEqual(x, y) {
				t.Fatalf("after event %d of %d: got %v and %v", after, last, x, y)
			}
		}
	}
}

func TestRecentIsWhatTheFileSays(t *testing.T) {
	ours, others := twoHandles(t)
	w := &writing{db: ours, state: session.State{ID: ours.NewID()}}
	id := w.state.ID
	w.add(t, session.Created{Owner: "ann"}, session.UserSaid{Text: "hello", Images: []string{}})
	w.add(t, session.Noted{ID: "n", Message: "one"})
	if rows := ours.recent.Between(id, 1, 3); len(rows) != 2 {
		t.Fatalf("%d rows are remembered after event 1, want 2", len(rows))
	}
	if rows := others.recent.Between(id, 0, 3); rows != nil {
		t.Fatal("a handle remembers what it has never seen")
	}
	agree(t, ours, others, id, 3)
	if rows := others.recent.Between(id, 0, 3); len(rows) != 2 {
		t.Fatalf("%d rows are remembered by who read them, want 2", len(rows))
	}

	w.db = others // another process writes: the cache is outdated
	w.add(t, session.Noted{ID: "n", Message: "two"}, session.Noted{ID: "n", Message: "three"})
	agree(t, ours, others, id, 5)
	w.db = ours
	w.add(t, session.Noted{ID: "n", Message: "four"})
	agree(t, ours, others, id, 6)

	w.add(t, session.Deleted{})
	if each, all := ours.recent.Sizes(); len(each) != 0 || all != 0 {
		t.Error("a deleted session is remembered")
	}
	if got := readAll(t, ours, id, 0); len(got) != 1 || !reflect.DeepEqual(got, readAll(t, others, id, 0)) {
		t.Errorf("got %v of a deleted session", got)
	}
}

func TestRecentIsBounded(t *testing.T) {
	ours, others := twoHandles(t)
	long := strings.Repeat("x", packed.MaxTail/2-200) // two of them fit
	var all []*writing
	for range packed.MaxRecent/packed.MaxTail + 3 {
		w := &writing{db: ours, state: session.State{ID: ours.NewID()}}
		w.add(t, session.Created{Owner: "ann"})
		for range 3 {
			w.add(t, session.Noted{ID: "n", Message: long})
		}
		all = append(all, w)
	}
	size := 0
	each, counted := ours.recent.Sizes()
	for id, n := range each {
		if n > packed.MaxTail {
			t.Errorf("%d bytes of %s are remembered", n, id)
		}
		size += n
	}
	if size != counted || size > packed.MaxRecent || size < packed.MaxRecent/2 {
		t.Errorf("%d bytes are remembered, and counted as %d", size, counted)
	}
	if _, ok := each[all[0].state.ID]; ok {
		t.Error("what was used longest ago is remembered")
	}
	for _, w := range []*writing{all[0], all[len(all)-1]} {
		agree(t, ours, others, w.state.ID, w.state.Last)
	}
}

func TestRecentWhileItGrows(t *testing.T) {
	ours, _ := twoHandles(t)
	w := &writing{db: ours, state: session.State{ID: ours.NewID()}}
	w.add(t, session.Created{Owner: "ann"})
	id := w.state.ID
	const events = 60
	var wait sync.WaitGroup
	for reader := range 2 {
		wait.Go(func() {
			for seen := int64(reader); seen < events; {
				for e, err := range ours.Read(t.Context(), id, seen) {
					if err != nil || e.Number != seen+1 {
						t.Errorf("event %d came after event %d: %v", e.Number, seen, err)
						return
					}
					seen = e.Number
				}
			}
		})
	}
	for n := range events - 1 {
		w.add(t, session.Noted{ID: "n", Message: fmt.Sprint(n)})
	}
	wait.Wait()
}

// What was just stored is read without a look at the file, and is the same.
func TestRemembered(t *testing.T) {
	ours, others := twoHandles(t)
	w := &writing{db: ours, state: session.State{ID: ours.NewID()}}
	id := w.state.ID
	w.add(t, session.Created{Owner: "ann"}, session.UserSaid{Text: "hello", Images: []string{}})
	w.add(t, session.Noted{ID: "n", Message: "one"})
	w.add(t, session.Noted{ID: "n", Message: "two"}, session.Noted{ID: "n", Message: "three"})
	want := readAll(t, others, id, 0)
	for _, c := range []struct {
		after, last int64
		known       bool
	}{{0, 5, true}, {1, 5, true}, {2, 3, true}, {0, 2, true}, {4, 5, true}, {0, 4, false}, {5, 5, false}, {5, 6, false}} {
		got, known := ours.Remembered(id, c.after, c.last)
		if known != c.known || known && !reflect.DeepEqual(got, want[c.after:c.last]) {
			t.Errorf("after event %d up to %d: %v, %v", c.after, c.last, got, known)
		}
		var read []session.Event
		for e, err := range session.ReadUpTo(t.Context(), ours, id, c.after, c.last) {
			if err != nil {
				t.Fatal(err)
			}
			read = append(read, e)
		}
		if int64(len(read)) < min(c.last, 5)-c.after {
			t.Errorf("after event %d up to %d: only %d events were read", c.after, c.last, len(read))
		}
	}
	if _, known := others.Remembered("unknown", 0, 1); known {
		t.Error("an unknown session is remembered")
	}
	w.add(t, session.Noted{ID: "n", Message: strings.Repeat("x", packed.MaxTail)})
	if _, known := ours.Remembered(id, 4, 6); known {
		t.Error("what is too large is remembered")
	}
	w.add(t, session.Deleted{})
	if _, known := ours.Remembered(id, 6, 7); known {
		t.Error("a deleted session is remembered")
	}
}

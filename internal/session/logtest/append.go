package logtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/session"
)

func order(t *testing.T, s Store) {
	st := session.State{ID: "a"}
	var want []session.Event
	for _, payloads := range [][]session.Payload{
		{session.Created{Owner: "maria"}},
		{session.UserSaid{Text: "one"}, session.UserSaid{Text: "two"}, session.UserSaid{Text: "three"}},
		{session.UserSaid{Text: "four"}},
	} {
		var b session.Batch
		b, st = grow(st, payloads...)
		must(t, s.Append(t.Context(), b))
		want = append(want, b.Events...)
	}
	begin(t, s, "b", 3) // a neighbour must not be seen
	same(t, "events", read(t, s, "a", 0), want)
}

func conflict(t *testing.T, s Store) {
	st, events := begin(t, s, "a", 2)
	want, err := s.Row(t.Context(), "a")
	must(t, err)
	for _, test := range []struct {
		name  string
		id    session.ID
		after int64
	}{
		{"it exists", "a", 0},
		{"too low", "a", st.Last - 1},
		{"too high", "a", st.Last + 1},
		{"not there", "b", 1},
	} {
		from := st
		from.ID, from.Last = test.id, test.after
		from.Title = "changed by a refused batch"
		b, _ := grow(from, session.Noted{ID: "refused"}, session.Noted{ID: "refused"})
		if err := s.Append(t.Context(), b); !errors.Is(err, session.ErrConflict) {
			t.Errorf("%s: got %v, want ErrConflict", test.name, err)
		}
	}
	same(t, "events after refused batches", read(t, s, "a", 0), events)
	got, err := s.Row(t.Context(), "a")
	must(t, err)
	same(t, "row after refused batches", got, want)
	if _, err := s.Row(t.Context(), "b"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("a refused batch made a session: %v", err)
	}
	b, _ := grow(st, session.Noted{ID: "next"})
	must(t, s.Append(t.Context(), b)) // and the session goes on
}

// oneWins: many append after the same event at once, beside appends that succeed.
func oneWins(t *testing.T, s Store) {
	const callers = 32
	st, _ := begin(t, s, "a", 0)
	won := make(chan string, callers)
	all(t, callers, func(i int) error {
		name := fmt.Sprint("caller ", i)
		b, _ := grow(st, session.Noted{ID: name})
		switch err := s.Append(t.Context(), b); {
		case err == nil:
			won <- name
		case !errors.Is(err, session.ErrConflict):
			return err
		}
		own, _ := grow(session.State{ID: session.ID(fmt.Sprint("own-", i))}, session.Created{Owner: "maria"})
		return s.Append(t.Context(), own)
	})
	if len(won) != 1 {
		t.Fatalf("%d appends after the same event succeeded, want 1", len(won))
	}
	same(t, "event", read(t, s, "a", 1)[0].Payload, session.Payload(session.Noted{ID: <-won}))
}

func reopen(t *testing.T, s Store) {
	r, ok := s.(Reopener)
	if !ok {
		t.Skip("the store does not outlive its process")
	}
	st, events := begin(t, s, "a", 300)
	want, err := s.Row(t.Context(), "a")
	must(t, err)
	s = r.Reopen(t)
	same(t, "events", read(t, s, "a", 0), events)
	got, err := s.Row(t.Context(), "a")
	must(t, err)
	same(t, "row", got, want)
	b, _ := grow(st, note(1))
	must(t, s.Append(t.Context(), b))
	contiguous(t, read(t, s, "a", 0), 1)
}

// concurrentOne uses two caches, so that conflicts happen in the store and not
// only in front of it.
func concurrentOne(t *testing.T, s Store) {
	const callers, each = 16, 20
	caches := []*session.Sessions{session.New(s), session.New(s)}
	_, err := caches[0].Create(t.Context(), "a", session.Created{Owner: "maria"}, nil)
	must(t, err)
	all(t, callers, func(i int) error {
		for k := range each {
			_, err := caches[i%2].Update(t.Context(), "a", func(session.State) ([]session.Payload, error) {
				return []session.Payload{session.Noted{ID: fmt.Sprint(i, " ", k)}}, nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	events := read(t, s, "a", 0)
	contiguous(t, events, 1)
	seen := map[string]int{}
	for _, e := range events[1:] {
		seen[e.Payload.(session.Noted).ID]++
	}
	if len(seen) != callers*each || len(events) != callers*each+1 {
		t.Fatalf("%d different notes in %d events, want %d of each", len(seen), len(events)-1, callers*each)
	}
}

func concurrentMany(t *testing.T, s Store) {
	const sessions, each = 32, 20
	all(t, sessions, func(i int) error {
		b, st := grow(session.State{ID: session.ID(fmt.Sprint("s", i))}, session.Created{Owner: "maria"})
		for k := 0; ; k++ {
			if err := s.Append(t.Context(), b); err != nil || k == each {
				return err
			}
			b, st = grow(st, note(i))
		}
	})
	for i := range sessions {
		events := read(t, s, session.ID(fmt.Sprint("s", i)), 0)
		contiguous(t, events, 1)
		if len(events) != each+1 {
			t.Fatalf("session %d has %d events, want %d", i, len(events), each+1)
		}
		for _, e := range events[1:] {
			same(t, "event", e.Payload, session.Payload(note(i)))
		}
	}
}

func large(t *testing.T, s Store) {
	text := strings.Repeat("0123456789abcdef", 10<<20/16)
	b, st := grow(session.State{ID: "a"}, session.Created{Owner: "maria"}, session.UserSaid{Text: text}, session.UserSaid{Text: "small"})
	must(t, s.Append(t.Context(), b))
	b2, _ := grow(st, session.UserSaid{Text: text + "again"})
	must(t, s.Append(t.Context(), b2))
	events := read(t, s, "a", 0)
	contiguous(t, events, 1)
	if len(events) != 4 || events[1].Payload.(session.UserSaid).Text != text ||
		events[2].Payload.(session.UserSaid).Text != "small" || events[3].Payload.(session.UserSaid).Text != text+"again" {
		t.Fatalf("%d events came back, or not as they were stored", len(events))
	}
}

// cancelledAppend: what becomes of the batch is open, but the caller is
// answered at once and log and row agree.
func cancelledAppend(t *testing.T, s Store) {
	st, _ := begin(t, s, "a", 0)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	b, _ := grow(st, note(0))
	promptly(t, func() {
		if err := s.Append(gone, b); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
	})
	st = agree(t, s, "a")
	for i := range 100 { // and at about the same time
		ctx, cancel := context.WithCancel(t.Context())
		b, _ := grow(st, note(i))
		promptly(t, func() {
			go cancel()
			err := s.Append(ctx, b)
			if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, session.ErrConflict) {
				t.Error(err)
			}
		})
		cancel()
		st = agree(t, s, "a")
	}
}

// agree checks that a session's row and its events tell the same, and folds
// them. A batch that was given up may be stored just now: then it looks again.
func agree(t *testing.T, s Store, id session.ID) session.State {
	t.Helper()
	for {
		before, err := s.Row(t.Context(), id)
		must(t, err)
		st, err := session.Fold(t.Context(), s, session.State{ID: id})
		must(t, err)
		now, err := s.Row(t.Context(), id)
		must(t, err)
		if cmp.Equal(before, now) {
			same(t, "row", now, st.Row())
			return st
		}
	}
}

// promptly fails when do hangs. The limit is generous: it is not reached by a slow machine.
func promptly(t *testing.T, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatal("not answered")
	}
}

// deleted goes through the core, because a fold must make sense of what is left.
func deleted(t *testing.T, s Store) {
	st, _ := begin(t, s, "a", 400)
	begin(t, s, "b", 4)
	b, st := grow(st, session.Deleted{})
	must(t, s.Append(t.Context(), b))
	same(t, "events", read(t, s, "a", 0), b.Events)
	same(t, "events after the middle", read(t, s, "a", 200), b.Events)
	got, err := s.Row(t.Context(), "a")
	must(t, err)
	same(t, "row", got, st.Row())
	if !got.Deleted {
		t.Error("the row does not say that the session is deleted")
	}
	rows, err := s.Rows(t.Context(), session.Query{Owner: "maria", Limit: 10})
	must(t, err)
	if len(rows) != 1 || rows[0].ID != "b" {
		t.Errorf("the list still has %v", rows)
	}
	if n := len(read(t, s, "b", 0)); n != 5 {
		t.Errorf("the neighbour has %d events, want 5", n)
	}
	again, _ := grow(session.State{ID: "a"}, session.Created{Owner: "maria"})
	if err := s.Append(t.Context(), again); !errors.Is(err, session.ErrConflict) {
		t.Errorf("the id of a deleted session can be used again: %v", err)
	}
	folded, err := session.New(s).Load(t.Context(), "a")
	must(t, err)
	if !folded.Deleted || folded.Last != st.Last {
		t.Errorf("folded to deleted=%v at event %d, want deleted at %d", folded.Deleted, folded.Last, st.Last)
	}
}

func deletedWithOthers(t *testing.T, s Store) {
	st, _ := begin(t, s, "a", 2)
	b, _ := grow(st, note(1), session.Deleted{})
	must(t, s.Append(t.Context(), b))
	same(t, "events", read(t, s, "a", 0), b.Events[1:])
}

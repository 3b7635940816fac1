package logtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"deckhand/internal/session"
)

func readAfter(t *testing.T, s Store) {
	_, events := begin(t, s, "a", 9)
	for n := range int64(13) {
		got := read(t, s, "a", n)
		want := events[min(n, 10):]
		if len(got) != len(want) {
			t.Fatalf("after %d: %d events, want %d", n, len(got), len(want))
		}
		for i := range got {
			same(t, "event", got[i], want[i])
		}
	}
	for range s.Read(t.Context(), "a", 0) {
		break // a reader that leaves early holds nothing
	}
	same(t, "events", read(t, s, "a", 0), events)
}

func unknown(t *testing.T, s Store) {
	begin(t, s, "a", 1)
	if events := read(t, s, "b", 0); len(events) != 0 {
		t.Errorf("a session that does not exist has %d events", len(events))
	}
	if _, err := s.Row(t.Context(), "b"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	if _, err := s.Row(t.Context(), "A"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("ids are not told apart by case: %v", err)
	}
}

// long needs more than one piece, where a store reads in pieces.
func long(t *testing.T, s Store) {
	const n = 3000
	_, events := begin(t, s, "a", n-1)
	for _, after := range []int64{0, 1, 255, 256, 257, n - 1, n} {
		got := read(t, s, "a", after)
		contiguous(t, got, after+1)
		if len(got) != n-int(after) {
			t.Fatalf("after %d: %d events, want %d", after, len(got), n-after)
		}
	}
	same(t, "last event", read(t, s, "a", n-1), events[n-1:])
}

func readWhileItGrows(t *testing.T, s Store) {
	const n = 300
	st, _ := begin(t, s, "a", 0)
	written := make(chan error, 1)
	go func() {
		for i := range n {
			var b session.Batch
			b, st = grow(st, note(i))
			if err := s.Append(t.Context(), b); err != nil {
				written <- err
				return
			}
		}
		written <- nil
	}()
	var last int64
	for ended := false; last < n+1; {
		for e, err := range s.Read(t.Context(), "a", last) {
			must(t, err)
			if e.Number != last+1 {
				t.Fatalf("event %d follows event %d", e.Number, last)
			}
			last = e.Number
		}
		if ended && last < n+1 {
			t.Fatalf("everything was written, but reading ends at event %d", last)
		}
		select {
		case err := <-written:
			must(t, err)
			ended = true
		default:
		}
	}
}

// appendWhileReading: a reader does not keep writers out, not even its own, and
// it comes to an end although the log grows faster than it reads.
func appendWhileReading(t *testing.T, s Store) {
	st, _ := begin(t, s, "a", 9)
	seen := 0
	for e, err := range s.Read(t.Context(), "a", 0) {
		must(t, err)
		if seen++; e.Number != int64(seen) {
			t.Fatalf("event %d came as number %d", e.Number, seen)
		}
		if seen > 10_000 {
			t.Fatal("reading follows its own appends without end")
		}
		if seen <= 300 {
			var b session.Batch
			b, st = grow(st, note(0), note(1))
			must(t, s.Append(t.Context(), b))
		}
	}
	if seen < 10 {
		t.Fatalf("%d events, want the 10 that were there when reading began", seen)
	}
}

func cancelledRead(t *testing.T, s Store) {
	begin(t, s, "a", 999)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen, failed := 0, error(nil)
	for _, err := range s.Read(ctx, "a", 0) {
		if failed != nil {
			t.Fatal("reading goes on after an error")
		}
		if err != nil {
			failed = err
			continue
		}
		if seen++; seen == 3 {
			cancel()
		}
	}
	if !errors.Is(failed, context.Canceled) || seen != 3 {
		t.Errorf("read %d events and got %v, want 3 and context.Canceled", seen, failed)
	}
	if events, err := collect(ctx, s, "a", 0); !errors.Is(err, context.Canceled) || len(events) != 0 {
		t.Errorf("with a cancelled context: %d events and %v", len(events), err)
	}
}

func times(t *testing.T, s Store) {
	moments := []time.Time{
		time.Date(2026, 3, 1, 12, 34, 56, 123456000, time.UTC),
		time.Date(2026, 3, 1, 12, 34, 56, 123457000, time.UTC),
		time.Date(2026, 12, 31, 23, 59, 59, 999999000, time.UTC),
		time.Date(2200, 1, 1, 0, 0, 0, 1000, time.UTC),
	}
	b := session.Batch{ID: "a", Row: session.Row{ID: "a", Owner: "maria", CreatedAt: moments[0], UpdatedAt: moments[3], Last: int64(len(moments))}}
	for i, at := range moments {
		b.Events = append(b.Events, session.Event{Number: int64(i) + 1, At: at, Payload: session.Created{Owner: "maria"}})
	}
	must(t, s.Append(t.Context(), b))
	for i, e := range read(t, s, "a", 0) {
		utc(t, e.At, moments[i])
	}
	got, err := s.Row(t.Context(), "a")
	must(t, err)
	utc(t, got.CreatedAt, moments[0])
	utc(t, got.UpdatedAt, moments[3])
}

func utc(t *testing.T, got, want time.Time) {
	t.Helper()
	if !got.Equal(want) || got.Location() != time.UTC {
		t.Errorf("got %v, want %v", got, want)
	}
}

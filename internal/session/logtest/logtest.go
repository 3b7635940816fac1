// Package logtest is what every session.Log and session.Index must pass. A
// store's own test calls Run and adds only what is special about it.
package logtest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/session"
)

// Store is what is tested.
type Store interface {
	session.Log
	session.Index
}

// Reopener is a Store that survives its process. Reopen closes it and opens
// what it has stored anew.
type Reopener interface {
	Reopen(t *testing.T) Store
}

// Run runs the suite. open gives a new, empty store for each test and closes it
// with t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) Store) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, Store)
	}{
		{"Order", order},
		{"ReadAfter", readAfter},
		{"Unknown", unknown},
		{"Conflict", conflict},
		{"OneWins", oneWins},
		{"Whole", whole},
		{"Reopen", reopen},
		{"ConcurrentOneSession", concurrentOne},
		{"ConcurrentManySessions", concurrentMany},
		{"Large", large},
		{"Long", long},
		{"ReadWhileItGrows", readWhileItGrows},
		{"AppendWhileReading", appendWhileReading},
		{"CancelledAppend", cancelledAppend},
		{"CancelledRead", cancelledRead},
		{"Deleted", deleted},
		{"DeletedWithOthers", deletedWithOthers},
		{"Times", times},
		{"Payloads", payloads},
		{"Row", row},
		{"Paging", paging},
		{"Filters", filters},
		{"Text", text},
		{"Owners", owners},
		{"Wanting", wanting},
		{"Held", held},
		{"Idle", idle},
		{"Unchanged", unchanged},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

// noon is a time that every store can keep.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

// after is noon and some seconds.
func after(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

// grow is the batch that appends payloads to a session, and the state after it.
// The rules of the core do not matter to a store, so they are not asked.
func grow(st session.State, payloads ...session.Payload) (session.Batch, session.State) {
	b := session.Batch{ID: st.ID, After: st.Last}
	for i, p := range payloads {
		e := session.Event{Number: b.After + int64(i) + 1, At: after(int(b.After) + i + 1), Payload: p}
		b.Events = append(b.Events, e)
		st = st.Apply(e)
	}
	b.Row = st.Row()
	return b, st
}

// begin stores a session with notes as its further events.
func begin(t *testing.T, s Store, id session.ID, notes int) (session.State, []session.Event) {
	t.Helper()
	b, st := grow(session.State{ID: id}, append([]session.Payload{session.Created{Owner: "maria"}}, noted(notes)...)...)
	must(t, s.Append(t.Context(), b))
	return st, b.Events
}

func noted(n int) []session.Payload {
	out := make([]session.Payload, n)
	for i := range out {
		out[i] = note(i)
	}
	return out
}

func note(i int) session.Noted { return session.Noted{ID: "n", Message: fmt.Sprintf("note %d", i)} }

// plain is a batch that stores one row as it is, for the tests of the index.
func plain(r session.Row) session.Batch {
	r.Last = 1
	return session.Batch{ID: r.ID, Row: r, Events: []session.Event{{Number: 1, At: r.CreatedAt, Payload: session.Created{Owner: r.Owner}}}}
}

func read(t *testing.T, s Store, id session.ID, after int64) []session.Event {
	t.Helper()
	events, err := collect(t.Context(), s, id, after)
	must(t, err)
	return events
}

func collect(ctx context.Context, s Store, id session.ID, after int64) ([]session.Event, error) {
	var events []session.Event
	for e, err := range s.Read(ctx, id, after) {
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
	return events, nil
}

// contiguous checks that events are numbered from first on without a gap.
func contiguous(t *testing.T, events []session.Event, first int64) {
	t.Helper()
	for i, e := range events {
		if e.Number != first+int64(i) {
			t.Fatalf("event %d is numbered %d, want %d", i, e.Number, first+int64(i))
		}
	}
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, shorten(diff))
	}
}

// shorten keeps the report of a difference in a large event readable.
func shorten(s string) string {
	if len(s) > 4000 {
		return s[:4000] + "…"
	}
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// all waits for n functions that run at once.
func all(t *testing.T, n int, do func(i int) error) {
	t.Helper()
	done := make(chan error, n)
	for i := range n {
		go func() { done <- do(i) }()
	}
	for range n {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

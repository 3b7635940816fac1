package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"deckhand/internal/session"
	"deckhand/internal/session/logtest"
)

// past is a log of n events that was lived through elsewhere.
func past(t *testing.T, id session.ID, n int) []session.Batch {
	t.Helper()
	at := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	events := []session.Event{{At: at.Add(time.Hour), Payload: session.Created{Owner: "ada"}}}
	for i := range n - 2 {
		events = append(events, session.Event{At: at.Add(time.Duration(i)), Payload: session.Imported{Said: &session.UserSaid{Text: fmt.Sprint(i)}}})
	}
	events = append(events, session.Event{At: at.Add(2 * time.Hour), Payload: session.Stopped{}})
	batches, _, err := session.Import(id, events)
	if err != nil {
		t.Fatal(err)
	}
	return batches
}

// A session is there as a whole or not at all, and never in the place of another.
func TestAppendAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deckhand.db")
	db, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	count := func(id session.ID) (n int) {
		for e, err := range db.Read(t.Context(), id, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; e.Number != int64(n) {
				t.Fatalf("event %d is number %d", n, e.Number)
			}
		}
		return n
	}
	if err := db.AppendAll(t.Context(), past(t, "one", 1000)); err != nil {
		t.Fatal(err)
	}
	if n := count("one"); n != 1000 {
		t.Errorf("%d events", n)
	}
	if err := db.AppendAll(t.Context(), past(t, "one", 300)); !errors.Is(err, session.ErrConflict) || count("one") != 1000 {
		t.Errorf("%v, and %d events", err, count("one"))
	}
	torn := past(t, "two", 1000)
	if err := db.AppendAll(t.Context(), append(torn[:1:1], torn[2:]...)); err == nil || count("two") != 0 {
		t.Errorf("%v, and %d events", err, count("two"))
	}
	if wanting := logtest.Wanting(t, db, nil, 10); len(wanting) > 0 {
		t.Errorf("wanting: %v", wanting)
	}
	row, err := db.Row(t.Context(), "one")
	if err != nil || row.Last != 1000 || row.Status != session.Halted || row.CreatedAt.Hour() != 1 {
		t.Errorf("%+v %v", row, err)
	}
}

// Package feedbacktest is what every feedback.Store must pass, and a store in
// memory that passes it.
package feedbacktest

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"deckhand/internal/feedback"
)

// noon is a time that every store can keep.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

// Run runs the suite. open gives a new, empty store for each test and closes it with t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) feedback.Store) {
	for name, run := range map[string]func(*testing.T, feedback.Store){
		"Keeps": keeps, "Pages": pages, "Stars replace stars": replaces, "Apart": apart, "Forget": forget, "Bound": bound, "Given up": givenUp,
	} {
		t.Run(name, func(t *testing.T) { run(t, open(t)) })
	}
}

func add(t *testing.T, s feedback.Store, e feedback.Entry) feedback.Entry {
	t.Helper()
	e.At = noon
	got, err := s.Add(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func page(t *testing.T, s feedback.Store, before int64, limit int) []feedback.Entry {
	t.Helper()
	got, err := s.Page(t.Context(), before, limit)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func keeps(t *testing.T, s feedback.Store) {
	verdict := add(t, s, feedback.Entry{User: "ada", Session: "a", Polarity: "negative", Permissions: "public", Email: "ada@example.org", Version: "1.0"})
	stars := add(t, s, feedback.Entry{User: "ada", Session: "a", Rating: 4, Event: 7, Reason: "quick\nand \"right\"", Metadata: []byte(`{"source":"x"}`)})
	if verdict.ID == 0 || stars.ID <= verdict.ID {
		t.Errorf("the ids are %d and %d", verdict.ID, stars.ID)
	}
	if got := page(t, s, 0, 10); !reflect.DeepEqual(got, []feedback.Entry{stars, verdict}) {
		t.Errorf("got %+v", got)
	}
}

func pages(t *testing.T, s feedback.Store) {
	if got := page(t, s, 0, 10); len(got) != 0 {
		t.Errorf("an empty store has %+v", got)
	}
	var ids []int64
	for range 5 {
		ids = append(ids, add(t, s, feedback.Entry{User: "ada", Session: "a", Polarity: "positive"}).ID)
	}
	first := page(t, s, 0, 2)
	second := page(t, s, first[1].ID, 2)
	last := page(t, s, second[1].ID, 2)
	if first[0].ID != ids[4] || first[1].ID != ids[3] || second[0].ID != ids[2] || len(last) != 1 || last[0].ID != ids[0] {
		t.Errorf("got %v, %v, %v", first, second, last)
	}
	if got := page(t, s, 0, 0); len(got) != 0 {
		t.Errorf("a limit of 0 gives %d", len(got))
	}
}

func replaces(t *testing.T, s feedback.Store) {
	old := add(t, s, feedback.Entry{User: "ada", Session: "a", Rating: 1, Event: 3, Reason: "slow"})
	verdict := add(t, s, feedback.Entry{User: "ada", Session: "a", Polarity: "positive"})
	again := add(t, s, feedback.Entry{User: "ada", Session: "a", Polarity: "positive"})
	renewed := add(t, s, feedback.Entry{User: "ada", Session: "a", Rating: 5, Event: 3})
	if got := page(t, s, 0, 10); !reflect.DeepEqual(got, []feedback.Entry{renewed, again, verdict}) || renewed.ID <= old.ID {
		t.Errorf("got %+v", got)
	}
}

func apart(t *testing.T, s feedback.Store) {
	whole := add(t, s, feedback.Entry{User: "ada", Session: "a", Rating: 2})
	late := add(t, s, feedback.Entry{User: "ada", Session: "a", Rating: 4, Event: 9})
	early := add(t, s, feedback.Entry{User: "ada", Session: "a", Rating: 3, Event: 2})
	add(t, s, feedback.Entry{User: "bob", Session: "a", Rating: 1, Event: 2})
	add(t, s, feedback.Entry{User: "ada", Session: "b", Rating: 1, Event: 2})
	add(t, s, feedback.Entry{User: "ada", Session: "a", Polarity: "negative"})
	got, err := s.Ratings(t.Context(), "ada", "a")
	if err != nil || !reflect.DeepEqual(got, []feedback.Entry{whole, early, late}) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func forget(t *testing.T, s feedback.Store) {
	add(t, s, feedback.Entry{User: "ada", Session: "a", Rating: 2})
	last := add(t, s, feedback.Entry{User: "bob", Session: "a", Polarity: "negative"})
	if err := errors.Join(s.Forget(t.Context(), "a"), s.Forget(t.Context(), "a")); err != nil {
		t.Fatal(err)
	}
	if got := page(t, s, 0, 10); len(got) != 0 {
		t.Errorf("left: %+v", got)
	}
	if fresh := add(t, s, feedback.Entry{User: "ada", Session: "b", Rating: 1}); fresh.ID <= last.ID {
		t.Errorf("the id %d was used before", fresh.ID)
	}
}

func bound(t *testing.T, s feedback.Store) {
	other := add(t, s, feedback.Entry{User: "ada", Session: "other", Polarity: "positive"})
	first := add(t, s, feedback.Entry{User: "ada", Session: "a", Polarity: "positive"})
	for range feedback.Kept {
		add(t, s, feedback.Entry{User: "ada", Session: "a", Polarity: "positive"})
	}
	got := page(t, s, 0, feedback.Kept+10)
	if len(got) != feedback.Kept+1 || got[len(got)-1].ID != other.ID || got[len(got)-2].ID != first.ID+1 {
		t.Errorf("%d are left, the oldest is %+v", len(got), got[len(got)-1])
	}
}

func givenUp(t *testing.T, s feedback.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, adding := s.Add(ctx, feedback.Entry{User: "ada", Session: "a", Rating: 1})
	_, paging := s.Page(ctx, 0, 1)
	_, rating := s.Ratings(ctx, "ada", "a")
	for _, err := range []error{adding, paging, rating} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	if got := page(t, s, 0, 1); len(got) != 0 {
		t.Errorf("kept: %+v", got)
	}
}

// Package idempotencytest is what every idempotency.Store must pass.
package idempotencytest

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/idempotency"
)

// noon is a time that every store can keep.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

// Reopener is a store that survives its process. Reopen closes it and opens what it has stored.
type Reopener interface {
	Reopen(t *testing.T) idempotency.Store
}

// Run runs the suite. open gives a new, empty store for each test and closes it with t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) idempotency.Store) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, idempotency.Store)
	}{
		{"FirstStays", firstStays},
		{"Owners", owners},
		{"Bodies", bodies},
		{"OneWins", oneWins},
		{"Expiry", expiry},
		{"DropsMany", dropsMany},
		{"DropWhileSaving", dropWhileSaving},
		{"Reopen", reopen},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, open(t))
		})
	}
}

// answer is one with a field of every kind set.
func answer(user, key string) idempotency.Answer {
	return idempotency.Answer{User: user, Key: key, Request: "hash of " + key, Status: 201, Header: []byte("header"), Body: []byte("for " + user), CreatedAt: noon}
}

func firstStays(t *testing.T, s idempotency.Store) {
	missing(t, s, "maria", "k")
	want := answer("maria", "k")
	must(t, s.SaveAnswer(t.Context(), want))
	same(t, s, want)
	later := answer("maria", "k")
	later.Request, later.Status, later.Header, later.Body, later.CreatedAt = "other", 500, nil, []byte("other"), noon.Add(time.Hour)
	must(t, s.SaveAnswer(t.Context(), later))
	same(t, s, want)
}

func owners(t *testing.T, s idempotency.Store) {
	must(t, s.SaveAnswer(t.Context(), answer("maria", "k")))
	for _, other := range [][2]string{{"otto", "k"}, {"Maria", "k"}, {"maria", "K"}, {"maria", "k "}, {"maria", ""}, {"", "k"}, {"mariak", ""}} {
		missing(t, s, other[0], other[1])
	}
	must(t, s.SaveAnswer(t.Context(), answer("otto", "k")))
	same(t, s, answer("maria", "k"))
	same(t, s, answer("otto", "k"))
}

func bodies(t *testing.T, s idempotency.Store) {
	for i, body := range [][]byte{{0, 1, 2, 0xff}, nil, bytes.Repeat([]byte("large "), 1<<18)} {
		want := answer("maria", fmt.Sprint("key – 'quoted' ", i))
		want.Header, want.Body = body, body
		must(t, s.SaveAnswer(t.Context(), want))
		same(t, s, want)
	}
}

// oneWins has many answer the same request: all get the answer of one of them afterwards.
func oneWins(t *testing.T, s idempotency.Store) {
	var all sync.WaitGroup
	seen := make(chan idempotency.Answer, 8)
	for i := range cap(seen) {
		all.Go(func() {
			mine := answer("maria", "k")
			mine.Status, mine.Body = 200+i, fmt.Append(nil, "of ", i)
			if err := s.SaveAnswer(t.Context(), mine); err != nil {
				t.Error(err)
			}
			got, err := s.Answer(t.Context(), "maria", "k")
			if err != nil {
				t.Error(err)
			}
			seen <- got
		})
	}
	all.Wait()
	first := <-seen
	if string(first.Body) != fmt.Sprint("of ", first.Status-200) {
		t.Errorf("the answer is mixed of two: %d %q", first.Status, first.Body)
	}
	for range cap(seen) - 1 {
		if diff := cmp.Diff(first, <-seen); diff != "" {
			t.Error(diff)
		}
	}
}

// expiry: what was created before the moment goes, and nothing else.
func expiry(t *testing.T, s idempotency.Store) {
	old, young := answer("maria", "old"), answer("maria", "young")
	old.CreatedAt = noon.Add(-time.Microsecond)
	foreign := answer("otto", "old")
	foreign.CreatedAt = old.CreatedAt
	for _, a := range []idempotency.Answer{old, young, foreign} {
		must(t, s.SaveAnswer(t.Context(), a))
	}
	for range 2 { // the second time there is nothing to drop
		must(t, s.DropAnswers(t.Context(), noon))
		missing(t, s, "maria", "old")
		missing(t, s, "otto", "old")
		same(t, s, young)
	}
	again := answer("maria", "old")
	again.Status = 409
	must(t, s.SaveAnswer(t.Context(), again)) // its key is free again
	same(t, s, again)
}

// dropsMany drops more than a store may want to drop in one go.
func dropsMany(t *testing.T, s idempotency.Store) {
	const old = 2500
	var all sync.WaitGroup
	for worker := range 50 { // together they share the commits
		all.Go(func() {
			for i := worker; i <= old; i += 50 {
				a := answer("otto", fmt.Sprint(i))
				a.CreatedAt = noon.Add(time.Duration(i-old) * time.Second)
				if err := s.SaveAnswer(t.Context(), a); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	must(t, s.DropAnswers(t.Context(), noon))
	for i := range old {
		missing(t, s, "otto", fmt.Sprint(i))
	}
	same(t, s, answer("otto", fmt.Sprint(old)))
}

// dropWhileSaving: dropping old answers takes none that is saved at the same time.
func dropWhileSaving(t *testing.T, s idempotency.Store) {
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if err := s.SaveAnswer(t.Context(), answer("maria", fmt.Sprint(i))); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			if err := s.DropAnswers(t.Context(), noon); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for i := range 20 {
		same(t, s, answer("maria", fmt.Sprint(i)))
	}
}

func reopen(t *testing.T, s idempotency.Store) {
	r, ok := s.(Reopener)
	if !ok {
		t.Skip("the store does not survive its process")
	}
	must(t, s.SaveAnswer(t.Context(), answer("maria", "k")))
	same(t, r.Reopen(t), answer("maria", "k"))
}

func same(t *testing.T, s idempotency.Store, want idempotency.Answer) {
	t.Helper()
	got, err := s.Answer(t.Context(), want.User, want.Key)
	must(t, err)
	// cmp looks at each byte of a large body, which takes it a minute.
	if diff := cmp.Diff(want, got, cmp.Comparer(bytes.Equal)); diff != "" {
		t.Error(diff)
	}
}

func missing(t *testing.T, s idempotency.Store, user, key string) {
	t.Helper()
	if _, err := s.Answer(t.Context(), user, key); !errors.Is(err, idempotency.ErrNotFound) {
		t.Errorf("%q of %q: got %v, want ErrNotFound", key, user, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

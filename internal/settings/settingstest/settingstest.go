// Package settingstest is what every settings.Store must pass.
package settingstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/settings"
)

// noon is a time that every store can keep.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

// Reopener is a store that survives its process. Reopen closes it and opens what it has stored.
type Reopener interface {
	Reopen(t *testing.T) settings.Store
}

// Run runs the suite. open gives a new, empty store for each test and closes it with t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) settings.Store) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, settings.Store)
	}{
		{"Versions", versions},
		{"Owners", owners},
		{"Bodies", bodies},
		{"Copies", copies},
		{"OneWins", oneWins},
		{"NothingIsLost", nothingIsLost},
		{"Reopen", reopen},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, open(t))
		})
	}
}

func record(user string, version int64) settings.Record {
	return settings.Record{User: user, Version: version, Body: fmt.Append(nil, user, " ", version), UpdatedAt: noon.Add(time.Duration(version) * time.Microsecond)}
}

func versions(t *testing.T, s settings.Store) {
	if _, err := s.LoadSettings(t.Context(), "maria"); !errors.Is(err, settings.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	inForce := int64(0)
	for _, version := range []int64{2, 0, 1, 1, 3, 0, 2, 3, 2, 1, 5} {
		var want error
		if version != inForce+1 {
			want = settings.ErrConflict
		}
		if err := s.SaveSettings(t.Context(), record("maria", version)); !errors.Is(err, want) {
			t.Fatalf("version %d after %d: got %v, want %v", version, inForce, err, want)
		}
		if want == nil {
			inForce = version
		}
		if inForce > 0 {
			same(t, s, record("maria", inForce))
		}
	}
}

func owners(t *testing.T, s settings.Store) {
	names := []string{"maria", "Maria", "maria ", "mar%", "o'tto", "ünal", ""}
	for i, name := range names {
		for version := range int64(i + 1) {
			must(t, s.SaveSettings(t.Context(), record(name, version+1)))
		}
	}
	for i, name := range names {
		same(t, s, record(name, int64(i+1)))
	}
	if _, err := s.LoadSettings(t.Context(), "mari"); !errors.Is(err, settings.ErrNotFound) {
		t.Errorf("a user without settings has some: %v", err)
	}
}

func bodies(t *testing.T, s settings.Store) {
	for i, body := range [][]byte{{0, 1, 2, 0xff}, nil, bytes.Repeat([]byte("large "), 1<<18), []byte("short again")} {
		rec := record("maria", int64(i+1))
		rec.Body = body
		must(t, s.SaveSettings(t.Context(), rec))
		got, err := s.LoadSettings(t.Context(), "maria")
		must(t, err)
		if !bytes.Equal(got.Body, body) {
			t.Errorf("%d bytes came back as %d others", len(body), len(got.Body))
		}
	}
}

// copies: neither the caller's bytes nor those that were read are the store's.
func copies(t *testing.T, s settings.Store) {
	rec := record("maria", 1)
	must(t, s.SaveSettings(t.Context(), rec))
	clear(rec.Body)
	same(t, s, record("maria", 1))
	got, err := s.LoadSettings(t.Context(), "maria")
	must(t, err)
	clear(got.Body)
	same(t, s, record("maria", 1))
}

// oneWins has many write the same version: one succeeds, the others know that they did not.
func oneWins(t *testing.T, s settings.Store) {
	for version := range int64(5) {
		var all sync.WaitGroup
		won := make(chan string, 8)
		for i := range cap(won) {
			all.Go(func() {
				rec := record("maria", version+1)
				rec.Body = fmt.Append(nil, "of ", i)
				switch err := s.SaveSettings(t.Context(), rec); {
				case err == nil:
					won <- string(rec.Body)
				case !errors.Is(err, settings.ErrConflict):
					t.Error(err)
				}
			})
		}
		all.Wait()
		if len(won) != 1 {
			t.Fatalf("version %d was written %d times", version+1, len(won))
		}
		got, err := s.LoadSettings(t.Context(), "maria")
		must(t, err)
		if want := <-won; string(got.Body) != want || got.Version != version+1 {
			t.Errorf("version %d is %q, want version %d and %q", got.Version, got.Body, version+1, want)
		}
	}
}

// nothingIsLost has several writers read a number, add one and write it, each again when another was faster.
func nothingIsLost(t *testing.T, s settings.Store) {
	const writers, each = 4, 10
	add := func(ctx context.Context) error {
		for {
			rec, err := s.LoadSettings(ctx, "maria")
			if err != nil && !errors.Is(err, settings.ErrNotFound) {
				return err
			}
			n, _ := strconv.Atoi(string(rec.Body))
			err = s.SaveSettings(ctx, settings.Record{User: "maria", Version: rec.Version + 1, Body: []byte(strconv.Itoa(n + 1)), UpdatedAt: noon})
			if !errors.Is(err, settings.ErrConflict) {
				return err
			}
		}
	}
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range each {
				if err := add(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	got, err := s.LoadSettings(t.Context(), "maria")
	must(t, err)
	if want := strconv.Itoa(writers * each); string(got.Body) != want || got.Version != writers*each {
		t.Errorf("version %d holds %s, want %s", got.Version, got.Body, want)
	}
}

func reopen(t *testing.T, s settings.Store) {
	r, ok := s.(Reopener)
	if !ok {
		t.Skip("the store does not survive its process")
	}
	must(t, s.SaveSettings(t.Context(), record("maria", 1)))
	must(t, s.SaveSettings(t.Context(), record("maria", 2)))
	s = r.Reopen(t)
	same(t, s, record("maria", 2))
	if err := s.SaveSettings(t.Context(), record("maria", 2)); !errors.Is(err, settings.ErrConflict) {
		t.Errorf("the version was forgotten: %v", err)
	}
}

func same(t *testing.T, s settings.Store, want settings.Record) {
	t.Helper()
	got, err := s.LoadSettings(t.Context(), want.User)
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Package keystoretest is what every secret.KeyStore must pass.
package keystoretest

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/secret"
)

// noon is a time that every store can keep.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

// Reopener is a store that survives its process. Reopen closes it and opens what it has stored.
type Reopener interface {
	Reopen(t *testing.T) secret.KeyStore
}

// Run runs the suite. open gives a new, empty store for each test and closes it with t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) secret.KeyStore) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, secret.KeyStore)
	}{
		{"Master", master},
		{"OneMaster", oneMaster},
		{"Keys", keys},
		{"OneKey", oneKey},
		{"Rewrap", rewrap},
		{"RewrapRefused", rewrapRefused},
		{"RewrapUndone", rewrapUndone},
		{"OneRewrap", oneRewrap},
		{"AddWhileRewrapping", addWhileRewrapping},
		{"Reopen", reopen},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, open(t))
		})
	}
}

func key(user, id string) secret.DataKey {
	return secret.DataKey{User: user, ID: id, MasterID: "m1", Wrapped: []byte{0, 0xff, 'k', id[0]}, CreatedAt: noon}
}

// begin is a store with the master key m1 and these keys.
func begin(t *testing.T, s secret.KeyStore, all ...secret.DataKey) {
	t.Helper()
	_, err := s.InitMaster(t.Context(), "m1")
	must(t, err)
	for _, k := range all {
		_, err := s.AddDataKey(t.Context(), k)
		must(t, err)
	}
}

func master(t *testing.T, s secret.KeyStore) {
	inForce(t, s, "")
	for _, id := range []string{"m1", "m1", "m2"} {
		got, err := s.InitMaster(t.Context(), id)
		must(t, err)
		if got != "m1" {
			t.Errorf("%s: got %q, want the first one", id, got)
		}
	}
	inForce(t, s, "m1")
}

// oneMaster: of several processes that start together, all use the first one's.
func oneMaster(t *testing.T, s secret.KeyStore) {
	var all sync.WaitGroup
	got := make(chan string, 8)
	for i := range cap(got) {
		all.Go(func() {
			id, err := s.InitMaster(t.Context(), fmt.Sprint("m", i))
			if err != nil {
				t.Error(err)
			}
			got <- id
		})
	}
	all.Wait()
	first := <-got
	for range cap(got) - 1 {
		if id := <-got; id != first {
			t.Errorf("two master keys are in force: %s and %s", first, id)
		}
	}
	inForce(t, s, first)
}

func keys(t *testing.T, s secret.KeyStore) {
	if _, err := s.AddDataKey(t.Context(), key("maria", "a")); !errors.Is(err, secret.ErrMasterChanged) {
		t.Errorf("without a master key: got %v, want ErrMasterChanged", err)
	}
	begin(t, s)
	missing(t, s, "maria")
	wrong := key("maria", "a")
	wrong.MasterID = "m2"
	if _, err := s.AddDataKey(t.Context(), wrong); !errors.Is(err, secret.ErrMasterChanged) {
		t.Errorf("got %v, want ErrMasterChanged", err)
	}
	missing(t, s, "maria")
	for _, k := range []secret.DataKey{key("maria", "a"), key("maria", "b")} { // the first stays
		got, err := s.AddDataKey(t.Context(), k)
		must(t, err)
		if diff := cmp.Diff(key("maria", "a"), got); diff != "" {
			t.Error(diff)
		}
	}
	missing(t, s, "otto")
	missing(t, s, "Maria")
	_, err := s.AddDataKey(t.Context(), key("otto", "c"))
	must(t, err)
	same(t, s, key("otto", "c"))
	same(t, s, key("maria", "a"))
}

// oneKey has many make a key for the same user: all get the same one.
func oneKey(t *testing.T, s secret.KeyStore) {
	begin(t, s)
	var all sync.WaitGroup
	got := make(chan secret.DataKey, 8)
	for i := range cap(got) {
		all.Go(func() {
			k, err := s.AddDataKey(t.Context(), key("maria", fmt.Sprint(i)))
			if err != nil {
				t.Error(err)
			}
			got <- k
		})
	}
	all.Wait()
	first := <-got
	for range cap(got) - 1 {
		if diff := cmp.Diff(first, <-got); diff != "" {
			t.Error(diff)
		}
	}
	same(t, s, first)
}

// wrapped is what a change of the master key makes of a key.
func wrapped(k secret.DataKey, by string) secret.DataKey {
	k.MasterID, k.Wrapped = by, append(bytes.Clone(k.Wrapped), by...)
	return k
}

func rewrap(t *testing.T, s secret.KeyStore) {
	begin(t, s, key("maria", "a"), key("otto", "b"))
	var seen sync.Map
	must(t, s.Rewrap(t.Context(), "m1", "m2", func(k secret.DataKey) (secret.DataKey, error) {
		seen.Store(k.User, true)
		return wrapped(k, "m2"), nil
	}))
	inForce(t, s, "m2")
	same(t, s, wrapped(key("maria", "a"), "m2"))
	same(t, s, wrapped(key("otto", "b"), "m2"))
	for _, user := range []string{"maria", "otto"} {
		if _, ok := seen.Load(user); !ok {
			t.Errorf("the key of %s was not shown", user)
		}
	}
	if _, err := s.AddDataKey(t.Context(), key("late", "c")); !errors.Is(err, secret.ErrMasterChanged) {
		t.Errorf("a key of the old master: got %v, want ErrMasterChanged", err)
	}
	if got, err := s.InitMaster(t.Context(), "m1"); err != nil || got != "m2" {
		t.Errorf("the old master is back: %q, %v", got, err)
	}
}

func rewrapRefused(t *testing.T, s secret.KeyStore) {
	begin(t, s, key("maria", "a"))
	err := s.Rewrap(t.Context(), "m2", "m3", func(k secret.DataKey) (secret.DataKey, error) { return wrapped(k, "m3"), nil })
	if !errors.Is(err, secret.ErrMasterChanged) {
		t.Errorf("got %v, want ErrMasterChanged", err)
	}
	inForce(t, s, "m1")
	same(t, s, key("maria", "a"))
}

// rewrapUndone: when one key cannot be wrapped, none is.
func rewrapUndone(t *testing.T, s secret.KeyStore) {
	begin(t, s, key("maria", "a"), key("otto", "b"), key("ünal", "c"))
	broken := errors.New("broken")
	n := 0
	err := s.Rewrap(t.Context(), "m1", "m2", func(k secret.DataKey) (secret.DataKey, error) {
		if n++; n == 2 {
			return k, broken
		}
		return wrapped(k, "m2"), nil
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want what the function said", err)
	}
	inForce(t, s, "m1")
	for _, k := range []secret.DataKey{key("maria", "a"), key("otto", "b"), key("ünal", "c")} {
		same(t, s, k)
	}
}

// oneRewrap: of two changes of the same master key one succeeds, and every key is wrapped by it alone.
func oneRewrap(t *testing.T, s secret.KeyStore) {
	begin(t, s, key("maria", "a"), key("otto", "b"))
	var all sync.WaitGroup
	won := make(chan string, 4)
	for i := range cap(won) {
		all.Go(func() {
			id := fmt.Sprint("next", i)
			err := s.Rewrap(t.Context(), "m1", id, func(k secret.DataKey) (secret.DataKey, error) { return wrapped(k, id), nil })
			switch {
			case err == nil:
				won <- id
			case !errors.Is(err, secret.ErrMasterChanged):
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(won) != 1 {
		t.Fatalf("%d changes succeeded", len(won))
	}
	id := <-won
	inForce(t, s, id)
	same(t, s, wrapped(key("maria", "a"), id))
	same(t, s, wrapped(key("otto", "b"), id))
}

// addWhileRewrapping: a key is refused, or it is rewrapped with the others.
func addWhileRewrapping(t *testing.T, s secret.KeyStore) {
	begin(t, s)
	var all sync.WaitGroup
	var added sync.Map
	for i := range 16 {
		all.Go(func() {
			k := key(fmt.Sprint("user", i), fmt.Sprint(i))
			switch _, err := s.AddDataKey(t.Context(), k); {
			case err == nil:
				added.Store(k.User, k)
			case !errors.Is(err, secret.ErrMasterChanged):
				t.Error(err)
			}
		})
	}
	all.Go(func() {
		if err := s.Rewrap(t.Context(), "m1", "m2", func(k secret.DataKey) (secret.DataKey, error) { return wrapped(k, "m2"), nil }); err != nil {
			t.Error(err)
		}
	})
	all.Wait()
	for i := range 16 {
		user := fmt.Sprint("user", i)
		if k, ok := added.Load(user); ok {
			same(t, s, wrapped(k.(secret.DataKey), "m2"))
		} else {
			missing(t, s, user)
		}
	}
}

func reopen(t *testing.T, s secret.KeyStore) {
	r, ok := s.(Reopener)
	if !ok {
		t.Skip("the store does not survive its process")
	}
	begin(t, s, key("maria", "a"))
	s = r.Reopen(t)
	inForce(t, s, "m1")
	same(t, s, key("maria", "a"))
	must(t, s.Rewrap(t.Context(), "m1", "m2", func(k secret.DataKey) (secret.DataKey, error) { return wrapped(k, "m2"), nil }))
	s = s.(Reopener).Reopen(t)
	inForce(t, s, "m2")
	same(t, s, wrapped(key("maria", "a"), "m2"))
}

func inForce(t *testing.T, s secret.KeyStore, want string) {
	t.Helper()
	got, err := s.MasterID(t.Context())
	must(t, err)
	if got != want {
		t.Errorf("the master key in force is %q, want %q", got, want)
	}
}

func same(t *testing.T, s secret.KeyStore, want secret.DataKey) {
	t.Helper()
	got, err := s.DataKey(t.Context(), want.User)
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func missing(t *testing.T, s secret.KeyStore, user string) {
	t.Helper()
	if _, err := s.DataKey(t.Context(), user); !errors.Is(err, secret.ErrNoDataKey) {
		t.Errorf("%q: got %v, want ErrNoDataKey", user, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Package accesstest is what every access.Store must pass.
package accesstest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"deckhand/internal/access"
)

// noon is a time that every store can keep.
var noon = time.Date(2026, 3, 1, 12, 0, 0, int(123*time.Millisecond), time.UTC)

// Reopener is a store that survives its process. Reopen closes it and opens what it has stored.
type Reopener interface {
	Reopen(t *testing.T) access.Store
}

// Run runs the suite. open gives a new, empty store for each test and closes it with t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) access.Store) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, access.Store)
	}{
		{"Users", users},
		{"UserTwice", userTwice},
		{"UserMissing", userMissing},
		{"Disable", disable},
		{"Promote", promote},
		{"Links", links},
		{"Keys", keys},
		{"KeyOrder", keyOrder},
		{"KeyTaken", keyTaken},
		{"KeyMissing", keyMissing},
		{"Revoke", revoke},
		{"Generation", generation},
		{"Concurrent", concurrent},
		{"RevokedAtOnce", revokedAtOnce},
		{"Reopen", reopen},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

func users(t *testing.T, s access.Store) {
	empty, err := s.Users(t.Context())
	must(t, err)
	if len(empty) != 0 {
		t.Fatalf("a new store has %d users", len(empty))
	}
	carol := access.User{Name: "carol", CreatedAt: noon}
	alice := access.User{Name: "alice", Admin: true, Disabled: true, CreatedAt: noon.Add(time.Hour)}
	must(t, s.CreateUser(t.Context(), carol))
	must(t, s.CreateUser(t.Context(), alice))
	for _, want := range []access.User{carol, alice} {
		got, err := s.User(t.Context(), want.Name)
		must(t, err)
		sameUser(t, got, want)
	}
	all, err := s.Users(t.Context())
	must(t, err)
	if len(all) != 2 {
		t.Fatalf("got %d users, want 2", len(all))
	}
	sameUser(t, all[0], alice)
	sameUser(t, all[1], carol)
}

func userTwice(t *testing.T, s access.Store) {
	must(t, s.CreateUser(t.Context(), access.User{Name: "bob", CreatedAt: noon}))
	wants(t, s.CreateUser(t.Context(), access.User{Name: "bob", Admin: true, CreatedAt: noon}), access.ErrExists)
	got, err := s.User(t.Context(), "bob")
	must(t, err)
	sameUser(t, got, access.User{Name: "bob", CreatedAt: noon})
}

func userMissing(t *testing.T, s access.Store) {
	_, err := s.User(t.Context(), "missing")
	wants(t, err, access.ErrNotFound)
	wants(t, s.SetUserDisabled(t.Context(), "missing", true), access.ErrNotFound)
	wants(t, s.SetUserAdmin(t.Context(), "missing", true), access.ErrNotFound)
	wants(t, s.CreateKey(t.Context(), key("k1", "missing", 1)), access.ErrNotFound)
	none, err := s.Keys(t.Context(), "missing")
	must(t, err)
	if len(none) != 0 {
		t.Fatalf("an unknown user has %d keys", len(none))
	}
}

func disable(t *testing.T, s access.Store) {
	must(t, s.CreateUser(t.Context(), access.User{Name: "bob", CreatedAt: noon}))
	for _, disabled := range []bool{true, true, false} {
		must(t, s.SetUserDisabled(t.Context(), "bob", disabled))
		got, err := s.User(t.Context(), "bob")
		must(t, err)
		sameUser(t, got, access.User{Name: "bob", Disabled: disabled, CreatedAt: noon})
	}
}

func promote(t *testing.T, s access.Store) {
	must(t, s.CreateUser(t.Context(), access.User{Name: "bob", CreatedAt: noon}))
	for _, admin := range []bool{true, true, false} {
		must(t, s.SetUserAdmin(t.Context(), "bob", admin))
		got, err := s.User(t.Context(), "bob")
		must(t, err)
		sameUser(t, got, access.User{Name: "bob", Admin: admin, CreatedAt: noon})
	}
}

// links: a person is an issuer and a subject together, and nothing of a refused one is left.
func links(t *testing.T, s access.Store) {
	must(t, s.CreateUser(t.Context(), access.User{Name: "taken", CreatedAt: noon}))
	ada := access.User{Name: "ada", Admin: true, CreatedAt: noon}
	link := access.Link{Issuer: "https://id.example.org", Subject: "1", User: "ada", CreatedAt: noon}
	_, err := s.Linked(t.Context(), link.Issuer, link.Subject)
	wants(t, err, access.ErrNotFound)
	must(t, s.CreateLinked(t.Context(), ada, link))
	got, err := s.Linked(t.Context(), link.Issuer, link.Subject)
	must(t, err)
	sameUser(t, got, ada)
	for _, other := range [][2]string{{"https://id.example.com", "1"}, {link.Issuer, "2"}, {link.Issuer, ""}, {"", "1"}} {
		_, err := s.Linked(t.Context(), other[0], other[1])
		wants(t, err, access.ErrNotFound)
	}
	for _, e := range []access.Email{{Address: "ada@example.org", Verified: true}, {Address: "ada@example.com"}, {}} {
		must(t, s.SetEmail(t.Context(), link.Issuer, link.Subject, e))
		if got, err := s.Email(t.Context(), "ada"); err != nil || got != e {
			t.Errorf("the address is %+v (%v), want %+v", got, err, e)
		}
	}
	wants(t, s.SetEmail(t.Context(), link.Issuer, "2", access.Email{}), access.ErrNotFound)
	_, err = s.Email(t.Context(), "taken")
	wants(t, err, access.ErrNotFound)
	again := link
	again.User = "ada2"
	wants(t, s.CreateLinked(t.Context(), access.User{Name: "ada2", CreatedAt: noon}, again), access.ErrExists)
	_, err = s.User(t.Context(), "ada2")
	wants(t, err, access.ErrNotFound)
	second := access.Link{Issuer: link.Issuer, Subject: "2", User: "taken", CreatedAt: noon}
	wants(t, s.CreateLinked(t.Context(), access.User{Name: "taken", CreatedAt: noon}, second), access.ErrExists)
	_, err = s.Linked(t.Context(), second.Issuer, second.Subject)
	wants(t, err, access.ErrNotFound)
}

func keys(t *testing.T, s access.Store) {
	must(t, s.CreateUser(t.Context(), access.User{Name: "bob", CreatedAt: noon}))
	plain := key("000000000001", "bob", 1)
	full := key("000000000002", "bob", 2)
	expires := noon.Add(720 * time.Hour)
	full.Label, full.Admin, full.SignOn, full.ExpiresAt = "CI – 'quoted'", true, true, &expires
	for i := range full.Hash {
		full.Hash[i] = byte(255 - i) // bytes that are no text
	}
	for _, want := range []access.Key{plain, full} {
		must(t, s.CreateKey(t.Context(), want))
		got, err := s.KeyByHash(t.Context(), want.Hash)
		must(t, err)
		sameKey(t, got, want)
	}
}

func keyOrder(t *testing.T, s access.Store) {
	for _, name := range []string{"alice", "bob"} {
		must(t, s.CreateUser(t.Context(), access.User{Name: name, CreatedAt: noon}))
	}
	for i, k := range []access.Key{
		key("b", "bob", 2), key("d", "alice", 9), key("a", "bob", 2), key("c", "bob", 1),
	} {
		k.Hash[31] = byte(i + 1)
		must(t, s.CreateKey(t.Context(), k))
	}
	for user, want := range map[string][]string{"": {"d", "a", "b", "c"}, "bob": {"a", "b", "c"}, "alice": {"d"}} {
		list, err := s.Keys(t.Context(), user)
		must(t, err)
		var got []string
		for _, k := range list {
			got = append(got, k.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("keys of %q: %v, want %v", user, got, want)
		}
	}
}

func keyTaken(t *testing.T, s access.Store) {
	must(t, s.CreateUser(t.Context(), access.User{Name: "bob", CreatedAt: noon}))
	first := key("k1", "bob", 1)
	must(t, s.CreateKey(t.Context(), first))
	wants(t, s.CreateKey(t.Context(), key("k1", "bob", 2)), access.ErrExists)
	wants(t, s.CreateKey(t.Context(), key("k2", "bob", 1)), access.ErrExists)
	list, err := s.Keys(t.Context(), "")
	must(t, err)
	if len(list) != 1 {
		t.Fatalf("got %d keys, want 1", len(list))
	}
	sameKey(t, list[0], first)
}

func keyMissing(t *testing.T, s access.Store) {
	_, err := s.KeyByHash(t.Context(), [32]byte{1})
	wants(t, err, access.ErrNotFound)
	_, err = s.RevokeKey(t.Context(), "nothing", noon)
	wants(t, err, access.ErrNotFound)
}

func revoke(t *testing.T, s access.Store) {
	must(t, s.CreateUser(t.Context(), access.User{Name: "bob", CreatedAt: noon}))
	revoked, other := key("k1", "bob", 1), key("k2", "bob", 2)
	must(t, s.CreateKey(t.Context(), revoked))
	must(t, s.CreateKey(t.Context(), other))
	at := noon.Add(time.Minute)
	revoked.RevokedAt = &at
	for i := range 2 { // the second time changes nothing
		got, err := s.RevokeKey(t.Context(), "k1", at.Add(time.Duration(i)*time.Hour))
		must(t, err)
		sameKey(t, got, revoked)
	}
	for _, want := range []access.Key{revoked, other} {
		got, err := s.KeyByHash(t.Context(), want.Hash)
		must(t, err)
		sameKey(t, got, want)
	}
}

func generation(t *testing.T, s access.Store) {
	last := read(t, s)
	for _, step := range []struct {
		name   string
		change func() error
	}{
		{"CreateUser", func() error { return s.CreateUser(t.Context(), access.User{Name: "bob", CreatedAt: noon}) }},
		{"CreateKey", func() error { return s.CreateKey(t.Context(), key("k1", "bob", 1)) }},
		{"SetUserDisabled", func() error { return s.SetUserDisabled(t.Context(), "bob", true) }},
		{"SetUserDisabled back", func() error { return s.SetUserDisabled(t.Context(), "bob", false) }},
		{"SetUserAdmin", func() error { return s.SetUserAdmin(t.Context(), "bob", true) }},
		{"CreateLinked", func() error {
			return s.CreateLinked(t.Context(), access.User{Name: "ada", CreatedAt: noon}, access.Link{Issuer: "i", Subject: "s", User: "ada", CreatedAt: noon})
		}},
		{"RevokeKey", func() error { _, err := s.RevokeKey(t.Context(), "k1", noon); return err }},
	} {
		must(t, step.change())
		now := read(t, s)
		if now <= last {
			t.Errorf("%s: the generation went from %d to %d, want it to grow", step.name, last, now)
		}
		last = now
	}
	_, err := s.Users(t.Context())
	must(t, err)
	_, err = s.Keys(t.Context(), "")
	must(t, err)
	if now := read(t, s); now != last {
		t.Errorf("reading moved the generation from %d to %d", last, now)
	}
}

// concurrent has many make the same user and their own keys: one user, all keys, and a generation that missed nothing.
func concurrent(t *testing.T, s access.Store) {
	const n = 8
	before := read(t, s)
	var wg sync.WaitGroup
	var mu sync.Mutex
	made := 0
	for i := range n {
		wg.Go(func() {
			err := s.CreateUser(t.Context(), access.User{Name: "bob", CreatedAt: noon})
			switch {
			case err == nil:
				mu.Lock()
				made++
				mu.Unlock()
			case !errors.Is(err, access.ErrExists):
				t.Errorf("CreateUser: %v", err)
			}
			if err := s.CreateKey(t.Context(), key(fmt.Sprintf("k%d", i), "bob", byte(i+1))); err != nil {
				t.Errorf("CreateKey: %v", err)
			}
		})
	}
	wg.Wait()
	if made != 1 {
		t.Errorf("the user was made %d times, want once", made)
	}
	list, err := s.Keys(t.Context(), "bob")
	must(t, err)
	if len(list) != n {
		t.Errorf("got %d keys, want %d", len(list), n)
	}
	if grew := read(t, s) - before; grew < n+1 {
		t.Errorf("the generation grew by %d over %d changes", grew, n+1)
	}
}

// revokedAtOnce has many revoke the same key: it has one moment of revocation, which all of them see.
func revokedAtOnce(t *testing.T, s access.Store) {
	must(t, s.CreateUser(t.Context(), access.User{Name: "bob", CreatedAt: noon}))
	must(t, s.CreateKey(t.Context(), key("k1", "bob", 1)))
	var wg sync.WaitGroup
	got := make(chan access.Key, 8)
	for i := range cap(got) {
		wg.Go(func() {
			k, err := s.RevokeKey(t.Context(), "k1", noon.Add(time.Duration(i+1)*time.Hour))
			if err != nil || k.RevokedAt == nil {
				t.Errorf("RevokeKey: %+v, %v", k, err)
			}
			got <- k
		})
	}
	wg.Wait()
	stored, err := s.KeyByHash(t.Context(), [32]byte{1})
	must(t, err)
	for range cap(got) {
		sameKey(t, <-got, stored)
	}
}

func reopen(t *testing.T, s access.Store) {
	r, ok := s.(Reopener)
	if !ok {
		t.Skip("the store does not survive its process")
	}
	must(t, s.CreateUser(t.Context(), access.User{Name: "bob", CreatedAt: noon}))
	revoked, expiring := key("k1", "bob", 1), key("k2", "bob", 2)
	expires := noon.Add(time.Hour)
	expiring.ExpiresAt = &expires
	must(t, s.CreateKey(t.Context(), revoked))
	must(t, s.CreateKey(t.Context(), expiring))
	revoked, err := s.RevokeKey(t.Context(), "k1", noon.Add(time.Minute))
	must(t, err)
	must(t, s.SetUserDisabled(t.Context(), "bob", true))
	before := read(t, s)
	s = r.Reopen(t)
	for _, want := range []access.Key{revoked, expiring} {
		got, err := s.KeyByHash(t.Context(), want.Hash)
		must(t, err)
		sameKey(t, got, want)
	}
	got, err := s.User(t.Context(), "bob")
	must(t, err)
	sameUser(t, got, access.User{Name: "bob", Disabled: true, CreatedAt: noon})
	if now := read(t, s); now < before {
		t.Errorf("the generation went from %d to %d", before, now)
	}
}

// key is a key whose hash starts with b and which was made b minutes after noon.
func key(id, user string, b byte) access.Key {
	return access.Key{ID: id, User: user, CreatedAt: noon.Add(time.Duration(b) * time.Minute), Hash: [32]byte{b}}
}

func read(t *testing.T, s access.Store) int64 {
	t.Helper()
	n, err := s.AccessGeneration(t.Context())
	must(t, err)
	return n
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wants(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
	}
}

func sameUser(t *testing.T, got, want access.User) {
	t.Helper()
	ok := got.CreatedAt.Equal(want.CreatedAt)
	got.CreatedAt = want.CreatedAt
	if !ok || got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func sameKey(t *testing.T, got, want access.Key) {
	t.Helper()
	ok := got.CreatedAt.Equal(want.CreatedAt) && sameTime(got.ExpiresAt, want.ExpiresAt) && sameTime(got.RevokedAt, want.RevokedAt)
	got.CreatedAt, got.ExpiresAt, got.RevokedAt = want.CreatedAt, want.ExpiresAt, want.RevokedAt
	if !ok || got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func sameTime(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}

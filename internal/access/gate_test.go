package access

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// clock is a time that tests move by hand.
type clock struct{ ns atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.ns.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) now() time.Time          { return time.Unix(0, c.ns.Load()).UTC() }
func (c *clock) advance(d time.Duration) { c.ns.Add(int64(d)) }

// counting counts the reads of a store, and fails or interrupts them on demand.
type counting struct {
	Store
	reads   atomic.Int64
	fail    atomic.Bool
	onFound func() // called after KeyByHash found something and before it returns
}

var errDisk = errors.New("disk on fire")

func (c *counting) KeyByHash(ctx context.Context, hash [32]byte) (Key, error) {
	c.reads.Add(1)
	if c.fail.Load() {
		return Key{}, errDisk
	}
	k, err := c.Store.KeyByHash(ctx, hash)
	if c.onFound != nil {
		c.onFound()
	}
	return k, err
}

func (c *counting) Keys(ctx context.Context, user string) ([]Key, error) {
	c.reads.Add(1)
	if c.fail.Load() {
		return nil, errDisk
	}
	return c.Store.Keys(ctx, user)
}

func newTestGate(t testing.TB) (*Gate, *counting, *clock) {
	t.Helper()
	s, c := &counting{Store: NewMemStore()}, newClock()
	return NewGate(s, Options{Now: c.now, CookieKey: [32]byte{1}}), s, c
}

func create(t testing.TB, g *Gate, user string, admin bool, expires time.Duration) (string, Key) {
	t.Helper()
	plain, key, err := g.Create(t.Context(), user, "", admin, expires)
	if err != nil {
		t.Fatal(err)
	}
	return plain, key
}

func refused(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
	}
}

func good(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAuthenticate(t *testing.T) {
	g, _, _ := newTestGate(t)
	plain, key := create(t, g, "bob", false, 0)
	id, err := g.Authenticate(t.Context(), plain)
	good(t, err)
	if id != (Identity{User: "bob", KeyID: key.ID}) {
		t.Errorf("got %+v", id)
	}
	for name, wrong := range map[string]string{
		"empty":          "",
		"another key":    newKey(),
		"cut short":      plain[:len(plain)-1],
		"too long":       plain + "A",
		"upper case":     strings.ToUpper(plain),
		"space":          " " + plain[:len(plain)-1],
		"its hash":       string(key.Hash[:]),
		"its id":         key.ID,
		"very long":      strings.Repeat("dh_", 1<<16),
		"without prefix": plain[3:],
	} {
		if _, err := g.Authenticate(t.Context(), wrong); !errors.Is(err, ErrUnauthorized) {
			t.Errorf("%s: got error %v, want ErrUnauthorized", name, err)
		}
	}
}

func TestAuthenticateAdmin(t *testing.T) {
	g, _, _ := newTestGate(t)
	adminKey, _ := create(t, g, "root", true, 0)
	plainKey, _ := create(t, g, "root", false, 0)
	for key, want := range map[string]bool{adminKey: true, plainKey: false} {
		id, err := g.Authenticate(t.Context(), key)
		good(t, err)
		if id.Admin != want {
			t.Errorf("admin is %v, want %v", id.Admin, want)
		}
	}
}

// A key that says admin counts for nothing when its user is no administrator, however it got into the store.
func TestAdminNeedsBoth(t *testing.T) {
	g, s, _ := newTestGate(t)
	good(t, s.CreateUser(t.Context(), User{Name: "bob"}))
	plain := newKey()
	good(t, s.CreateKey(t.Context(), Key{ID: "k", User: "bob", Admin: true, Hash: hashOf(plain)}))
	id, err := g.Authenticate(t.Context(), plain)
	good(t, err)
	if id.Admin {
		t.Error("a key made its user an administrator")
	}
}

func TestAuthenticateIsCached(t *testing.T) {
	g, s, _ := newTestGate(t)
	plain, _ := create(t, g, "bob", false, 0)
	before := s.reads.Load()
	for range 5 {
		_, err := g.Authenticate(t.Context(), plain)
		good(t, err)
	}
	if n := s.reads.Load() - before; n != 1 {
		t.Errorf("the store was read %d times, want once", n)
	}
}

func TestCacheIsBounded(t *testing.T) {
	g, _, _ := newTestGate(t)
	g.cacheSize = 3
	g.cache.Store(newCache(3))
	plains := make([]string, 10)
	for i := range plains {
		plains[i], _ = create(t, g, "bob", false, 0)
	}
	for _, plain := range plains {
		_, err := g.Authenticate(t.Context(), plain)
		good(t, err)
		_, err = g.Authenticate(t.Context(), newKey())
		refused(t, err, ErrUnauthorized)
	}
	if n := len(g.cache.Load().m); n != 3 {
		t.Errorf("the cache holds %d, want 3", n)
	}
}

func TestKeyExpires(t *testing.T) {
	g, _, c := newTestGate(t)
	plain, key := create(t, g, "bob", false, time.Hour)
	id, err := g.Authenticate(t.Context(), plain)
	good(t, err)
	if id.ExpiresAt == nil || !id.ExpiresAt.Equal(c.now().Add(time.Hour)) || !key.ExpiresAt.Equal(*id.ExpiresAt) {
		t.Errorf("expires at %v", id.ExpiresAt)
	}
	c.advance(time.Hour - 1)
	_, err = g.Authenticate(t.Context(), plain)
	good(t, err)
	c.advance(1)
	_, err = g.Authenticate(t.Context(), plain) // from the cache
	refused(t, err, ErrUnauthorized)
	g.cache.Store(newCache(10))
	_, err = g.Authenticate(t.Context(), plain) // from the store
	refused(t, err, ErrUnauthorized)
}

// Another process changes the store; the next Refresh makes it felt.
func TestChangeElsewhere(t *testing.T) {
	g, s, c := newTestGate(t)
	plain, key := create(t, g, "bob", false, 0)
	login := func() error { _, err := g.Authenticate(t.Context(), plain); return err }
	good(t, login())
	for _, step := range []struct {
		change   func() error
		want     error
		disabled bool
	}{
		{func() error { return nil }, nil, false},
		{func() error { return s.SetUserDisabled(t.Context(), "bob", true) }, ErrUnauthorized, true},
		{func() error { return s.SetUserDisabled(t.Context(), "bob", false) }, nil, false},
		{func() error { _, err := s.RevokeKey(t.Context(), key.ID, c.now()); return err }, ErrUnauthorized, false},
	} {
		good(t, step.change())
		good(t, g.Refresh(t.Context()))
		refused(t, login(), step.want)
		if disabled, err := g.Disabled(t.Context(), "bob"); err != nil || disabled != step.disabled {
			t.Errorf("disabled: %t, %v, want %t", disabled, err, step.disabled)
		}
	}
}

// A key is looked up, then revoked and refreshed before the answer arrives: the late answer must not be remembered.
func TestLateAnswerIsNotCached(t *testing.T) {
	g, s, _ := newTestGate(t)
	plain, key := create(t, g, "bob", false, 0)
	var once sync.Once
	s.onFound = func() {
		once.Do(func() {
			_, err := g.Revoke(t.Context(), key.ID, false)
			good(t, err)
		})
	}
	if _, err := g.Authenticate(t.Context(), plain); err != nil && !errors.Is(err, ErrUnauthorized) {
		t.Fatal(err)
	}
	_, err := g.Authenticate(t.Context(), plain)
	refused(t, err, ErrUnauthorized)
}

func TestStoreFailureIsNoRefusal(t *testing.T) {
	g, s, _ := newTestGate(t)
	plain, _ := create(t, g, "bob", false, 0)
	s.fail.Store(true)
	_, err := g.Authenticate(t.Context(), plain)
	refused(t, err, errDisk)
	if errors.Is(err, ErrUnauthorized) {
		t.Error("a broken store looks like a wrong key")
	}
}

// A store that finds by some looser comparison gives no access.
type sloppy struct{ Store }

func (s sloppy) KeyByHash(ctx context.Context, _ [32]byte) (Key, error) {
	keys, err := s.Keys(ctx, "")
	return keys[0], err
}

func TestWholeHashIsCompared(t *testing.T) {
	g := NewGate(sloppy{NewMemStore()}, Options{})
	create(t, g, "bob", false, 0)
	_, err := g.Authenticate(t.Context(), newKey())
	refused(t, err, ErrUnauthorized)
}

func TestKeysAreUnguessable(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		k := newKey()
		if !wholeKey(k) || len(k) != 46 || seen[k] {
			t.Fatalf("bad or repeated key of length %d", len(k))
		}
		seen[k] = true
	}
	for _, bad := range []string{"", "dh_", "dx_" + strings.Repeat("A", 43), "dh_" + strings.Repeat("A", 42) + "\n", "dh_" + strings.Repeat("+", 43)} {
		if wholeKey(bad) {
			t.Errorf("%q passes for a key", bad)
		}
	}
}

func BenchmarkAuthenticate(b *testing.B) {
	g := NewGate(NewMemStore(), Options{})
	plain, _ := create(b, g, "bob", false, time.Hour)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Authenticate(b.Context(), plain); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAuthenticateParallel(b *testing.B) {
	g := NewGate(NewMemStore(), Options{})
	plain, _ := create(b, g, "bob", false, time.Hour)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := g.Authenticate(b.Context(), plain); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkAuthenticateStranger(b *testing.B) {
	g := NewGate(NewMemStore(), Options{})
	stranger := newKey()
	b.ReportAllocs()
	for b.Loop() {
		g.Authenticate(b.Context(), stranger)
	}
}

package access

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestAllow(t *testing.T) {
	g, _, c := newTestGate(t)
	for i := range 100 {
		d := g.Allow("k", c.now())
		want := Decision{OK: true, Limit: 100, Remaining: 99 - i, Reset: time.Duration(i+1) * 20 * time.Millisecond}
		if d != want {
			t.Fatalf("request %d: %+v, want %+v", i, d, want)
		}
	}
	d := g.Allow("k", c.now())
	if want := (Decision{Limit: 100, Reset: 2 * time.Second, RetryAfter: 20 * time.Millisecond}); d != want {
		t.Errorf("%+v, want %+v", d, want)
	}
	if !g.Allow("another", c.now()).OK {
		t.Error("another key is limited too")
	}
	c.advance(d.RetryAfter)
	if !g.Allow("k", c.now()).OK || g.Allow("k", c.now()).OK {
		t.Error("after RetryAfter exactly one request may pass")
	}
	c.advance(time.Hour)
	if d := g.Allow("k", c.now()); d.Remaining != 99 {
		t.Errorf("after an hour: %+v", d)
	}
}

func TestAllowIsExactUnderLoad(t *testing.T) {
	g, _, c := newTestGate(t)
	var wg sync.WaitGroup
	var passed atomic.Int64
	for range 10 {
		wg.Go(func() {
			for range 50 {
				if g.Allow("k", c.now()).OK {
					passed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if passed.Load() != 100 {
		t.Errorf("%d requests passed, want 100", passed.Load())
	}
}

func TestAllowOptions(t *testing.T) {
	g := NewGate(NewMemStore(), Options{RatePerSecond: 0.5, Burst: 1})
	now := newClock().now()
	if d := g.Allow("k", now); !d.OK || d.Limit != 1 {
		t.Errorf("%+v", d)
	}
	if d := g.Allow("k", now); d.OK || d.RetryAfter != 2*time.Second {
		t.Errorf("%+v", d)
	}
}

func TestAllowFailure(t *testing.T) {
	g, _, c := newTestGate(t)
	fail := func(addr string, n int) (passed int) {
		for range n {
			if g.AllowFailure(addr).OK {
				passed++
			}
		}
		return passed
	}
	if n := fail("192.0.2.1:4000", 30); n != 20 {
		t.Errorf("%d failures passed, want 20", n)
	}
	for _, same := range []string{"192.0.2.1", "192.0.2.1:5000", "::ffff:192.0.2.1", "[::ffff:192.0.2.1]:80"} {
		if fail(same, 1) != 0 {
			t.Errorf("%s counts as another client", same)
		}
	}
	if fail("192.0.2.2", 1) != 1 {
		t.Error("another client is limited too")
	}
	c.advance(time.Second)
	if n := fail("192.0.2.1", 30); n != 5 {
		t.Errorf("%d failures passed after a second, want 5", n)
	}
	// One host may use any address of its /64.
	n := 0
	for i := range 30 {
		n += fail(fmt.Sprintf("[2001:db8::%x]:80", i), 1)
	}
	if n != 20 {
		t.Errorf("%d failures passed from one /64, want 20", n)
	}
	if fail("fe80::1%eth0", 1) != 1 || fail("nonsense", 25)+fail("", 25) != 20 {
		t.Error("odd addresses are not counted")
	}
}

func TestBucketsAreBounded(t *testing.T) {
	now := newClock().now()
	b := newBuckets[netip.Addr](5, 20)
	b.max = 10
	addr := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}) }
	for range 25 {
		b.take(addr(0), now)
	}
	passed := 0
	for i := range 1000 {
		if b.take(addr(i+1), now).OK {
			passed++
		}
	}
	if len(b.m) != 10 {
		t.Errorf("%d buckets, want 10", len(b.m))
	}
	if passed != 9+20 { // nine of their own, and what the shared one holds
		t.Errorf("%d passed, want 29", passed)
	}
	if b.take(addr(0), now).OK {
		t.Error("the crowd made a limited client's bucket forget")
	}
	later := now.Add(4 * time.Second) // all are full again
	b.take(addr(2000), later)
	if len(b.m) != 1 {
		t.Errorf("%d buckets after a pause, want 1", len(b.m))
	}
}

func BenchmarkAllow(b *testing.B) {
	g := NewGate(NewMemStore(), Options{})
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Millisecond)
		g.Allow("0123456789ab", now)
	}
}

func BenchmarkAllowFailure(b *testing.B) {
	g := NewGate(NewMemStore(), Options{})
	b.ReportAllocs()
	for b.Loop() {
		g.AllowFailure("192.0.2.1:4000")
	}
}

// More keys do not give a user more requests than the user may make.
func TestAllowUser(t *testing.T) {
	g := NewGate(NewMemStore(), Options{RatePerSecond: 10, Burst: 5})
	now := newClock().now()
	passed := 0
	for range 100 {
		if g.AllowUser("ada", now).OK {
			passed++
		}
	}
	if passed != 20 || !g.AllowUser("bob", now).OK || !g.AllowUser("ada", now.Add(time.Second)).OK {
		t.Errorf("%d requests passed, want 20", passed)
	}
	g = NewGate(NewMemStore(), Options{UserRatePerSecond: 1, UserBurst: 2})
	if g.AllowUser("ada", now); !g.AllowUser("ada", now).OK || g.AllowUser("ada", now).OK {
		t.Error("the user's own limit does not hold")
	}
}

func TestMaxKeys(t *testing.T) {
	c := newClock()
	g := NewGate(NewMemStore(), Options{Now: c.now, MaxKeys: 2})
	_, first := create(t, g, "ada", false, 0)
	create(t, g, "ada", false, time.Hour)
	var many *TooManyKeysError
	if _, _, err := g.Create(t.Context(), "ada", "", false, 0); !errors.As(err, &many) || many.Most != 2 {
		t.Errorf("a third key: %v", err)
	}
	create(t, g, "bob", false, 0)
	if _, err := g.Revoke(t.Context(), first.ID, true); err != nil {
		t.Fatal(err)
	}
	create(t, g, "ada", false, 0)
	c.advance(2 * time.Hour) // one has expired
	create(t, g, "ada", false, 0)
}

// Requests to several servers count together. Each may allow a burst before it knows of the others, and the buckets then owe these tokens.
func TestLimitsOfSeveralServers(t *testing.T) {
	a, _, c := newTestGate(t)
	b, _, _ := newTestGate(t)
	b.now = c.now
	a.ShareLimits()
	b.ShareLimits()
	tell := func() {
		fromA, fromB := a.TakeCounts(), b.TakeCounts()
		a.ApplyCounts(fromB)
		b.ApplyCounts(fromA)
	}
	pass := func(g *Gate, n int) (passed int) {
		for range n {
			if g.Allow("k", c.now()).OK {
				passed++
			}
		}
		return passed
	}
	if n := pass(a, 70); n != 70 {
		t.Fatal(n)
	}
	tell()
	if n := pass(b, 70); n != 30 {
		t.Errorf("%d requests passed on the other server, want 30", n)
	}
	if !b.Allow("another", c.now()).OK {
		t.Error("another key is limited too")
	}
	tell()
	tell() // nothing is reported twice
	if n := pass(a, 1); n != 0 {
		t.Error("more than a burst passed")
	}
	c.advance(time.Hour)
	if pass(a, 200)+pass(b, 200) != 200 {
		t.Error("both have a burst as long as they do not know of each other")
	}
	tell()
	if d := b.Allow("k", c.now()); d.OK || d.RetryAfter != 2*time.Second+20*time.Millisecond || d.Remaining != 0 {
		t.Errorf("%+v", d)
	}
	c.advance(2*time.Second + 20*time.Millisecond)
	if pass(a, 2) != 1 {
		t.Error("after RetryAfter exactly one request may pass")
	}

	for range 20 {
		a.AllowFailure("192.0.2.1:1234")
	}
	a.Conflict("ada")
	a.AllowUser("ada", c.now())
	tell()
	if b.AllowFailure("192.0.2.1").OK || !b.AllowFailure("192.0.2.2").OK {
		t.Error("invalid keys do not count together")
	}
	if b.MayConflict("ada").Remaining != conflictsBurst-1 || b.AllowUser("ada", c.now()).Remaining != 398 {
		t.Error("conflicts or users do not count together")
	}
	b.ApplyCounts([]Count{{"key", "k", 1 << 40}, {"key", "k", -5}, {"unknown", "k", 1}, {"failure", "nonsense", 1}})
	if d := b.Allow("k", c.now()); d.RetryAfter > 3*time.Second {
		t.Errorf("a bucket owes more than a burst: %+v", d)
	}
	for i := range 2 * maxCounts {
		a.Allow(fmt.Sprint(i), c.now())
	}
	if n := len(a.TakeCounts()); n != maxCounts {
		t.Errorf("%d keys in a report", n)
	}
}

package access

import (
	"context"
	"encoding/base64"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func login(t *testing.T, g *Gate, plain string) (string, Identity) {
	t.Helper()
	cookie, id, err := g.Login(t.Context(), plain)
	good(t, err)
	return cookie, id
}

func TestLogin(t *testing.T) {
	g, _, c := newTestGate(t)
	plain, key := create(t, g, "root", true, 0)
	cookie, id := login(t, g, plain)
	again, err := g.Session(t.Context(), cookie)
	good(t, err)
	for _, got := range []Identity{id, again} {
		if got.User != "root" || got.KeyID != key.ID || !got.Admin || !got.ExpiresAt.Equal(c.now().Add(CookieLife)) {
			t.Errorf("got %+v", got)
		}
	}
	if strings.Contains(cookie, plain[3:]) || len(cookie) > maxHashed {
		t.Error("the cookie holds the key, or is too long")
	}
	_, _, err = g.Login(t.Context(), newKey())
	refused(t, err, ErrUnauthorized)
	_, _, err = g.Login(t.Context(), cookie)
	refused(t, err, ErrUnauthorized)
	_, err = g.Session(t.Context(), plain)
	refused(t, err, ErrUnauthorized)
}

func TestLongestNameFitsInACookie(t *testing.T) {
	g, _, _ := newTestGate(t)
	plain, _ := create(t, g, strings.Repeat("n", 64), false, 0)
	cookie, _ := login(t, g, plain)
	_, err := g.Session(t.Context(), cookie)
	good(t, err)
}

func TestCookieSurvivesRestart(t *testing.T) {
	g, s, c := newTestGate(t)
	plain, _ := create(t, g, "bob", false, 0)
	cookie, _ := login(t, g, plain)
	restarted := NewGate(s, Options{Now: c.now, CookieKey: [32]byte{1}})
	_, err := restarted.Session(t.Context(), cookie)
	good(t, err)
	for _, other := range []*Gate{
		NewGate(s, Options{Now: c.now, CookieKey: [32]byte{2}}),
		NewGate(s, Options{Now: c.now}),
	} {
		_, err = other.Session(t.Context(), cookie)
		refused(t, err, ErrUnauthorized)
	}
}

func TestCookieEnds(t *testing.T) {
	for name, end := range map[string]func(*Gate, *counting, *clock, Key) error{
		"revoked": func(g *Gate, _ *counting, _ *clock, k Key) error {
			_, err := g.Revoke(context.Background(), k.ID, false)
			return err
		},
		"revoked elsewhere": func(g *Gate, s *counting, c *clock, k Key) error {
			if _, err := s.RevokeKey(context.Background(), k.ID, c.now()); err != nil {
				return err
			}
			return g.Refresh(context.Background())
		},
		"disabled": func(g *Gate, _ *counting, _ *clock, k Key) error {
			return g.DisableUser(context.Background(), k.User, false)
		},
		"expired": func(_ *Gate, _ *counting, c *clock, _ Key) error { c.advance(CookieLife); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			g, s, c := newTestGate(t)
			plain, key := create(t, g, "bob", false, 0)
			cookie, id := login(t, g, plain)
			held, release := g.Hold(t.Context(), id)
			defer release()
			good(t, end(g, s, c, key))
			_, err := g.Session(t.Context(), cookie)
			refused(t, err, ErrUnauthorized)
			good(t, g.Refresh(t.Context()))
			closed(t, "the browser's stream", held)
		})
	}
}

func TestCookieEndsWithItsKey(t *testing.T) {
	g, _, c := newTestGate(t)
	plain, key := create(t, g, "bob", false, time.Hour)
	cookie, id := login(t, g, plain)
	if !id.ExpiresAt.Equal(*key.ExpiresAt) {
		t.Errorf("ends at %v, want %v", id.ExpiresAt, key.ExpiresAt)
	}
	c.advance(time.Hour)
	_, err := g.Session(t.Context(), cookie)
	refused(t, err, ErrUnauthorized)
}

func TestStreamEndsWithItsCookie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(NewMemStore(), Options{})
		plain, _ := create(t, g, "bob", false, 0)
		_, id := login(t, g, plain)
		ctx, release := g.Hold(t.Context(), id)
		defer release()
		<-ctx.Done()
		closed(t, "the stream", ctx)
	})
}

// Every single-character change of a cookie, and every way to respell it, is refused.
func TestCookieCannotBeChanged(t *testing.T) {
	g, _, _ := newTestGate(t)
	plain, _ := create(t, g, "bob", false, 0)
	cookie, _ := login(t, g, plain)
	for i := range cookie {
		for _, c := range []string{"A", "B", ".", "|", "\n", ""} {
			if forged := cookie[:i] + c + cookie[i+1:]; forged != cookie {
				if _, err := g.Session(t.Context(), forged); err == nil {
					t.Fatalf("character %d can be %q", i, c)
				}
			}
		}
	}
	for _, forged := range []string{"", "v1.", "v1..", cookie + "=", cookie + "\n", cookie + ".", strings.Repeat(cookie, 9)} {
		if _, err := g.Session(t.Context(), forged); err == nil {
			t.Errorf("%q passes", forged)
		}
	}
	body := base64.RawURLEncoding.EncodeToString([]byte("root|k|99999999999|0"))
	_, err := g.Session(t.Context(), cookiePrefix+body+"."+cookie[strings.LastIndex(cookie, ".")+1:])
	refused(t, err, ErrUnauthorized)
}

func TestLogout(t *testing.T) {
	g, _, _ := newTestGate(t)
	plain, _ := create(t, g, "bob", false, 0)
	mine, _ := login(t, g, plain)
	other, _ := login(t, g, plain)
	for _, cookie := range []string{mine, mine, "", "v1.x.y", strings.Repeat("x", 1<<16)} {
		g.Logout(cookie)
	}
	_, err := g.Session(t.Context(), mine)
	refused(t, err, ErrUnauthorized)
	_, err = g.Session(t.Context(), other)
	good(t, err)
	if n := len(g.ended.m); n != 1 {
		t.Errorf("%d logins are remembered, want 1", n)
	}
}

func TestEndedLoginsAreBounded(t *testing.T) {
	var e endedLogins
	now := newClock().now()
	hash := func(i int) [32]byte { return [32]byte{byte(i), byte(i >> 8)} }
	for i := range maxEnded + 10 {
		e.add(hash(i), now.Add(time.Hour+time.Duration(i)), now)
	}
	if len(e.m) != maxEnded || e.has(hash(9)) || !e.has(hash(10)) || !e.has(hash(maxEnded+9)) {
		t.Errorf("%d logins are remembered, or the wrong ones", len(e.m))
	}
	e.add(hash(maxEnded+10), now.Add(48*time.Hour), now.Add(24*time.Hour))
	if len(e.m) != 1 {
		t.Errorf("%d logins are remembered, want 1", len(e.m))
	}
}

func TestTicket(t *testing.T) {
	g, _, _ := newTestGate(t)
	plain, key := create(t, g, "root", true, 0)
	id, err := g.Authenticate(t.Context(), plain)
	good(t, err)
	ticket := g.NewTicket(id, time.Minute)
	if raw, err := base64.RawURLEncoding.DecodeString(ticket); err != nil || len(raw) != 16 {
		t.Errorf("a ticket of %d bytes (%v)", len(raw), err)
	}
	cookie, got, err := g.Redeem(t.Context(), ticket)
	good(t, err)
	if got.User != "root" || got.KeyID != key.ID || !got.Admin {
		t.Errorf("got %+v", got)
	}
	_, err = g.Session(t.Context(), cookie)
	good(t, err)
	for _, wrong := range []string{ticket, "", "x", strings.Repeat("x", 22), strings.Repeat("x", 1<<16)} {
		_, _, err = g.Redeem(t.Context(), wrong)
		refused(t, err, ErrUnauthorized)
	}
}

func TestTicketEnds(t *testing.T) {
	g, _, c := newTestGate(t)
	plain, key := create(t, g, "bob", false, 0)
	id, err := g.Authenticate(t.Context(), plain)
	good(t, err)
	late := g.NewTicket(id, time.Minute)
	c.advance(time.Minute)
	_, _, err = g.Redeem(t.Context(), late)
	refused(t, err, ErrUnauthorized)

	orphan := g.NewTicket(id, time.Minute)
	_, err = g.Revoke(t.Context(), key.ID, false)
	good(t, err)
	_, _, err = g.Redeem(t.Context(), orphan)
	refused(t, err, ErrUnauthorized)
}

func TestTicketIsRedeemedOnce(t *testing.T) {
	g, _, _ := newTestGate(t)
	plain, _ := create(t, g, "bob", false, 0)
	id, err := g.Authenticate(t.Context(), plain)
	good(t, err)
	ticket := g.NewTicket(id, time.Minute)
	var wg sync.WaitGroup
	var won atomic.Int64
	for range 20 {
		wg.Go(func() {
			if _, _, err := g.Redeem(t.Context(), ticket); err == nil {
				won.Add(1)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("redeemed %d times", won.Load())
	}
}

func TestTicketsAreBounded(t *testing.T) {
	g, _, c := newTestGate(t)
	first := g.NewTicket(Identity{User: "bob", KeyID: "bobs"}, time.Hour)
	for range 100 {
		g.NewTicket(Identity{User: "eve", KeyID: "eves"}, time.Minute)
	}
	if n := len(g.tickets.m); n != maxTicketsPerKey+1 {
		t.Errorf("%d tickets, want %d", n, maxTicketsPerKey+1)
	}
	if _, ok := g.tickets.m[hashOf(first)]; !ok {
		t.Error("eve pushed bob's ticket out")
	}
	for range 2 * maxTickets {
		g.NewTicket(Identity{User: "eve", KeyID: randomHex(6)}, time.Minute)
	}
	if n := len(g.tickets.m); n != maxTickets {
		t.Errorf("%d tickets, want %d", n, maxTickets)
	}
	c.advance(2 * time.Hour)
	g.NewTicket(Identity{User: "bob", KeyID: "bobs"}, time.Minute)
	if n := len(g.tickets.m); n != 1 {
		t.Errorf("%d tickets after the others ended, want 1", n)
	}
}

func BenchmarkSession(b *testing.B) {
	g := NewGate(NewMemStore(), Options{})
	plain, _ := create(b, g, "bob", false, 0)
	cookie, _, err := g.Login(b.Context(), plain)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Session(b.Context(), cookie); err != nil {
			b.Fatal(err)
		}
	}
}

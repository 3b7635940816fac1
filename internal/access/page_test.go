package access

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func pageKey(t *testing.T, g *Gate, cookie string) string {
	t.Helper()
	key, err := g.PageKey(cookie)
	good(t, err)
	return key
}

// A page key stands for its login, without an administrator's rights.
func TestPageKey(t *testing.T) {
	g, s, c := newTestGate(t)
	plain, key := create(t, g, "root", true, 0)
	cookie, _ := login(t, g, plain)
	page := pageKey(t, g, cookie)
	id, err := g.Authenticate(t.Context(), page)
	good(t, err)
	if id.User != "root" || id.KeyID != key.ID || id.Admin || !id.Page || !id.ExpiresAt.Equal(c.now().Add(CookieLife)) {
		t.Errorf("got %+v", id)
	}
	if page != pageKey(t, g, cookie) {
		t.Error("a login has two page keys")
	}
	other, _ := login(t, g, plain)
	if page == pageKey(t, g, other) {
		t.Error("two logins have one page key")
	}
	restarted := NewGate(s, Options{Now: c.now, CookieKey: [32]byte{1}})
	_, err = restarted.Authenticate(t.Context(), page)
	good(t, err)
}

// Nothing else can be made of a page key, nor a page key of anything else.
func TestPageKeyIsNothingElse(t *testing.T) {
	g, s, c := newTestGate(t)
	plain, _ := create(t, g, strings.Repeat("n", 64), false, 0)
	cookie, _ := login(t, g, plain)
	page := pageKey(t, g, cookie)
	if len(page) > maxHashed {
		t.Fatalf("a page key has %d characters", len(page))
	}
	_, _, err := g.Login(t.Context(), page)
	refused(t, err, ErrUnauthorized)
	_, _, err = g.Redeem(t.Context(), page)
	refused(t, err, ErrUnauthorized)
	body, _ := bodyOf(page, pagePrefix)
	_, pageMAC, _ := strings.Cut(page, ".")
	_, cookieMAC, _ := strings.Cut(strings.TrimPrefix(cookie, cookiePrefix), ".")
	for _, value := range []string{page, cookiePrefix + body + "." + pageMAC, page[len(pagePrefix):]} {
		_, err = g.Session(t.Context(), value)
		refused(t, err, ErrUnauthorized)
		_, err = g.PageKey(value)
		refused(t, err, ErrUnauthorized)
	}
	wrong := []string{pagePrefix, pagePrefix + ".", pagePrefix + body, pagePrefix + body + ".", pagePrefix + body + "." + cookieMAC, page + "A", page[:len(page)-1], page + "." + pageMAC,
		pagePrefix + "A" + body + "." + pageMAC, " " + page, page + "\n", strings.ToUpper(page), pagePrefix + strings.Repeat("A", 10_000), pagePrefix + "." + pageMAC}
	for i := range len(page) - len(pagePrefix) {
		b := []byte(page)
		b[len(pagePrefix)+i] ^= 1
		wrong = append(wrong, string(b))
	}
	for _, value := range wrong {
		if _, err := g.Authenticate(t.Context(), value); !errors.Is(err, ErrUnauthorized) {
			t.Errorf("%.60q: %v", value, err)
		}
	}
	_, err = NewGate(s, Options{Now: c.now, CookieKey: [32]byte{2}}).Authenticate(t.Context(), page)
	refused(t, err, ErrUnauthorized)
}

// A page key and its streams end with the login; another login of the same key does not.
func TestPageKeyEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		end  func(g *Gate, c *clock, k Key, cookie string)
		both bool
	}{
		"logout":   {func(g *Gate, _ *clock, _ Key, cookie string) { g.Logout(cookie) }, false},
		"revoked":  {func(g *Gate, _ *clock, k Key, _ string) { good(t, second(g.Revoke(context.Background(), k.ID, true))) }, true},
		"disabled": {func(g *Gate, _ *clock, k Key, _ string) { good(t, g.DisableUser(context.Background(), k.User, true)) }, true},
		"expired": {func(g *Gate, c *clock, _ Key, _ string) {
			c.advance(CookieLife)
			good(t, g.Refresh(context.Background()))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			g, _, c := newTestGate(t)
			plain, key := create(t, g, "bob", false, 0)
			hold := func() (cookie, page string, held []context.Context) {
				cookie, asCookie := login(t, g, plain)
				page = pageKey(t, g, cookie)
				asPage, err := g.Authenticate(t.Context(), page)
				good(t, err)
				for _, id := range []Identity{asCookie, asPage} {
					ctx, release := g.Hold(t.Context(), id)
					t.Cleanup(release)
					held = append(held, ctx)
				}
				return cookie, page, held
			}
			cookie, page, mine := hold()
			_, theirPage, theirs := hold()
			byKey, err := g.Authenticate(t.Context(), plain)
			good(t, err)
			keyed, release := g.Hold(t.Context(), byKey)
			defer release()

			before, err := g.Authenticate(t.Context(), page)
			good(t, err)
			tc.end(g, c, key, cookie)

			_, err = g.Authenticate(t.Context(), page)
			refused(t, err, ErrUnauthorized)
			late, release := g.Hold(t.Context(), before)
			defer release()
			for _, ctx := range append(mine, late) {
				if !errors.Is(context.Cause(ctx), ErrRevoked) {
					t.Errorf("a stream of the ended login: %v", context.Cause(ctx))
				}
			}
			_, err = g.Authenticate(t.Context(), theirPage)
			for _, ctx := range theirs {
				if ended := ctx.Err() != nil; ended != tc.both || ended != (err != nil) {
					t.Errorf("the other login: %v, %v", context.Cause(ctx), err)
				}
			}
			if name == "logout" && keyed.Err() != nil {
				t.Error("a logout ended a stream of the key itself")
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

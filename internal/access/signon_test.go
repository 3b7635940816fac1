package access

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
)

const issuer = "https://id.example.org"

func signOn(t *testing.T, g *Gate, subject, name string, admin *bool) (string, Identity) {
	t.Helper()
	cookie, id, err := g.SignOn(t.Context(), Vouched{Issuer: issuer, Subject: subject, Name: name, Admin: admin})
	good(t, err)
	return cookie, id
}

func TestSignOnMakesAUserOnce(t *testing.T) {
	g, s, c := newTestGate(t)
	cookie, id := signOn(t, g, "1", "Ada", nil)
	if id.User != "ada" || id.Admin || !id.ExpiresAt.Equal(c.now().Add(SignOnLife)) {
		t.Errorf("got %+v", id)
	}
	again, err := g.Session(t.Context(), cookie)
	good(t, err)
	if again.User != "ada" {
		t.Errorf("got %+v", again)
	}
	// She was renamed there; here she is who she was.
	second, renamed := signOn(t, g, "1", "lovelace", nil)
	if renamed.User != "ada" || renamed.KeyID != id.KeyID || second == cookie {
		t.Errorf("got %+v, want the same user and another login", renamed)
	}
	users, err := s.Users(t.Context())
	good(t, err)
	keys, err := g.List(t.Context(), "ada")
	good(t, err)
	if len(users) != 1 || len(keys) != 1 || !keys[0].SignOn || keys[0].Label != signOnLabel {
		t.Errorf("two logins made %+v, %+v", users, keys)
	}
	g.Logout(cookie)
	_, err = g.Session(t.Context(), cookie)
	refused(t, err, ErrUnauthorized)
	_, err = g.Session(t.Context(), second)
	good(t, err)
	c.advance(SignOnLife)
	_, err = g.Session(t.Context(), second)
	refused(t, err, ErrUnauthorized)
}

// A user who may choose a name at the provider must not become another user here.
func TestSignOnTakesNobodyOver(t *testing.T) {
	g, _, _ := newTestGate(t)
	create(t, g, "admin", true, 0)
	for i, want := range []string{"admin-2", "admin-3"} {
		if _, id := signOn(t, g, fmt.Sprint(i), "admin", nil); id.User != want || id.Admin {
			t.Errorf("got %+v, want %s without rights", id, want)
		}
	}
	_, id, err := g.SignOn(t.Context(), Vouched{Issuer: "https://other.example.org", Subject: "0", Name: "admin"})
	good(t, err)
	if id.User != "admin-4" {
		t.Errorf("the same subject of another issuer is %s", id.User)
	}
	for _, v := range []Vouched{{Issuer: issuer}, {Subject: "1"}} {
		_, _, err := g.SignOn(t.Context(), v)
		refused(t, err, ErrUnauthorized)
	}
}

func TestDisabledUsersCannotSignOn(t *testing.T) {
	g, _, _ := newTestGate(t)
	cookie, id := signOn(t, g, "1", "ada", nil)
	held, release := g.Hold(t.Context(), id)
	defer release()
	good(t, g.DisableUser(t.Context(), "ada", false))
	refused(t, context.Cause(held), ErrRevoked)
	_, err := g.Session(t.Context(), cookie)
	refused(t, err, ErrUnauthorized)
	_, _, err = g.SignOn(t.Context(), Vouched{Issuer: issuer, Subject: "1", Name: "ada"})
	refused(t, err, ErrUserDisabled)
	good(t, g.EnableUser(t.Context(), "ada"))
	signOn(t, g, "1", "ada", nil)
}

func TestProviderSaysWhoIsAdmin(t *testing.T) {
	g, _, _ := newTestGate(t)
	yes, no := true, false
	_, plain := signOn(t, g, "1", "ada", &no)
	held, release := g.Hold(t.Context(), plain)
	defer release()
	first, promoted := signOn(t, g, "1", "ada", &yes)
	if plain.Admin || !promoted.Admin {
		t.Fatalf("got %+v, then %+v", plain, promoted)
	}
	refused(t, context.Cause(held), ErrRevoked) // it had other rights
	ownKey, _ := create(t, g, "ada", true, 0)
	if _, id := signOn(t, g, "1", "ada", nil); !id.Admin {
		t.Error("a provider that says nothing took the right away")
	}
	if _, id := signOn(t, g, "1", "ada", &no); id.Admin {
		t.Error("she is still an administrator")
	}
	if _, err := g.Session(t.Context(), first); err == nil {
		t.Error("the login of the administrator is still good")
	}
	if id, err := g.Authenticate(t.Context(), ownKey); err != nil || id.Admin {
		t.Errorf("her own key: %+v, %v; want it good, without the right", id, err)
	}
}

// Revoking the key of the sign-on ends all of its logins, and the next one begins anew.
func TestSignOnAfterRevoke(t *testing.T) {
	g, _, _ := newTestGate(t)
	cookie, id := signOn(t, g, "1", "ada", nil)
	_, err := g.Revoke(t.Context(), id.KeyID, false)
	good(t, err)
	_, err = g.Session(t.Context(), cookie)
	refused(t, err, ErrUnauthorized)
	if _, next := signOn(t, g, "1", "ada", nil); next.KeyID == id.KeyID || next.User != "ada" {
		t.Errorf("got %+v", next)
	}
}

func TestConcurrentSignOns(t *testing.T) {
	g, s, _ := newTestGate(t)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			if _, id, err := g.SignOn(t.Context(), Vouched{Issuer: issuer, Subject: fmt.Sprint(i % 2), Name: "ada"}); err != nil || !strings.HasPrefix(id.User, "ada") {
				t.Errorf("%+v, %v", id, err)
			}
		})
	}
	wg.Wait()
	if users, _ := s.Users(t.Context()); len(users) != 2 {
		t.Errorf("two people are %d users", len(users))
	}
}

func TestUserName(t *testing.T) {
	for wished, want := range map[string]string{
		"ada": "ada", "Ada Lovelace": "ada-lovelace", "ada@example.org": "ada@example.org", "  ..ada": "ada", "Zoë": "zo", "李": "user", "": "user", "@": "user",
		"a//b||c": "a-b-c", strings.Repeat("n", 100): strings.Repeat("n", nameRoom), "../../etc": "etc", "a\x00b\nc": "a-b-c", "İ": "i",
	} {
		if got := userName(wished); got != want {
			t.Errorf("%q becomes %q, want %q", wished, got, want)
		}
	}
}

func FuzzUserName(f *testing.F) {
	f.Add("Ada Lovelace")
	f.Add("../.._@-")
	f.Fuzz(func(t *testing.T, wished string) {
		name := userName(wished)
		if err := CheckUserName(fmt.Sprintf("%s-%d", name, maxNamesakes)); err != nil {
			t.Errorf("%q becomes %q: %v", wished, name, err)
		}
		if again := userName(name); again != name {
			t.Errorf("%q becomes %q and then %q", wished, name, again)
		}
	})
}

// A new user who cannot be stored is an error, not a login.
func TestSignOnOnAFullDisk(t *testing.T) {
	g, s, _ := newTestGate(t)
	g.store = dying{s, "CreateKey"}
	_, _, err := g.SignOn(t.Context(), Vouched{Issuer: issuer, Subject: "1", Name: "ada"})
	refused(t, err, errDisk)
	g.store = s
	if _, id := signOn(t, g, "1", "ada", nil); id.User != "ada" {
		t.Errorf("got %+v", id)
	}
}

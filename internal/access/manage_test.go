package access

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestCreate(t *testing.T) {
	g, s, c := newTestGate(t)
	plain, key, err := g.Create(t.Context(), "bob", "laptop", false, 0)
	good(t, err)
	if !wholeKey(plain) || len(key.ID) != 12 || key.User != "bob" || key.Label != "laptop" || key.Admin ||
		key.ExpiresAt != nil || !key.CreatedAt.Equal(c.now()) || key.Hash != hashOf(plain) {
		t.Errorf("got %+v", key)
	}
	if strings.Contains(plain, key.ID) {
		t.Error("the public id is part of the key")
	}
	u, err := s.User(t.Context(), "bob")
	good(t, err)
	if u.Admin || u.Disabled {
		t.Errorf("got %+v", u)
	}
}

func TestCreateAdmin(t *testing.T) {
	g, s, _ := newTestGate(t)
	create(t, g, "root", true, 0)
	u, err := s.User(t.Context(), "root")
	good(t, err)
	if !u.Admin {
		t.Error("the user is no administrator")
	}
	create(t, g, "bob", false, 0)
	_, _, err = g.Create(t.Context(), "bob", "", true, 0)
	refused(t, err, ErrNotAdmin)
}

func TestCreateRefuses(t *testing.T) {
	g, s, _ := newTestGate(t)
	for field, call := range map[string]func() error{
		"expires": func() error { _, _, err := g.Create(t.Context(), "bob", "", false, -1); return err },
		"name":    func() error { _, _, err := g.Create(t.Context(), "bob", "a\nb", false, 0); return err },
		"user":    func() error { _, _, err := g.Create(t.Context(), "Bob", "", false, 0); return err },
	} {
		var invalid *InvalidError
		if err := call(); !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("%s: got error %v", field, err)
		}
	}
	if users, _ := s.Users(t.Context()); len(users) != 0 {
		t.Error("a refused call made a user")
	}
	create(t, g, "bob", false, 0)
	good(t, g.DisableUser(t.Context(), "bob", false))
	_, _, err := g.Create(t.Context(), "bob", "", false, 0)
	refused(t, err, ErrUserDisabled)
}

func TestUserNames(t *testing.T) {
	for _, name := range []string{"a", "0", "bob", "bob.smith@example.com", "a-b_c", strings.Repeat("a", 64)} {
		if err := CheckUserName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", "Bob", "-a", ".a", "@a", "_a", "a b", "a/b", "a|b", "a\n", "é", "..", strings.Repeat("a", 65)} {
		if err := CheckUserName(name); err == nil {
			t.Errorf("%q passes", name)
		}
	}
}

func TestLabels(t *testing.T) {
	for label, ok := range map[string]bool{
		"": true, "CI – Zürich": true, strings.Repeat("ü", 100): true,
		strings.Repeat("a", 101): false, "a\x1b[2J": false, "\xff": false, "a\tb": false,
	} {
		if err := checkLabel(label); (err == nil) != ok {
			t.Errorf("%q: %v", label, err)
		}
	}
}

func TestCreateUser(t *testing.T) {
	g, _, _ := newTestGate(t)
	u, err := g.CreateUser(t.Context(), "bob", true)
	good(t, err)
	if u.Name != "bob" || !u.Admin || u.CreatedAt.IsZero() {
		t.Errorf("got %+v", u)
	}
	_, err = g.CreateUser(t.Context(), "bob", false)
	refused(t, err, ErrExists)
	if _, err := g.CreateUser(t.Context(), "b b", false); err == nil {
		t.Error("a bad name passes")
	}
	users, err := g.Users(t.Context())
	good(t, err)
	if len(users) != 1 || users[0] != u {
		t.Errorf("got %+v", users)
	}
}

func TestRevoke(t *testing.T) {
	g, _, c := newTestGate(t)
	plain, key := create(t, g, "bob", false, 0)
	_, err := g.Authenticate(t.Context(), plain)
	good(t, err)
	first := c.now()
	for range 2 {
		got, err := g.Revoke(t.Context(), key.ID, false)
		good(t, err)
		if got.RevokedAt == nil || !got.RevokedAt.Equal(first) {
			t.Errorf("revoked at %v, want %v", got.RevokedAt, first)
		}
		c.advance(time.Hour)
	}
	_, err = g.Authenticate(t.Context(), plain)
	refused(t, err, ErrUnauthorized)
	_, err = g.Revoke(t.Context(), "nothing", false)
	refused(t, err, ErrNotFound)
	list, err := g.List(t.Context(), "bob")
	good(t, err)
	if len(list) != 1 || list[0].RevokedAt == nil {
		t.Errorf("got %+v", list)
	}
}

func TestLastAdminStays(t *testing.T) {
	g, _, c := newTestGate(t)
	_, first := create(t, g, "root", true, 0)
	create(t, g, "root", false, 0)        // the same user, but no admin key
	create(t, g, "soon", true, time.Hour) // gone in an hour
	_, off := create(t, g, "off", true, 0)
	good(t, g.DisableUser(t.Context(), "off", false))
	_, gone := create(t, g, "root", true, 0)
	_, err := g.Revoke(t.Context(), gone.ID, false)
	good(t, err)
	c.advance(time.Hour)

	_, err = g.Revoke(t.Context(), first.ID, false)
	refused(t, err, ErrLastAdmin)
	refused(t, g.DisableUser(t.Context(), "root", false), ErrLastAdmin)
	_, err = g.Revoke(t.Context(), off.ID, false) // not accepted anyway, so it may go
	good(t, err)
	_, err = g.Revoke(t.Context(), gone.ID, false)
	good(t, err)

	_, second := create(t, g, "root2", true, 0)
	_, err = g.Revoke(t.Context(), first.ID, false)
	good(t, err)
	_, err = g.Revoke(t.Context(), second.ID, false)
	refused(t, err, ErrLastAdmin)
	_, err = g.Revoke(t.Context(), second.ID, true)
	good(t, err)
	good(t, g.DisableUser(t.Context(), "root", true))
}

// The caller goes away right after the change was stored: it is felt all the same.
func TestChangeOutlivesItsCaller(t *testing.T) {
	g, s, _ := newTestGate(t)
	plain, key := create(t, g, "bob", false, 0)
	ctx, release := hold(t, g, plain)
	defer release()
	caller, leave := context.WithCancel(t.Context())
	g.store = leaving{s, leave}
	_, err := g.Revoke(caller, key.ID, true)
	good(t, err)
	closed(t, "the stream", ctx)
}

// leaving honours contexts, and its caller leaves once the key is revoked.
type leaving struct {
	Store
	leave func()
}

func (l leaving) RevokeKey(ctx context.Context, id string, at time.Time) (Key, error) {
	defer l.leave()
	return l.Store.RevokeKey(ctx, id, at)
}

func (l leaving) AccessGeneration(ctx context.Context) (int64, error) {
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	return l.Store.AccessGeneration(ctx)
}

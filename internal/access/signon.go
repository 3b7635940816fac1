package access

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// SignOnLife is how long a browser stays logged in through an identity provider. It is short because providers do
// not report removed users: their access ends at the next sign-on.
const SignOnLife = 24 * time.Hour

const (
	signOnLabel = "single sign-on"
	// nameRoom is left of a name for a number behind it.
	nameRoom = 58
	// maxNamesakes bounds the search for a free name.
	maxNamesakes = 1000
)

// Vouched is an identity confirmed by an identity provider.
type Vouched struct {
	Issuer, Subject string
	// Name is what the person would like to be called.
	Name string
	// Admin says whether the person is to be an administrator; nil leaves that to us.
	Admin *bool
	Email Email
}

// Email is an address that an identity provider names.
type Email struct {
	Address string
	// Verified says that the provider knows the address to be the person's.
	Verified bool
}

// Email is what the identity provider said of a user's address when they last signed on.
// ErrNotFound for a user who never did.
func (g *Gate) Email(ctx context.Context, user string) (Email, error) {
	return g.store.Email(ctx, user)
}

// SignOn logs a browser in for a person confirmed by an identity provider. The first time, it makes a user with a
// new name: existing users made in another way are never taken over, whatever name the provider sends.
// ErrUserDisabled when the user was disabled here.
func (g *Gate) SignOn(ctx context.Context, v Vouched) (cookie string, id Identity, err error) {
	if v.Issuer == "" || v.Subject == "" {
		return "", Identity{}, ErrUnauthorized
	}
	key, err := g.signOnKey(ctx, v)
	if err != nil {
		return "", Identity{}, err
	}
	if id, err = g.byID(ctx, key.User, key.ID); err != nil {
		return "", Identity{}, err
	}
	return g.loggedIn(ctx, id, SignOnLife)
}

// signOnKey is the key that stands for all browser logins of the person, with the rights the person has now.
func (g *Gate) signOnKey(ctx context.Context, v Vouched) (Key, error) {
	g.changing.Lock()
	defer g.changing.Unlock()
	user, err := g.linked(ctx, v)
	switch {
	case err != nil:
		return Key{}, err
	case user.Disabled:
		return Key{}, ErrUserDisabled
	}
	if err := g.store.SetEmail(ctx, v.Issuer, v.Subject, v.Email); err != nil {
		return Key{}, fmt.Errorf("store the e-mail address: %w", err)
	}
	if v.Admin != nil && *v.Admin != user.Admin {
		// The provider decides, even about the last administrator: otherwise the right could not be taken away.
		if err := g.store.SetUserAdmin(ctx, user.Name, *v.Admin); err != nil {
			return Key{}, fmt.Errorf("store who is an administrator: %w", err)
		}
		user.Admin = *v.Admin
	}
	keys, err := g.store.Keys(ctx, user.Name)
	if err != nil {
		return Key{}, fmt.Errorf("look up a key: %w", err)
	}
	for _, k := range keys {
		switch {
		case !k.SignOn || !k.Usable(g.now()):
		case k.Admin == user.Admin:
			return k, g.changed(ctx)
		default: // logins with other rights end
			if _, err := g.store.RevokeKey(ctx, k.ID, g.stamp()); err != nil {
				return Key{}, fmt.Errorf("revoke a key: %w", err)
			}
		}
	}
	key, err := g.storeKey(ctx, newKey(), Key{User: user.Name, Label: signOnLabel, Admin: user.Admin, SignOn: true}, 0)
	if err != nil {
		return Key{}, err
	}
	return key, g.changed(ctx)
}

// linked is the person's user, who is made when there is none.
func (g *Gate) linked(ctx context.Context, v Vouched) (User, error) {
	wished := userName(v.Name)
	for n := 1; n <= maxNamesakes; n++ {
		user, err := g.store.Linked(ctx, v.Issuer, v.Subject)
		if !errors.Is(err, ErrNotFound) {
			return user, err
		}
		user = User{Name: wished, Admin: v.Admin != nil && *v.Admin, CreatedAt: g.stamp()}
		if n > 1 {
			user.Name += "-" + strconv.Itoa(n)
		}
		err = g.store.CreateLinked(ctx, user, Link{Issuer: v.Issuer, Subject: v.Subject, User: user.Name, CreatedAt: user.CreatedAt})
		if !errors.Is(err, ErrExists) { // else the name is taken, or another process was faster
			return user, err
		}
	}
	return User{}, fmt.Errorf("no free user name similar to %s", wished)
}

// userName turns a name at an identity provider into a valid user name.
func userName(wished string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(wished) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', strings.ContainsRune("._@-", r):
			b.WriteRune(r)
		case !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	name := strings.TrimLeft(b.String(), "._@-")
	name = strings.TrimRight(name[:min(len(name), nameRoom)], "._@-")
	if name == "" {
		return "user"
	}
	return name
}

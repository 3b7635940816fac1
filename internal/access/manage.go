package access

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Create makes a key and, if the user does not exist yet, the user, who is an administrator if admin is true. The
// plain key is returned only here. expires is the lifetime of the key; 0 means that it does not expire.
func (g *Gate) Create(ctx context.Context, user, label string, admin bool, expires time.Duration) (plain string, key Key, err error) {
	if err := errors.Join(CheckUserName(user), checkLabel(label)); err != nil {
		return "", Key{}, err
	}
	if expires < 0 {
		return "", Key{}, &InvalidError{Field: "expires", Msg: "the lifetime of a key must not be negative; 0 means it never expires"}
	}
	g.changing.Lock()
	defer g.changing.Unlock()
	owner, err := g.userOrNew(ctx, user, admin)
	switch {
	case err != nil:
		return "", Key{}, err
	case owner.Disabled:
		return "", Key{}, ErrUserDisabled
	case admin && !owner.Admin:
		return "", Key{}, ErrNotAdmin
	}
	if err := g.roomForKey(ctx, user); err != nil {
		return "", Key{}, err
	}
	plain = newKey()
	key, err = g.storeKey(ctx, plain, Key{User: user, Label: label, Admin: admin}, expires)
	if err != nil {
		return "", Key{}, err
	}
	return plain, key, g.changed(ctx)
}

// roomForKey refuses a key to a user who has as many as a user may have.
func (g *Gate) roomForKey(ctx context.Context, user string) error {
	keys, err := g.store.Keys(ctx, user)
	if err != nil {
		return err
	}
	usable, now := 0, g.now()
	for _, k := range keys {
		if k.Usable(now) {
			usable++
		}
	}
	if usable >= g.maxKeys {
		return &TooManyKeysError{Most: g.maxKeys}
	}
	return nil
}

func (g *Gate) userOrNew(ctx context.Context, name string, admin bool) (User, error) {
	u, err := g.store.User(ctx, name)
	if !errors.Is(err, ErrNotFound) {
		return u, err
	}
	u = User{Name: name, Admin: admin, CreatedAt: g.stamp()}
	err = g.store.CreateUser(ctx, u)
	if errors.Is(err, ErrExists) { // another process was faster
		return g.store.User(ctx, name)
	}
	return u, err
}

// storeKey fills in what a new key needs and stores it.
func (g *Gate) storeKey(ctx context.Context, plain string, key Key, expires time.Duration) (Key, error) {
	key.CreatedAt = g.stamp()
	key.Hash = hashOf(plain)
	if expires > 0 {
		at := key.CreatedAt.Add(expires)
		key.ExpiresAt = &at
	}
	var err error
	for range 3 { // ids are short: one in 2^48 may be taken
		key.ID = randomHex(6)
		if err = g.store.CreateKey(ctx, key); !errors.Is(err, ErrExists) {
			break
		}
	}
	if err != nil {
		return Key{}, fmt.Errorf("store the key: %w", err)
	}
	return key, nil
}

// Revoke ends a key. Its streams are closed when Revoke returns. Without force it refuses, with ErrLastAdmin, to end
// the last key with which an administrator can come in. Revoking again changes nothing.
func (g *Gate) Revoke(ctx context.Context, id string, force bool) (Key, error) {
	g.changing.Lock()
	defer g.changing.Unlock()
	if !force {
		if err := g.keepAdmin(ctx, func(k Key) bool { return k.ID == id }); err != nil {
			return Key{}, err
		}
	}
	key, err := g.store.RevokeKey(ctx, id, g.stamp())
	if err != nil {
		return Key{}, err
	}
	return key, g.changed(ctx)
}

// List returns the keys of a user, or all keys if user is "": newest first, including revoked and expired ones.
func (g *Gate) List(ctx context.Context, user string) ([]Key, error) { return g.store.Keys(ctx, user) }

// Users returns all users by name.
func (g *Gate) Users(ctx context.Context) ([]User, error) { return g.store.Users(ctx) }

// User is ErrNotFound when there is none of that name.
func (g *Gate) User(ctx context.Context, name string) (User, error) { return g.store.User(ctx, name) }

// CreateUser makes a user without a key. ErrExists when the name is taken.
func (g *Gate) CreateUser(ctx context.Context, name string, admin bool) (User, error) {
	if err := CheckUserName(name); err != nil {
		return User{}, err
	}
	g.changing.Lock()
	defer g.changing.Unlock()
	u := User{Name: name, Admin: admin, CreatedAt: g.stamp()}
	if err := g.store.CreateUser(ctx, u); err != nil {
		return User{}, err
	}
	return u, g.changed(ctx)
}

// Disabled reports whether a user is disabled. An unknown user, such as the owner of an imported conversation, is not.
// Each turn asks, so the answer no is remembered like a good key: until the next Refresh after a change.
func (g *Gate) Disabled(ctx context.Context, name string) (bool, error) {
	hash, known := hashOf("user:"+name), g.cache.Load()
	if _, ok := known.get(hash); ok {
		return false, nil
	}
	u, err := g.store.User(ctx, name)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err == nil && !u.Disabled {
		known.put(hash, Identity{}) // gives access to nothing
	}
	return u.Disabled, err
}

// DisabledUsers lists the names of the users that are disabled.
func (g *Gate) DisabledUsers(ctx context.Context) ([]string, error) {
	users, err := g.store.Users(ctx)
	var out []string
	for _, u := range users {
		if u.Disabled {
			out = append(out, u.Name)
		}
	}
	return out, err
}

// DisableUser disables a user until EnableUser. When it returns, the user's streams are closed and OnChange was called. Like Revoke, it keeps
// one usable admin key unless force is set.
func (g *Gate) DisableUser(ctx context.Context, name string, force bool) error {
	g.changing.Lock()
	defer g.changing.Unlock()
	if !force {
		if err := g.keepAdmin(ctx, func(k Key) bool { return k.User == name }); err != nil {
			return err
		}
	}
	return g.setDisabled(ctx, name, true)
}

// EnableUser lets a disabled user in again, with the same keys.
func (g *Gate) EnableUser(ctx context.Context, name string) error {
	g.changing.Lock()
	defer g.changing.Unlock()
	return g.setDisabled(ctx, name, false)
}

func (g *Gate) setDisabled(ctx context.Context, name string, disabled bool) error {
	if err := g.store.SetUserDisabled(ctx, name, disabled); err != nil {
		return err
	}
	return g.changed(ctx)
}

// keepAdmin refuses a change that removes the last usable admin key. Two processes that do this at the same
// moment can still remove it; `deckhand key create --admin` on the data directory restores access.
func (g *Gate) keepAdmin(ctx context.Context, goes func(Key) bool) error {
	good, err := g.goodKeys(ctx)
	if err != nil {
		return err
	}
	going, staying := 0, 0
	for _, k := range good {
		switch {
		case !k.Admin:
		case goes(k):
			going++
		default:
			staying++
		}
	}
	if going > 0 && staying == 0 {
		return ErrLastAdmin
	}
	return nil
}

// changed applies a stored change before the caller gets its answer, even if the caller's context has ended.
func (g *Gate) changed(ctx context.Context) error {
	if err := g.Refresh(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("the change is stored but not in effect yet: %w", err)
	}
	return nil
}

// stamp is the time as every store can keep it.
func (g *Gate) stamp() time.Time { return g.now().UTC().Truncate(time.Millisecond) }

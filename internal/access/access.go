// Package access authenticates requests: users, their keys, browser logins, open streams and rate limits.
//
// The Gate is the service. It caches keys and users in memory and drops the cache when the store's
// generation changes, so a key that any process revoked stops working at the next Refresh.
package access

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Refusals. Everything a stranger can cause is ErrUnauthorized, so that an answer never tells a wrong key from a revoked one.
var (
	ErrUnauthorized = errors.New("unauthorized")
	ErrNotFound     = errors.New("not found")
	ErrExists       = errors.New("already exists")
	// ErrRevoked is the cause of a held context whose key or browser login stopped being good.
	ErrRevoked = errors.New("the key was revoked or has expired, or its user was disabled or logged out")
	// ErrLastAdmin refuses a change after which no administrator could come in any more.
	ErrLastAdmin = errors.New("this is the last usable admin key; without it, no one could administer the server. Create another admin key first, or use deckhand key revoke --force")
	// ErrUserDisabled refuses a new key for a user who could not use it.
	ErrUserDisabled = errors.New("the user is disabled: enable the user before creating a key")
	// ErrNotAdmin refuses an admin key for a user who is no administrator.
	ErrNotAdmin = errors.New("the user is not an administrator and cannot have an admin key: create another user for it")
)

// defaultMaxKeys is how many usable keys a user may have, where nothing else is said.
const defaultMaxKeys = 1000

// TooManyKeysError refuses one more key for a user.
type TooManyKeysError struct{ Most int }

func (e *TooManyKeysError) Error() string {
	return fmt.Sprintf("the user has reached the limit of %d active keys: revoke one first", e.Most)
}

// InvalidError says which argument was refused and what would be right. It never repeats the value.
type InvalidError struct {
	Field string
	Msg   string
}

func (e *InvalidError) Error() string { return e.Field + ": " + e.Msg }

// User owns settings, conversations and keys.
type User struct {
	Name      string
	Admin     bool
	Disabled  bool
	CreatedAt time.Time
}

// Key is what is stored about a key: never the key itself.
type Key struct {
	// ID is public: 12 hex digits that name the key in lists, logs and when revoking.
	ID    string
	User  string
	Label string
	// Admin is the key's own right. It counts only while its user is an administrator too.
	Admin bool
	// SignOn marks the key behind browser logins through an identity provider. The key itself is never shown to the
	// user; it exists so that these logins are listed and revoked like all others.
	SignOn    bool
	CreatedAt time.Time
	ExpiresAt *time.Time // nil: never
	RevokedAt *time.Time // nil: not revoked
	Hash      [32]byte   `json:"-"`
}

// Usable says whether the key is accepted at this time, as far as the key alone can tell.
func (k Key) Usable(now time.Time) bool {
	return k.RevokedAt == nil && !past(k.ExpiresAt, now)
}

// Identity is who came in, and with which key.
type Identity struct {
	User  string
	KeyID string
	Admin bool
	// ExpiresAt is when the key, or the browser login made with it, ends. nil: never.
	ExpiresAt *time.Time
	// Login names the browser login that it came by; zero when it came by a key.
	Login [32]byte
	// Page is true when it came by a page key, which is for the user's conversations alone.
	Page bool
}

// UserStore keeps users.
type UserStore interface {
	// CreateUser stores a new user. ErrExists when the name is taken.
	CreateUser(ctx context.Context, u User) error
	// User is ErrNotFound when there is none of that name.
	User(ctx context.Context, name string) (User, error)
	// Users lists all, by name.
	Users(ctx context.Context) ([]User, error)
	// SetUserDisabled is idempotent. ErrNotFound when there is no such user.
	SetUserDisabled(ctx context.Context, name string, disabled bool) error
	// SetUserAdmin is idempotent. ErrNotFound when there is no such user.
	SetUserAdmin(ctx context.Context, name string, admin bool) error
}

// Link ties a person at an identity provider to a user. The subject alone says who it is: names and addresses are
// given to others in time.
type Link struct {
	Issuer, Subject string
	User            string
	CreatedAt       time.Time
	Email           Email
}

// LinkStore keeps links. A person has one user, and of a link only the address is ever changed.
type LinkStore interface {
	// CreateLinked stores a new user and the link to it, both or neither. ErrExists when the name is taken, or the
	// person has a user already.
	CreateLinked(ctx context.Context, u User, l Link) error
	// Linked is the person's user. ErrNotFound when there is none.
	Linked(ctx context.Context, issuer, subject string) (User, error)
	// SetEmail stores what the provider says of the person's address. ErrNotFound without a link.
	SetEmail(ctx context.Context, issuer, subject string, e Email) error
	// Email is the address of a user's link. ErrNotFound for a user without one.
	Email(ctx context.Context, user string) (Email, error)
}

// KeyStore keeps keys. Keys are never deleted, only revoked, so that a list shows what once was valid.
type KeyStore interface {
	// CreateKey stores a new key. ErrNotFound when its user does not exist, ErrExists when its id or hash is taken.
	CreateKey(ctx context.Context, k Key) error
	// KeyByHash finds a key, revoked and expired ones too. ErrNotFound when there is none.
	KeyByHash(ctx context.Context, hash [32]byte) (Key, error)
	// Keys lists the keys of a user, or of all users when user is "": newest first, keys of the same time by id.
	Keys(ctx context.Context, user string) ([]Key, error)
	// RevokeKey returns the key as it is afterwards. Revoking twice keeps the first time. ErrNotFound when there is none.
	RevokeKey(ctx context.Context, id string, at time.Time) (Key, error)
}

// Store keeps users and keys. Times survive to the millisecond at least. Every method may be called concurrently, also
// from several processes on the same data.
type Store interface {
	UserStore
	KeyStore
	LinkStore
	// AccessGeneration grows with every change to users or keys, in the same transaction as the change.
	AccessGeneration(ctx context.Context) (int64, error)
}

// past says whether a moment, if there is one, has come.
func past(at *time.Time, now time.Time) bool { return at != nil && !now.Before(*at) }

// earlier is the first of two moments, where nil is never.
func earlier(a, b *time.Time) *time.Time {
	if a == nil || (b != nil && b.Before(*a)) {
		return b
	}
	return a
}

package httpapi

import (
	"context"
	"net/http"
	"time"

	"deckhand/api"
	"deckhand/internal/access"
)

func listKeys(d *Door, ctx context.Context, c *call, _ none, _ none) ([]api.Key, error) {
	whose := c.who.User
	if c.who.Admin {
		whose = ""
	}
	keys, err := d.Gate.List(ctx, whose)
	out := []api.Key{}
	for _, k := range keys {
		out = append(out, c.keyView(k))
	}
	return out, err
}

func createKey(d *Door, ctx context.Context, c *call, _ none, b api.CreateKey) (api.NewKey, error) {
	user, admin := c.who.User, b.Admin.Value
	if v, ok := b.User.Get(); ok {
		user = v
	}
	if !c.who.Admin && (user != c.who.User || admin) {
		return api.NewKey{}, fail(http.StatusForbidden, api.CodeForbidden, "Only an admin key can create keys for other users, or admin keys.")
	}
	var life time.Duration
	if v, ok := b.Expires.Get(); ok {
		var err error
		if life, err = time.ParseDuration(v); err != nil || life <= 0 {
			return api.NewKey{}, api.Invalid("value_error", "Must be a duration such as 720h or 30m.", "expires")
		}
	}
	plain, k, err := d.Gate.Create(ctx, user, b.Name.Value, admin, life)
	return api.NewKey{Key: c.keyView(k), Secret: plain}, err
}

type keyPath struct {
	ID string `path:"key_id" maxLength:"64"`
}

func revokeKey(d *Door, ctx context.Context, c *call, p keyPath, _ none) (api.Key, error) {
	if !c.who.Admin {
		own, err := d.Gate.List(ctx, c.who.User)
		if err != nil {
			return api.Key{}, err
		}
		found := false
		for _, k := range own {
			found = found || k.ID == p.ID
		}
		if !found {
			return api.Key{}, access.ErrNotFound
		}
	}
	k, err := d.Gate.Revoke(ctx, p.ID, false)
	return c.keyView(k), err
}

func me(_ *Door, _ context.Context, c *call, _ none, _ none) (api.Me, error) {
	return api.Me{User: c.who.User, Admin: c.who.Admin}, nil
}

// keyPrefix is what keys begin with.
const keyPrefix = "dh_"

func (c *call) keyView(k access.Key) api.Key {
	return api.Key{ID: k.ID, User: k.User, Name: k.Label, Admin: k.Admin, CreatedAt: k.CreatedAt, ExpiresAt: k.ExpiresAt, RevokedAt: k.RevokedAt, Prefix: keyPrefix, Current: k.ID == c.who.KeyID}
}

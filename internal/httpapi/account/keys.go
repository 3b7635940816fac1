package account

import (
	"context"
	"net/http"
	"time"

	"deckhand/api"
	"deckhand/internal/access"
	"deckhand/internal/httpapi/rest"
)

func (d *Handlers) listKeys(ctx context.Context, c *rest.Call, _ rest.None, _ rest.None) ([]api.Key, error) {
	whose := c.Who.User
	if c.Who.Admin {
		whose = ""
	}
	keys, err := d.Gate.List(ctx, whose)
	out := []api.Key{}
	for _, k := range keys {
		out = append(out, keyView(c, k))
	}
	return out, err
}

func (d *Handlers) createKey(ctx context.Context, c *rest.Call, _ rest.None, b api.CreateKey) (api.NewKey, error) {
	user, admin := c.Who.User, b.Admin.Value
	if v, ok := b.User.Get(); ok {
		user = v
	}
	if !c.Who.Admin && (user != c.Who.User || admin) {
		return api.NewKey{}, rest.Fail(http.StatusForbidden, api.CodeForbidden, "Only an admin key can create keys for other users, or admin keys.")
	}
	var life time.Duration
	if v, ok := b.Expires.Get(); ok {
		var err error
		if life, err = time.ParseDuration(v); err != nil || life <= 0 {
			return api.NewKey{}, api.Invalid("value_error", "Must be a duration such as 720h or 30m.", "expires")
		}
	}
	plain, k, err := d.Gate.Create(ctx, user, b.Name.Value, admin, life)
	return api.NewKey{Key: keyView(c, k), Secret: plain}, err
}

type keyPath struct {
	ID string `path:"key_id" maxLength:"64"`
}

func (d *Handlers) revokeKey(ctx context.Context, c *rest.Call, p keyPath, _ rest.None) (api.Key, error) {
	if !c.Who.Admin {
		own, err := d.Gate.List(ctx, c.Who.User)
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
	return keyView(c, k), err
}

func (d *Handlers) me(_ context.Context, c *rest.Call, _ rest.None, _ rest.None) (api.Me, error) {
	return api.Me{User: c.Who.User, Admin: c.Who.Admin, DeleteAfter: int64(d.DeleteAfter.Seconds())}, nil
}

// keyPrefix is what keys begin with.
const keyPrefix = "dh_"

func keyView(c *rest.Call, k access.Key) api.Key {
	return api.Key{ID: k.ID, User: k.User, Name: k.Label, Admin: k.Admin, CreatedAt: k.CreatedAt, ExpiresAt: k.ExpiresAt, RevokedAt: k.RevokedAt, Prefix: keyPrefix, Current: k.ID == c.Who.KeyID}
}

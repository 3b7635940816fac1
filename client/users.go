package client

import (
	"context"
	"net/http"
	"net/url"

	"deckhand/api"
)

// Users lists all users by name. It needs an admin key, as do CreateUser and PatchUser.
func (c *Client) Users(ctx context.Context) ([]api.User, error) {
	return call[[]api.User](ctx, c, http.MethodGet, "/api/users", nil)
}

// CreateUser creates a user without a key.
func (c *Client) CreateUser(ctx context.Context, in api.CreateUser) (api.User, error) {
	return call[api.User](ctx, c, http.MethodPost, "/api/users", in)
}

// PatchUser disables or enables a user.
func (c *Client) PatchUser(ctx context.Context, name string, in api.PatchUser) (api.User, error) {
	return call[api.User](ctx, c, http.MethodPatch, "/api/users/"+url.PathEscape(name), in)
}

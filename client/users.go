package client

import (
	"context"
	"net/http"
	"net/url"

	"deckhand/api"
)

// Users is everybody, by name. It needs an admin key, as the other two do.
func (c *Client) Users(ctx context.Context) ([]api.User, error) {
	return call[[]api.User](ctx, c, http.MethodGet, "/api/users", nil)
}

// CreateUser makes a user, without a key.
func (c *Client) CreateUser(ctx context.Context, in api.CreateUser) (api.User, error) {
	return call[api.User](ctx, c, http.MethodPost, "/api/users", in)
}

// PatchUser locks a user out, or lets them in again.
func (c *Client) PatchUser(ctx context.Context, name string, in api.PatchUser) (api.User, error) {
	return call[api.User](ctx, c, http.MethodPatch, "/api/users/"+url.PathEscape(name), in)
}

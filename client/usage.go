package client

import (
	"context"
	"net/http"
	"net/url"

	"deckhand/api"
)

// Usage returns the usage of a user, or your own for "". Other users need an admin key.
func (c *Client) Usage(ctx context.Context, user string) (api.Usage, error) {
	path := "/api/usage"
	if user != "" {
		path += "?" + url.Values{"user": {user}}.Encode()
	}
	return call[api.Usage](ctx, c, http.MethodGet, path, nil)
}

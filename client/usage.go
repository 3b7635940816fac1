package client

import (
	"context"
	"net/http"
	"net/url"

	"deckhand/api"
)

// Usage is what a user spent; "" is oneself, and only admin keys may ask about others.
func (c *Client) Usage(ctx context.Context, user string) (api.Usage, error) {
	path := "/api/usage"
	if user != "" {
		path += "?" + url.Values{"user": {user}}.Encode()
	}
	return call[api.Usage](ctx, c, http.MethodGet, path, nil)
}

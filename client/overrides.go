package client

import (
	"context"
	"net/http"

	"deckhand/api"
)

// Overrides are what was chosen for one conversation in place of the settings.
func (c *Client) Overrides(ctx context.Context, id string) (api.Overrides, error) {
	return call[api.Overrides](ctx, c, http.MethodGet, item(id)+"/overrides", nil)
}

// SetOverrides chooses model and budget for one conversation; what is left out
// stays as it is, and null is as in the settings.
func (c *Client) SetOverrides(ctx context.Context, id string, in api.SetOverrides) (api.Overrides, error) {
	return call[api.Overrides](ctx, c, http.MethodPut, item(id)+"/overrides", in)
}

// Fork makes a copy of a conversation and of its workspace. retryKey may be empty;
// with one, asking again makes no second copy.
func (c *Client) Fork(ctx context.Context, id, retryKey string, in api.ForkConversation) (api.ConversationResponse, error) {
	return send[api.ConversationResponse](ctx, c, http.MethodPost, item(id)+"/fork", in, retryKey)
}

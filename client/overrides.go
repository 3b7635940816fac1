package client

import (
	"context"
	"net/http"

	"deckhand/api"
)

// Overrides returns the settings that are overridden for one conversation.
func (c *Client) Overrides(ctx context.Context, id string) (api.Overrides, error) {
	return call[api.Overrides](ctx, c, http.MethodGet, item(id)+"/overrides", nil)
}

// SetOverrides overrides the model and budget of one conversation. Omitted fields keep
// their values, and null uses the settings.
func (c *Client) SetOverrides(ctx context.Context, id string, in api.SetOverrides) (api.Overrides, error) {
	return call[api.Overrides](ctx, c, http.MethodPut, item(id)+"/overrides", in)
}

// Fork copies a conversation and its workspace. With a retryKey, which is optional,
// sending it again creates no second copy.
func (c *Client) Fork(ctx context.Context, id, retryKey string, in api.ForkConversation) (api.ConversationResponse, error) {
	return send[api.ConversationResponse](ctx, c, http.MethodPost, item(id)+"/fork", in, retryKey)
}

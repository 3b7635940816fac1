package client

import (
	"context"
	"net/http"

	"deckhand/api"
)

// Microagents lists the microagents of a conversation.
func (c *Client) Microagents(ctx context.Context, id string) ([]api.Microagent, error) {
	out, err := call[api.Microagents](ctx, c, http.MethodGet, item(id)+"/microagents", nil)
	return out.Microagents, err
}

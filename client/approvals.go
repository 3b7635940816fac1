package client

import (
	"context"
	"net/http"

	"deckhand/api"
)

// Approvals returns the tool calls that need an approval, and the patterns that are
// always allowed.
func (c *Client) Approvals(ctx context.Context, id string) (api.Approvals, error) {
	return call[api.Approvals](ctx, c, http.MethodGet, item(id)+"/approvals", nil)
}

// Decide approves or rejects the pending tool call.
func (c *Client) Decide(ctx context.Context, id string, d api.Decision) error {
	_, err := call[api.Accepted](ctx, c, http.MethodPost, item(id)+"/approvals", d)
	return err
}

// Queue returns the messages that the agent has not read yet.
func (c *Client) Queue(ctx context.Context, id string) (api.MessageQueue, error) {
	return call[api.MessageQueue](ctx, c, http.MethodGet, item(id)+"/queue", nil)
}

package client

import (
	"context"
	"fmt"
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

// ChangeQueued edits, moves or sends a queued message, and returns the queue.
func (c *Client) ChangeQueued(ctx context.Context, id string, event int64, b api.ChangeQueuedMessage) (api.MessageQueue, error) {
	return call[api.MessageQueue](ctx, c, http.MethodPatch, fmt.Sprintf("%s/queue/%d", item(id), event), b)
}

// DeleteQueued withdraws a queued message, and returns the queue.
func (c *Client) DeleteQueued(ctx context.Context, id string, event int64) (api.MessageQueue, error) {
	return call[api.MessageQueue](ctx, c, http.MethodDelete, fmt.Sprintf("%s/queue/%d", item(id), event), nil)
}

// Queue returns the messages that the agent has not read yet.
func (c *Client) Queue(ctx context.Context, id string) (api.MessageQueue, error) {
	return call[api.MessageQueue](ctx, c, http.MethodGet, item(id)+"/queue", nil)
}

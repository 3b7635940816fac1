package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"deckhand/api"
)

const webhooksPath = "/api/webhooks"

func webhookPath(id string) string { return webhooksPath + "/" + url.PathEscape(id) }

// Webhooks lists your webhooks.
func (c *Client) Webhooks(ctx context.Context) ([]api.Webhook, error) {
	return call[[]api.Webhook](ctx, c, http.MethodGet, webhooksPath, nil)
}

// CreateWebhook creates a webhook. The response contains the secret, which is shown only
// once.
func (c *Client) CreateWebhook(ctx context.Context, in api.CreateWebhook) (api.NewWebhook, error) {
	return call[api.NewWebhook](ctx, c, http.MethodPost, webhooksPath, in)
}

// Webhook returns one webhook.
func (c *Client) Webhook(ctx context.Context, id string) (api.Webhook, error) {
	return call[api.Webhook](ctx, c, http.MethodGet, webhookPath(id), nil)
}

// PatchWebhook changes a webhook; fields left out stay as they are.
func (c *Client) PatchWebhook(ctx context.Context, id string, in api.PatchWebhook) (api.PatchedWebhook, error) {
	return call[api.PatchedWebhook](ctx, c, http.MethodPatch, webhookPath(id), in)
}

// DeleteWebhook removes a webhook with the record of its deliveries.
func (c *Client) DeleteWebhook(ctx context.Context, id string) error {
	_, err := call[bool](ctx, c, http.MethodDelete, webhookPath(id), nil)
	return err
}

// TestWebhook queues a delivery that says nothing.
func (c *Client) TestWebhook(ctx context.Context, id string) (api.WebhookDelivery, error) {
	return call[api.WebhookDelivery](ctx, c, http.MethodPost, webhookPath(id)+"/test", nil)
}

// WebhookDeliveries returns deliveries, newest first; before is Next of the page before, or 0.
func (c *Client) WebhookDeliveries(ctx context.Context, id string, before int64, limit int) (api.WebhookDeliveryPage, error) {
	query := url.Values{"before": {strconv.FormatInt(before, 10)}, "limit": {strconv.Itoa(limit)}}
	return call[api.WebhookDeliveryPage](ctx, c, http.MethodGet, webhookPath(id)+"/deliveries?"+query.Encode(), nil)
}

// RetryWebhookDelivery has a delivery made again, whatever became of it.
func (c *Client) RetryWebhookDelivery(ctx context.Context, id, delivery string) (api.WebhookDelivery, error) {
	return call[api.WebhookDelivery](ctx, c, http.MethodPost, webhookPath(id)+"/deliveries/"+url.PathEscape(delivery)+"/retry", nil)
}

package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"deckhand/api"
)

const integrationsPath = "/api/integrations"

func integrationPath(id string) string { return integrationsPath + "/" + url.PathEscape(id) }

// Integrations lists your integrations.
func (c *Client) Integrations(ctx context.Context) ([]api.Integration, error) {
	return call[[]api.Integration](ctx, c, http.MethodGet, integrationsPath, nil)
}

// CreateIntegration creates an integration. The response contains the secret, which is
// shown only once.
func (c *Client) CreateIntegration(ctx context.Context, in api.CreateIntegration) (api.NewIntegration, error) {
	return call[api.NewIntegration](ctx, c, http.MethodPost, integrationsPath, in)
}

// Integration returns one integration.
func (c *Client) Integration(ctx context.Context, id string) (api.Integration, error) {
	return call[api.Integration](ctx, c, http.MethodGet, integrationPath(id), nil)
}

// PatchIntegration changes an integration. Omitted fields keep their values.
func (c *Client) PatchIntegration(ctx context.Context, id string, in api.PatchIntegration) (api.PatchedIntegration, error) {
	return call[api.PatchedIntegration](ctx, c, http.MethodPatch, integrationPath(id), in)
}

// DeleteIntegration deletes an integration and its deliveries.
func (c *Client) DeleteIntegration(ctx context.Context, id string) error {
	_, err := call[bool](ctx, c, http.MethodDelete, integrationPath(id), nil)
	return err
}

// IntegrationDeliveries returns a page of deliveries, newest first. before is Next of the previous
// page, or 0.
func (c *Client) IntegrationDeliveries(ctx context.Context, id string, before int64, limit int) (api.IntegrationDeliveryPage, error) {
	query := url.Values{"before": {strconv.FormatInt(before, 10)}, "limit": {strconv.Itoa(limit)}}
	return call[api.IntegrationDeliveryPage](ctx, c, http.MethodGet, integrationPath(id)+"/deliveries?"+query.Encode(), nil)
}

package client

import (
	"context"
	"net/http"

	"deckhand/api"
)

// TestModel tests a model with a few small calls, which are charged by its provider.
// Omitted fields are taken from the stored settings.
func (c *Client) TestModel(ctx context.Context, in api.TestModel) (api.ModelReport, error) {
	return call[api.ModelReport](ctx, c, http.MethodPost, "/api/settings/test-model", in)
}

package client

import (
	"context"
	"net/http"

	"deckhand/api"
)

// TestModel tries a model with a few small calls, which cost what the model
// costs. What is left out is taken from the stored settings.
func (c *Client) TestModel(ctx context.Context, in api.TestModel) (api.ModelReport, error) {
	return call[api.ModelReport](ctx, c, http.MethodPost, "/api/settings/test-model", in)
}

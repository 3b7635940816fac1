package client

import (
	"context"
	"net/http"
	"net/url"

	"deckhand/api"
)

// ModelProviders lists the model providers, without their keys.
func (c *Client) ModelProviders(ctx context.Context) (api.ModelProviders, error) {
	return call[api.ModelProviders](ctx, c, http.MethodGet, "/api/model-providers", nil)
}

// SetModelProvider stores the key and base URL of a model provider. Omitted fields keep
// their values.
func (c *Client) SetModelProvider(ctx context.Context, id string, in api.SetModelProvider) (api.ModelProviderStored, error) {
	return call[api.ModelProviderStored](ctx, c, http.MethodPut, "/api/model-providers/"+url.PathEscape(id), in)
}

// RemoveModelProvider removes the key and base URL of a model provider.
func (c *Client) RemoveModelProvider(ctx context.Context, id string) (api.ModelProviderStored, error) {
	return call[api.ModelProviderStored](ctx, c, http.MethodDelete, "/api/model-providers/"+url.PathEscape(id), nil)
}

// SetModelRoles sets the small model, the fallback model and the favourites. Omitted
// fields keep their values.
func (c *Client) SetModelRoles(ctx context.Context, in api.SetModelRoles) (api.ModelProviderStored, error) {
	return call[api.ModelProviderStored](ctx, c, http.MethodPut, "/api/model-roles", in)
}

// SearchModels finds models. provider "" searches those of all providers, and live also
// asks the user's own servers.
func (c *Client) SearchModels(ctx context.Context, query, provider string, live bool) (api.ModelList, error) {
	q := url.Values{}
	if query != "" {
		q.Set("q", query)
	}
	if provider != "" {
		q.Set("provider", provider)
	}
	if live {
		q.Set("live", "true")
	}
	return call[api.ModelList](ctx, c, http.MethodGet, "/api/models?"+q.Encode(), nil)
}

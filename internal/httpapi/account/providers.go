package account

import (
	"context"
	"net/http"

	"deckhand/api"
	"deckhand/internal/httpapi/rest"
)

// Providers knows the providers and the models of users. Notes are sentences about side effects; a bad field is a
// *api.ValidationError, and stores nothing.
type Providers interface {
	// Providers lists the providers as the user has them, without keys.
	Providers(ctx context.Context, user string) (api.ModelProviders, error)
	// SetProvider stores the user's entry of a provider; nil removes it.
	SetProvider(ctx context.Context, user, id string, in *api.SetModelProvider) (notes []string, err error)
	SetRoles(ctx context.Context, user string, in api.SetModelRoles) (notes []string, err error)
	// List finds models; it may ask the user's own servers.
	List(ctx context.Context, user string, q api.ModelQuery) (api.ModelList, error)
}

const (
	aboutProviders = "Each provider has its own key and base URL, which are used for its models. llm_model, llm_api_key and llm_base_url in the settings are the default: " +
		"where they are set, they take precedence over the entry for the model in the settings."
	aboutModels = "Words may be in any order, incomplete and misspelled: sonnet 4.5 finds claude-sonnet-4-5. Favourites come first, then models of providers that you can use, " +
		"a vendor's own models before those of resellers."
	aboutRoles = "The small model writes titles and summaries. The fallback model continues a turn when the model of the conversation is refused (401, 402, 429), fails (5xx), or cannot be reached after all retries."
)

// inProvider is the provider of a route.
type inProvider struct {
	ID string `path:"provider_id" maxLength:"63" doc:"ID of the provider, such as anthropic, or a name of your own for another server."`
}

func (d *Handlers) providerRoutes() []rest.Route {
	return []rest.Route{
		rest.Op(rest.Route{Method: "GET", Path: "/api/model-providers", ID: "listModelProviders", Tag: rest.TagSettings, Summary: "List model providers, without their keys", About: aboutProviders}, d.listProviders),
		rest.Op(rest.Route{Method: "PUT", Path: "/api/model-providers/{provider_id}", ID: "setModelProvider", Tag: rest.TagSettings, Summary: "Store the key and base URL of a model provider", About: aboutProviders}, d.setProvider),
		rest.Op(rest.Route{Method: "DELETE", Path: "/api/model-providers/{provider_id}", ID: "removeModelProvider", Tag: rest.TagSettings, Summary: "Delete the key and base URL of a model provider"}, d.removeProvider),
		rest.Op(rest.Route{Method: "PUT", Path: "/api/model-roles", ID: "setModelRoles", Tag: rest.TagSettings, Summary: "Set the small model, the fallback model and the favourites", About: aboutRoles}, d.setRoles),
		rest.Op(rest.Route{Method: "GET", Path: "/api/models", ID: "searchModels", Stream: true, Tag: rest.TagSettings, Summary: "Search models with their prices and capabilities", About: aboutModels}, d.searchModels),
	}
}

// providers is a refusal where the server has no models, as a test rig may.
func (d *Handlers) providers() (Providers, error) {
	if d.Providers == nil {
		return nil, rest.Fail(http.StatusServiceUnavailable, api.CodeUnavailable, "Model providers are not available on this server.")
	}
	return d.Providers, nil
}

func (d *Handlers) listProviders(ctx context.Context, c *rest.Call, _ rest.None, _ rest.None) (api.ModelProviders, error) {
	p, err := d.providers()
	if err != nil {
		return api.ModelProviders{}, err
	}
	return p.Providers(ctx, c.Who.User)
}

func (d *Handlers) setProvider(ctx context.Context, c *rest.Call, in inProvider, b api.SetModelProvider) (api.ModelProviderStored, error) {
	return d.storeProvider(ctx, c, in.ID, &b)
}

func (d *Handlers) removeProvider(ctx context.Context, c *rest.Call, in inProvider, _ rest.None) (api.ModelProviderStored, error) {
	return d.storeProvider(ctx, c, in.ID, nil)
}

func (d *Handlers) storeProvider(ctx context.Context, c *rest.Call, id string, b *api.SetModelProvider) (api.ModelProviderStored, error) {
	p, err := d.providers()
	if err != nil {
		return api.ModelProviderStored{}, err
	}
	notes, err := p.SetProvider(ctx, c.Who.User, id, b)
	return api.ModelProviderStored{Notes: notes}, err
}

func (d *Handlers) setRoles(ctx context.Context, c *rest.Call, _ rest.None, b api.SetModelRoles) (api.ModelProviderStored, error) {
	p, err := d.providers()
	if err != nil {
		return api.ModelProviderStored{}, err
	}
	notes, err := p.SetRoles(ctx, c.Who.User, b)
	return api.ModelProviderStored{Notes: notes}, err
}

// searchModels may wait for a user's server, so it does not keep this one from stopping.
func (d *Handlers) searchModels(ctx context.Context, c *rest.Call, q api.ModelQuery, _ rest.None) (api.ModelList, error) {
	p, err := d.providers()
	if err != nil {
		return api.ModelList{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.Life.Closing, cancel)()
	return p.List(ctx, c.Who.User, q)
}

package httpapi

import (
	"slices"

	"deckhand/internal/httpapi/rest"
)

// table is every route there is. What is not here does not exist; what is here
// needs a key unless it says public.
func (d *Handler) table() []rest.Route {
	return slices.Concat(d.legacy.Routes(), []rest.Route{
		rest.Raw(rest.Route{Method: "GET", Path: "/openapi.json", ID: "openapi", Tag: rest.TagPages, Summary: "Get this OpenAPI document"}, rest.DescribePage("application/json"), d.serveSpec),
		rest.Raw(rest.Route{Method: "GET", Path: "/metrics", ID: "metrics", Tag: rest.TagPages, Admin: true, Summary: "Get Prometheus metrics", About: "Requires an admin key."}, rest.DescribePage("text/plain"), d.serveMetrics),
	}, d.server.Routes(), d.account.Routes(), d.conversations.Routes(), d.mcp.Routes(), d.files.Routes(), d.git.Routes(), d.hooks.Routes(), d.ports.Routes(), d.pages.Routes())
}

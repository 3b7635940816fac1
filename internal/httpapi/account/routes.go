package account

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"deckhand/api"
	"deckhand/internal/access"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/settings"
)

// Routes are those on settings, secrets, keys and users.
func (d *Handlers) Routes() []rest.Route {
	return append(d.providerRoutes(), []rest.Route{
		rest.Op(rest.Route{Method: "GET", Path: "/api/settings", ID: "getSettings", Tag: rest.TagSettings, Summary: "Get your settings, with secrets masked"}, d.getSettings),
		rest.Op(rest.Route{Method: "POST", Path: "/api/settings", ID: "storeSettings", Tag: rest.TagSettings, Summary: "Store settings", About: "Omitted fields keep their values, null resets a field to its default, and an empty string clears it."}, d.storeSettings),
		rest.Op(rest.Route{Method: "POST", Path: "/api/settings/test-model", ID: "testModel", Stream: true, Tag: rest.TagSettings, Summary: "Test a model", About: aboutTestModel}, d.testModel),
		rest.Op(rest.Route{Method: "POST", Path: "/api/settings/test-mcp", ID: "testMCP", Stream: true, Tag: rest.TagSettings, Summary: "Test MCP servers", About: aboutTestMCP}, d.testMCP),
		rest.Op(rest.Route{Method: "GET", Path: "/api/options/models", ID: "listModels", Tag: rest.TagSettings, Summary: "List known models"}, d.listModels),
		rest.Op(rest.Route{Method: "GET", Path: "/api/options/agents", ID: "listAgents", Tag: rest.TagSettings, Summary: "List agent profiles"}, d.listAgents),
		rest.Op(rest.Route{Method: "GET", Path: "/api/options/security-analyzers", ID: "listAnalyzers", Tag: rest.TagSettings, Summary: "List security analyzers"}, d.listAnalyzers),
		rest.Op(rest.Route{Method: "GET", Path: "/api/options/config", ID: "getConfig", Tag: rest.TagOlder, Summary: "Get the configuration for legacy front ends"}, d.getConfig),
		rest.Op(rest.Route{Method: "GET", Path: "/api/secrets", ID: "listSecrets", Tag: rest.TagSettings, Summary: "List custom secrets, without their values"}, d.listSecrets),
		rest.Op(rest.Route{Method: "POST", Path: "/api/secrets", ID: "createSecret", Tag: rest.TagSettings, Status: http.StatusCreated, Summary: "Add a custom secret"}, d.createSecret),
		rest.Op(rest.Route{Method: "PUT", Path: "/api/secrets/{secret_id}", ID: "editSecret", Tag: rest.TagSettings, Summary: "Update a custom secret", About: "Changes the name, description or repositories. The value is kept; to change it, use secrets_store in POST /api/settings."}, d.editSecret),
		rest.Op(rest.Route{Method: "DELETE", Path: "/api/secrets/{secret_id}", ID: "deleteSecret", Tag: rest.TagSettings, Summary: "Delete a custom secret"}, d.deleteSecret),
		rest.Op(rest.Route{Method: "POST", Path: "/api/reset-settings", ID: "resetSettings", Tag: rest.TagOlder, Summary: "Reset settings (removed, always 410)"}, d.resetSettings),
		rest.Op(rest.Route{Method: "GET", Path: "/api/keys", ID: "listKeys", Tag: rest.TagKeys, Summary: "List keys: your own, or all with an admin key"}, d.listKeys),
		rest.Op(rest.Route{Method: "POST", Path: "/api/keys", ID: "createKey", Tag: rest.TagKeys, Status: http.StatusCreated, Summary: "Create a key", About: "The key is shown only once."}, d.createKey),
		rest.Op(rest.Route{Method: "DELETE", Path: "/api/keys/{key_id}", ID: "revokeKey", Tag: rest.TagKeys, Summary: "Revoke a key and close its streams"}, d.revokeKey),
		rest.Op(rest.Route{Method: "GET", Path: "/api/me", ID: "me", Tag: rest.TagKeys, Summary: "Get the user of this key"}, d.me),
		rest.Op(rest.Route{Method: "GET", Path: "/api/usage", ID: "getUsage", Tag: rest.TagKeys, Summary: "Get spending and spending limit", About: aboutUsage}, d.getUsage),
		rest.Op(rest.Route{Method: "GET", Path: "/api/users", ID: "listUsers", Admin: true, Tag: rest.TagKeys, Summary: "List users", About: aboutUsers}, d.listUsers),
		rest.Op(rest.Route{Method: "POST", Path: "/api/users", ID: "createUser", Admin: true, Tag: rest.TagKeys, Status: http.StatusCreated, Summary: "Create a user", About: aboutUsers}, d.createUser),
		rest.Op(rest.Route{Method: "PATCH", Path: "/api/users/{name}", ID: "patchUser", Admin: true, Tag: rest.TagKeys, Summary: "Disable or enable a user, or confirm an e-mail address", About: aboutUsers}, d.patchUser),
	}...)
}

// Config is what the routes need beside the stores of settings and keys.
type Config struct {
	// Models lists the models that are known by name.
	Models func() []string
	// Providers are the model providers of users; nil if there are none.
	Providers Providers
	// TestModel tries a model out for a user.
	TestModel func(ctx context.Context, user string, in api.TestModel) (api.ModelReport, error)
	// TestMCP tries tool servers out for a user.
	TestMCP func(ctx context.Context, user string, m settings.MCP) ([]api.MCPServerStatus, error)
	// Usage is what it knows of money.
	Usage Usage
	// DeleteAfter is how long after its last activity a conversation is deleted; 0 is never.
	DeleteAfter time.Duration
	// Redact learns secrets that must not reach a log.
	Redact func(values ...string)
}

// Handlers manages what users have: settings, secrets and keys; and the users themselves.
type Handlers struct {
	Config
	Conversations *usecase.Service
	Settings      *settings.Service
	Gate          *access.Gate
	Life          rest.Lifetime
	Logger        *slog.Logger
	// VerifiesEmail is true where people sign on at an identity provider or the server sends
	// e-mail, so that users cannot say themselves that their address is verified.
	VerifiesEmail bool
	// CheckTokens tries the git provider tokens in an update.
	CheckTokens func(ctx context.Context, user string, in api.SettingsInput) (notes []string, err error)
	// FromLegacyPage reports whether a request comes from a page of the legacy front end.
	FromLegacyPage func(c *rest.Call) bool
}

// Amend changes the schema of the settings where the wire accepts more than the Go type shows.
func (*Handlers) Amend(r huma.Registry) {
	if s := r.Map()["SettingsInput"]; s != nil {
		s.AdditionalProperties = true // unknown fields are reported in the answer, not refused
		for name, v := range settings.Defaults().Values() {
			s.Properties[name].Default = v
		}
	}
}

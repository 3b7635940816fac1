package client

import (
	"context"
	"maps"
	"net/http"
	"net/url"

	"deckhand/api"
)

// AddGitProviders stores tokens that their providers have accepted.
func (c *Client) AddGitProviders(ctx context.Context, in api.AddGitProviders) (api.GitProvidersStored, error) {
	return call[api.GitProvidersStored](ctx, c, http.MethodPost, "/api/add-git-providers", in)
}

// UnsetProviderTokens deletes all git provider tokens.
func (c *Client) UnsetProviderTokens(ctx context.Context) error {
	_, err := call[api.Done](ctx, c, http.MethodPost, "/api/unset-provider-tokens", nil)
	return err
}

// GitUser returns the account of the user at a git provider.
func (c *Client) GitUser(ctx context.Context) (api.GitUser, error) {
	return call[api.GitUser](ctx, c, http.MethodGet, "/api/user/info", nil)
}

// Installations lists the installations of an app, or the workspaces, at a provider.
func (c *Client) Installations(ctx context.Context, provider string) ([]string, error) {
	return call[[]string](ctx, c, http.MethodGet, "/api/user/installations?"+url.Values{"provider": {provider}}.Encode(), nil)
}

// Repositories returns a page. The query may contain selected_provider, page, per_page, sort and
// installation_id.
func (c *Client) Repositories(ctx context.Context, query url.Values) ([]api.GitRepository, error) {
	return call[[]api.GitRepository](ctx, c, http.MethodGet, "/api/user/repositories?"+query.Encode(), nil)
}

// SearchRepositories searches repositories. The query contains query and may contain per_page, sort, order
// and selected_provider.
func (c *Client) SearchRepositories(ctx context.Context, query url.Values) ([]api.GitRepository, error) {
	return call[[]api.GitRepository](ctx, c, http.MethodGet, "/api/user/search/repositories?"+query.Encode(), nil)
}

// Branches returns a page. The query contains repository and may contain page, per_page and
// selected_provider.
func (c *Client) Branches(ctx context.Context, query url.Values) (api.GitBranches, error) {
	if !query.Has("page") { // without it, the response may have another format
		query = maps.Clone(query)
		query.Set("page", "1")
	}
	return call[api.GitBranches](ctx, c, http.MethodGet, "/api/user/repository/branches?"+query.Encode(), nil)
}

// SearchBranches searches branches. The query contains repository and query and may contain per_page and
// selected_provider.
func (c *Client) SearchBranches(ctx context.Context, query url.Values) ([]api.GitBranch, error) {
	return call[[]api.GitBranch](ctx, c, http.MethodGet, "/api/user/search/branches?"+query.Encode(), nil)
}

// SuggestedTasks lists open issues and pull requests that need work.
func (c *Client) SuggestedTasks(ctx context.Context) ([]api.SuggestedTask, error) {
	return call[[]api.SuggestedTask](ctx, c, http.MethodGet, "/api/user/suggested-tasks", nil)
}

// Starters returns the suggestions for a home page.
func (c *Client) Starters(ctx context.Context) (api.Starters, error) {
	return call[api.Starters](ctx, c, http.MethodGet, "/api/starters", nil)
}

// RepositoryMicroagents lists the microagent files of a repository without cloning it.
func (c *Client) RepositoryMicroagents(ctx context.Context, repository string) ([]api.RepositoryMicroagent, error) {
	return call[[]api.RepositoryMicroagent](ctx, c, http.MethodGet, "/api/user/repository/"+url.PathEscape(repository)+"/microagents", nil)
}

// RepositoryMicroagent returns one microagent file.
func (c *Client) RepositoryMicroagent(ctx context.Context, repository, file string) (api.MicroagentContent, error) {
	return call[api.MicroagentContent](ctx, c, http.MethodGet,
		"/api/user/repository/"+url.PathEscape(repository)+"/microagents/content?"+url.Values{"file_path": {file}}.Encode(), nil)
}

// RememberPrompt returns a prompt that asks an agent to remember what happened at an
// event.
func (c *Client) RememberPrompt(ctx context.Context, id string, event int64) (string, error) {
	out, err := call[api.RememberPrompt](ctx, c, http.MethodGet, item(id)+"/remember-prompt?event_id="+format(event), nil)
	return out.Prompt, err
}

// Secrets lists the custom secrets, without their values.
func (c *Client) Secrets(ctx context.Context) ([]api.SecretInfo, error) {
	out, err := call[api.Secrets](ctx, c, http.MethodGet, "/api/secrets", nil)
	return out.CustomSecrets, err
}

// CreateSecret adds a custom secret.
func (c *Client) CreateSecret(ctx context.Context, in api.CreateSecret) error {
	_, err := call[api.Done](ctx, c, http.MethodPost, "/api/secrets", in)
	return err
}

// EditSecret changes the name or description of a custom secret.
func (c *Client) EditSecret(ctx context.Context, name string, in api.EditSecret) error {
	_, err := call[api.Done](ctx, c, http.MethodPut, "/api/secrets/"+url.PathEscape(name), in)
	return err
}

// DeleteSecret removes a custom secret.
func (c *Client) DeleteSecret(ctx context.Context, name string) error {
	_, err := call[api.Done](ctx, c, http.MethodDelete, "/api/secrets/"+url.PathEscape(name), nil)
	return err
}

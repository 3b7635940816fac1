package git

import (
	"context"
	"log/slog"

	"deckhand/internal/gitprovider"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/settings"
	"deckhand/internal/solvable"
)

// Routes are those on the git providers of users.
func (d *Handlers) Routes() []rest.Route {
	return []rest.Route{
		rest.Op(rest.Route{Method: "POST", Path: "/api/add-git-providers", ID: "addGitProviders", Stream: true, Tag: rest.TagGit, Summary: "Store git provider tokens", About: aboutAddProviders}, d.addGitProviders),
		rest.Op(rest.Route{Method: "POST", Path: "/api/unset-provider-tokens", ID: "unsetProviderTokens", Tag: rest.TagGit, Summary: "Delete all git provider tokens", About: "Custom secrets are kept."}, d.unsetProviderTokens),
		rest.Op(rest.Route{Method: "GET", Path: "/api/user/info", ID: "gitUser", Stream: true, Tag: rest.TagGit, Family: rest.Bare, Summary: "Get your git provider profile"}, d.gitUser),
		rest.Op(rest.Route{Method: "GET", Path: "/api/user/installations", ID: "gitInstallations", Stream: true, Tag: rest.TagGit, Family: rest.Bare, Summary: "List GitHub app installations or Bitbucket workspaces"}, d.gitInstallations),
		rest.Op(rest.Route{Method: "GET", Path: "/api/user/repositories", ID: "gitRepositories", Stream: true, Tag: rest.TagGit, Family: rest.Bare, Summary: "List your repositories", About: aboutRepositories}, d.gitRepositories),
		rest.Op(rest.Route{Method: "GET", Path: "/api/user/search/repositories", ID: "searchRepositories", Stream: true, Tag: rest.TagGit, Family: rest.Bare, Summary: "Search repositories by name or URL", About: aboutSeveral}, d.searchRepositories),
		rest.Op(rest.Route{Method: "GET", Path: "/api/user/search/branches", ID: "searchBranches", Stream: true, Tag: rest.TagGit, Family: rest.Bare, Summary: "Search branches by name"}, d.searchBranches),
		rest.Op(rest.Route{Method: "GET", Path: "/api/user/repository/branches", ID: "gitBranches", Stream: true, Tag: rest.TagGit, Family: rest.Bare, Summary: "List the branches of a repository", About: aboutBranches}, d.gitBranches),
		rest.Op(rest.Route{Method: "GET", Path: "/api/user/repository/{repository_name}/microagents", ID: "repositoryMicroagents", Stream: true, Tag: rest.TagGit, Family: rest.Bare, Summary: "List the microagents of a repository", About: aboutRepositoryName}, d.repositoryMicroagents),
		rest.Op(rest.Route{Method: "GET", Path: "/api/user/repository/{repository_name}/microagents/content", ID: "repositoryMicroagent", Stream: true, Tag: rest.TagGit, Family: rest.Bare, Summary: "Get a microagent of a repository", About: aboutRepositoryName}, d.repositoryMicroagent),
		rest.Op(rest.Route{Method: "GET", Path: "/api/user/suggested-tasks", ID: "suggestedTasks", Stream: true, Tag: rest.TagGit, Family: rest.Bare, Summary: "List suggested tasks from your git providers", About: aboutTasks}, d.suggestedTasks),
		rest.Op(rest.Route{Method: "GET", Path: "/api/starters", ID: "starters", Stream: true, Tag: rest.TagGit, Summary: "List conversation starters for the home page", About: aboutStarters}, d.starters),
	}
}

// Config is how git providers are reached.
type Config struct {
	// Forge opens a git provider with what a user stored for it; nil if there are none.
	Forge func(ctx context.Context, provider string, t settings.ProviderToken) (gitprovider.Provider, error)
	// Rater says how likely an agent solves an issue; nil if there is none.
	Rater *solvable.Rater
}

// Handlers asks git providers with the tokens of users.
type Handlers struct {
	Config
	Settings *settings.Service
	// Redact learns secrets that must not reach a log; nil for none.
	Redact func(values ...string)
	Life   rest.Lifetime
	Logger *slog.Logger
}

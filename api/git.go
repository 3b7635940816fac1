package api

import "time"

// AddGitProviders is the body of POST /api/add-git-providers. Providers that it
// does not name keep what is stored.
type AddGitProviders struct {
	ProviderTokens map[string]*ProviderToken `json:"provider_tokens,omitempty" doc:"Tokens by git provider (github, gitlab, bitbucket, enterprise_sso, gitea, forgejo): a string, an object {token, host}, or null to remove it. An empty token keeps the stored one, if the host stays."`
	MCPConfig      Opt[map[string]any]       `json:"mcp_config,omitzero" doc:"Accepted for older clients and not used; POST /api/settings stores it."`
}

// GitProvidersStored answers it. Message is always "Git providers stored".
type GitProvidersStored struct {
	Message string   `json:"message"`
	Notes   []string `json:"notes,omitempty" doc:"What else the change did, such as dropping a token that belongs to another host."`
}

// InvalidTokens is the body of the 401 when a provider does not accept a token.
// Nothing was stored then.
type InvalidTokens struct {
	Error  string   `json:"error" doc:"The first of them."`
	MsgID  string   `json:"msg_id"`
	Detail []string `json:"detail" doc:"All of them, each with the provider's name and what it says."`
}

// Done says in a sentence that something was done.
type Done struct {
	Message string `json:"message"`
}

// GitUser is whom a token belongs to.
type GitUser struct {
	ID        string  `json:"id"`
	Login     string  `json:"login"`
	AvatarURL string  `json:"avatar_url"`
	Company   *string `json:"company"`
	Name      *string `json:"name"`
	Email     *string `json:"email"`
}

// GitRepository is a repository at a git provider.
type GitRepository struct {
	ID              string     `json:"id"`
	FullName        string     `json:"full_name" doc:"owner/name; at GitLab there may be more groups before the name."`
	GitProvider     string     `json:"git_provider"`
	IsPublic        bool       `json:"is_public"`
	StargazersCount *int       `json:"stargazers_count"`
	LinkHeader      *string    `json:"link_header" doc:"Where the next page is, written as a Link header; null on the last page."`
	PushedAt        *time.Time `json:"pushed_at"`
	OwnerType       *string    `json:"owner_type" enum:"user,organization"`
	MainBranch      *string    `json:"main_branch"`
}

// GitBranch is a branch of a repository.
type GitBranch struct {
	Name         string     `json:"name"`
	CommitSHA    string     `json:"commit_sha"`
	Protected    bool       `json:"protected"`
	LastPushDate *time.Time `json:"last_push_date"`
}

// GitBranches is a page of them.
type GitBranches struct {
	Branches    []GitBranch `json:"branches"`
	HasNextPage bool        `json:"has_next_page"`
	CurrentPage int         `json:"current_page"`
	PerPage     int         `json:"per_page"`
	TotalCount  *int        `json:"total_count" doc:"null if the provider does not say."`
}

// Solvability is how likely an agent solves an issue, as the user's model sees it.
type Solvability struct {
	Score    float64 `json:"score" minimum:"0" maximum:"1"`
	Sentence string  `json:"sentence" maxLength:"1000" doc:"Why."`
}

// Starters answers GET /api/starters.
type Starters struct {
	Enabled bool            `json:"enabled" doc:"Whether the user wants to be offered something: enable_proactive_conversation_starters."`
	Tasks   []SuggestedTask `json:"tasks" doc:"What there is to be offered. Send one as suggested_task to begin."`
}

// RepositoryMicroagent is a file with a microagent, found without a clone.
type RepositoryMicroagent struct {
	Name      string    `json:"name"`
	Path      string    `json:"path"`
	CreatedAt time.Time `json:"created_at" doc:"When it was found: providers do not say when a file was made."`
}

// MicroagentContent is such a file.
type MicroagentContent struct {
	Content     string   `json:"content" doc:"Its text, without the front matter."`
	Path        string   `json:"path"`
	Triggers    []string `json:"triggers" doc:"Words that bring it up."`
	GitProvider *string  `json:"git_provider"`
}

// RememberPrompt answers GET …/remember-prompt.
type RememberPrompt struct {
	Status string `json:"status" doc:"Always success."`
	Prompt string `json:"prompt" doc:"What to tell an agent that shall remember it."`
}

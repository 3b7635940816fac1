package api

import "time"

// AddGitProviders is the body of POST /api/add-git-providers. Omitted providers keep
// their tokens.
type AddGitProviders struct {
	ProviderTokens map[string]*ProviderToken `json:"provider_tokens,omitempty" doc:"Tokens by the name of the git provider: a string, an object {token, host}, or null to remove it. An empty token keeps the stored one, if the host stays."`
	MCPConfig      Opt[map[string]any]       `json:"mcp_config,omitzero" doc:"Ignored; accepted for legacy clients. Use POST /api/settings to store it."`
}

// GitProvidersStored is the response. Message is always "Git providers stored".
type GitProvidersStored struct {
	Message string   `json:"message"`
	Notes   []string `json:"notes,omitempty" doc:"Side effects of the change, such as a dropped token that belongs to another host."`
}

// InvalidTokens is the body of the 401 if a provider rejects a token. Nothing is stored
// then.
type InvalidTokens struct {
	Error  string   `json:"error" doc:"The first error."`
	MsgID  string   `json:"msg_id"`
	Detail []string `json:"detail" doc:"All errors, each with the provider's name and its message."`
}

// Done confirms an operation in a sentence.
type Done struct {
	Message string `json:"message"`
}

// GitUser is the account that a token belongs to.
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
	FullName        string     `json:"full_name" doc:"owner/name; with subgroups, the owner has several parts."`
	GitProvider     string     `json:"git_provider"`
	IsPublic        bool       `json:"is_public"`
	StargazersCount *int       `json:"stargazers_count"`
	LinkHeader      *string    `json:"link_header" doc:"Link to the next page, in the format of a Link header; null on the last page."`
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

// GitBranches is a page of branches.
type GitBranches struct {
	Branches    []GitBranch `json:"branches"`
	HasNextPage bool        `json:"has_next_page"`
	CurrentPage int         `json:"current_page"`
	PerPage     int         `json:"per_page"`
	TotalCount  *int        `json:"total_count" doc:"null if the provider does not report it."`
}

// Solvability is how likely an agent can solve an issue, as rated by the user's model.
type Solvability struct {
	Score    float64 `json:"score" minimum:"0" maximum:"1"`
	Sentence string  `json:"sentence" maxLength:"1000" doc:"Reason for the score."`
}

// Starters is the response of GET /api/starters.
type Starters struct {
	Enabled bool            `json:"enabled" doc:"Value of the setting enable_proactive_conversation_starters."`
	Tasks   []SuggestedTask `json:"tasks" doc:"Suggested tasks. Send one as suggested_task to start a conversation."`
}

// RepositoryMicroagent is a file with a microagent, found without a clone.
type RepositoryMicroagent struct {
	Name      string    `json:"name"`
	Path      string    `json:"path"`
	CreatedAt time.Time `json:"created_at" doc:"Time of this request: providers do not report when a file was created."`
}

// MicroagentContent is the content of a microagent file.
type MicroagentContent struct {
	Content     string   `json:"content" doc:"Text of the microagent, without the front matter."`
	Path        string   `json:"path"`
	Triggers    []string `json:"triggers" doc:"Words in a message that activate the microagent."`
	GitProvider *string  `json:"git_provider"`
}

// RememberPrompt is the response of GET …/remember-prompt.
type RememberPrompt struct {
	Status string `json:"status" doc:"Always success."`
	Prompt string `json:"prompt" doc:"Prompt for an agent that writes the microagent."`
}

package api

import "time"

// Integration lets people start and continue your conversations from issues and
// pull requests at a git provider.
type Integration struct {
	ID           string    `json:"id"`
	Provider     string    `json:"provider" enum:"github,gitlab,bitbucket,gitea,forgejo"`
	Host         string    `json:"host" doc:"Where it lives; empty for the provider's own place."`
	Mention      string    `json:"mention" doc:"What a comment says to call the agent."`
	Label        string    `json:"label" doc:"What an issue is given to be worked on; empty if labels do not count."`
	Repositories []string  `json:"repositories" doc:"The only ones that count; empty for all."`
	AllowedUsers []string  `json:"allowed_users" doc:"Who may ask, as the provider names them; * is anybody."`
	Enabled      bool      `json:"enabled"`
	WebhookURL   string    `json:"webhook_url" doc:"What to enter as the address of the webhook at the provider."`
	Warnings     []string  `json:"warnings" doc:"What you should know about these choices."`
	CreatedAt    time.Time `json:"created_at"`
	UpdatedAt    time.Time `json:"updated_at"`
}

// CreateIntegration is the body of POST /api/integrations.
type CreateIntegration struct {
	Provider     string        `json:"provider" enum:"github,gitlab,bitbucket,gitea,forgejo"`
	Host         Opt[string]   `json:"host,omitzero" nullable:"false" maxLength:"200" doc:"Default: that of the token you stored."`
	Mention      Opt[string]   `json:"mention,omitzero" nullable:"false" maxLength:"64" doc:"Default: @deckhand."`
	Label        Opt[string]   `json:"label,omitzero" nullable:"false" maxLength:"200" doc:"Default: deckhand."`
	Repositories Opt[[]string] `json:"repositories,omitzero" nullable:"false" maxItems:"200" doc:"Default: all."`
	AllowedUsers Opt[[]string] `json:"allowed_users,omitzero" nullable:"false" maxItems:"200" doc:"Default: you alone, by the name that your stored token has at the provider. For Bitbucket Cloud these are account ids."`
	Enabled      Opt[bool]     `json:"enabled,omitzero" nullable:"false" doc:"Default: true."`
}

// NewIntegration answers POST /api/integrations.
type NewIntegration struct {
	Integration
	Secret string `json:"secret" doc:"What to enter as the secret of the webhook at the provider. It is shown this once."`
}

// PatchIntegration is the body of PATCH /api/integrations/{integration_id}. Omitted fields stay.
type PatchIntegration struct {
	Host         Opt[string]   `json:"host,omitzero" nullable:"false" maxLength:"200"`
	Mention      Opt[string]   `json:"mention,omitzero" nullable:"false" maxLength:"64"`
	Label        Opt[string]   `json:"label,omitzero" nullable:"false" maxLength:"200"`
	Repositories Opt[[]string] `json:"repositories,omitzero" nullable:"false" maxItems:"200"`
	AllowedUsers Opt[[]string] `json:"allowed_users,omitzero" nullable:"false" maxItems:"200" doc:"An empty list is you alone."`
	Enabled      Opt[bool]     `json:"enabled,omitzero" nullable:"false"`
	RotateSecret Opt[bool]     `json:"rotate_secret,omitzero" nullable:"false" doc:"true makes a new secret; the old one is accepted as well for a day."`
}

// PatchedIntegration answers PATCH /api/integrations/{integration_id}.
type PatchedIntegration struct {
	Integration
	Secret *string `json:"secret" doc:"The new secret, shown this once; null if none was made."`
}

// IntegrationDelivery is something that a provider told, and what became of it.
type IntegrationDelivery struct {
	ID             string     `json:"id" doc:"The provider's name for it."`
	Event          string     `json:"event" doc:"What the provider calls it."`
	Repository     *string    `json:"repository"`
	Number         *int       `json:"number" doc:"Of the issue or pull request."`
	PullRequest    bool       `json:"pull_request"`
	Actor          *string    `json:"actor" doc:"Who did it."`
	State          string     `json:"state" enum:"waiting,working,answered,ignored,failed"`
	Reason         *string    `json:"reason" doc:"Why it was ignored or failed, or what went wrong the last time."`
	ConversationID *string    `json:"conversation_id"`
	CreatedAt      time.Time  `json:"created_at"`
	NextAttemptAt  *time.Time `json:"next_attempt_at"`
	DoneAt         *time.Time `json:"done_at"`
}

// IntegrationDeliveryPage answers GET /api/integrations/{integration_id}/deliveries, newest first.
type IntegrationDeliveryPage struct {
	Results []IntegrationDelivery `json:"results"`
	Next    *int64                `json:"next" doc:"before of the next page; null on the last one."`
}

// WebhookReceipt answers a provider that told something.
type WebhookReceipt struct {
	Status string  `json:"status" enum:"accepted,known,ignored" doc:"known: it was told before, and nothing is done."`
	Reason *string `json:"reason" doc:"Why it is ignored."`
}

package api

import "time"

// Integration lets people start and continue your conversations from issues and
// pull requests at a git provider.
type Integration struct {
	ID           string    `json:"id"`
	Provider     string    `json:"provider" enum:"git_trigger"`
	Host         string    `json:"host" doc:"Host of the provider; empty for the provider's default host."`
	Mention      string    `json:"mention" doc:"Text in a comment that starts the agent."`
	Label        string    `json:"label" doc:"Issue label that starts the agent; empty if labels are ignored."`
	Repositories []string  `json:"repositories" doc:"Repositories that the integration is limited to; empty for all."`
	AllowedUsers []string  `json:"allowed_users" doc:"Users who may start the agent, by their names at the provider; * allows all."`
	Enabled      bool      `json:"enabled"`
	WebhookURL   string    `json:"webhook_url" doc:"Webhook URL to enter at the provider."`
	Warnings     []string  `json:"warnings" doc:"Warnings about the configuration."`
	CreatedAt    time.Time `json:"created_at"`
	UpdatedAt    time.Time `json:"updated_at"`
}

// CreateIntegration is the body of POST /api/integrations.
type CreateIntegration struct {
	Provider     string        `json:"provider" enum:"git_trigger"`
	Host         Opt[string]   `json:"host,omitzero" nullable:"false" maxLength:"200" doc:"Host of the provider. Default: the host of the stored token."`
	Mention      Opt[string]   `json:"mention,omitzero" nullable:"false" maxLength:"64" doc:"Text in a comment that starts the agent. Default: @deckhand."`
	Label        Opt[string]   `json:"label,omitzero" nullable:"false" maxLength:"200" doc:"Issue label that starts the agent. Default: deckhand."`
	Repositories Opt[[]string] `json:"repositories,omitzero" nullable:"false" maxItems:"200" doc:"Repositories that the integration is limited to. Default: all."`
	AllowedUsers Opt[[]string] `json:"allowed_users,omitzero" nullable:"false" maxItems:"200" doc:"Users who may start the agent. Default: only the owner of the stored token. For Bitbucket Cloud, use account IDs."`
	Enabled      Opt[bool]     `json:"enabled,omitzero" nullable:"false" doc:"Default: true."`
}

// NewIntegration is the response of POST /api/integrations.
type NewIntegration struct {
	Integration
	Secret string `json:"secret" doc:"Webhook secret to enter at the provider. It is shown only once."`
}

// PatchIntegration is the body of PATCH /api/integrations/{integration_id}. Omitted fields keep
// their values.
type PatchIntegration struct {
	Host         Opt[string]   `json:"host,omitzero" nullable:"false" maxLength:"200"`
	Mention      Opt[string]   `json:"mention,omitzero" nullable:"false" maxLength:"64"`
	Label        Opt[string]   `json:"label,omitzero" nullable:"false" maxLength:"200"`
	Repositories Opt[[]string] `json:"repositories,omitzero" nullable:"false" maxItems:"200"`
	AllowedUsers Opt[[]string] `json:"allowed_users,omitzero" nullable:"false" maxItems:"200" doc:"Users who may start the agent. An empty list: only the owner of the stored token."`
	Enabled      Opt[bool]     `json:"enabled,omitzero" nullable:"false"`
	RotateSecret Opt[bool]     `json:"rotate_secret,omitzero" nullable:"false" doc:"true creates a new secret; the old one is also accepted for a day."`
}

// PatchedIntegration is the response of PATCH /api/integrations/{integration_id}.
type PatchedIntegration struct {
	Integration
	Secret *string `json:"secret" doc:"The new secret, shown only once; null if it was not rotated."`
}

// IntegrationDelivery is a webhook request of a provider and its result.
type IntegrationDelivery struct {
	ID             string     `json:"id" doc:"ID of the delivery at the provider."`
	Event          string     `json:"event" doc:"Event name used by the provider."`
	Repository     *string    `json:"repository"`
	Number         *int       `json:"number" doc:"Number of the issue or pull request."`
	PullRequest    bool       `json:"pull_request"`
	Actor          *string    `json:"actor" doc:"User who triggered the event."`
	State          string     `json:"state" enum:"waiting,working,answered,ignored,failed"`
	Reason         *string    `json:"reason" doc:"Reason why the delivery was ignored or failed, or the last error."`
	ConversationID *string    `json:"conversation_id"`
	CreatedAt      time.Time  `json:"created_at"`
	NextAttemptAt  *time.Time `json:"next_attempt_at"`
	DoneAt         *time.Time `json:"done_at"`
}

// IntegrationDeliveryPage is the response of GET /api/integrations/{integration_id}/deliveries,
// newest first.
type IntegrationDeliveryPage struct {
	Results []IntegrationDelivery `json:"results"`
	Next    *int64                `json:"next" doc:"Cursor of the next page: send it as before. null on the last page."`
}

// WebhookReceipt is the response to a provider's webhook request.
type WebhookReceipt struct {
	Status string  `json:"status" enum:"accepted,known,ignored" doc:"known: the delivery was received before and is ignored."`
	Reason *string `json:"reason" doc:"Reason why the delivery is ignored."`
}

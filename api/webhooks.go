package api

import "time"

// Webhook is an address of yours that is told when something happens in your conversations.
type Webhook struct {
	ID             string     `json:"id"`
	URL            string     `json:"url"`
	Events         []string   `json:"events" doc:"What it is told of."`
	Description    string     `json:"description"`
	Enabled        bool       `json:"enabled"`
	DisabledReason *string    `json:"disabled_reason" doc:"Why the server disabled it; null if it did not."`
	FailingSince   *time.Time `json:"failing_since" doc:"Since when no attempt succeeded; null if the last one did."`
	Waiting        int        `json:"waiting" doc:"Deliveries that are still to be made."`
	CreatedAt      time.Time  `json:"created_at"`
	UpdatedAt      time.Time  `json:"updated_at"`
}

// CreateWebhook is the body of POST /api/webhooks.
type CreateWebhook struct {
	URL         string        `json:"url" minLength:"1" maxLength:"2000" doc:"An http or https address."`
	Events      Opt[[]string] `json:"events,omitzero" nullable:"false" maxItems:"10" doc:"Any of created, state_changed, finished and needs_approval. Default: all of them."`
	Description Opt[string]   `json:"description,omitzero" nullable:"false" maxLength:"200"`
	Enabled     Opt[bool]     `json:"enabled,omitzero" nullable:"false" doc:"Default: true."`
}

// NewWebhook answers POST /api/webhooks.
type NewWebhook struct {
	Webhook
	Secret string `json:"secret" doc:"What signs the deliveries (Standard Webhooks). It is shown this once."`
}

// PatchWebhook is the body of PATCH /api/webhooks/{webhook_id}. Omitted fields stay.
type PatchWebhook struct {
	URL          Opt[string]   `json:"url,omitzero" nullable:"false" minLength:"1" maxLength:"2000"`
	Events       Opt[[]string] `json:"events,omitzero" nullable:"false" maxItems:"10"`
	Description  Opt[string]   `json:"description,omitzero" nullable:"false" maxLength:"200"`
	Enabled      Opt[bool]     `json:"enabled,omitzero" nullable:"false" doc:"true also forgets earlier failures, and tries at once what waits."`
	RotateSecret Opt[bool]     `json:"rotate_secret,omitzero" nullable:"false" doc:"true makes a new secret; the old one signs as well for a day."`
}

// PatchedWebhook answers PATCH /api/webhooks/{webhook_id}.
type PatchedWebhook struct {
	Webhook
	Secret *string `json:"secret" doc:"The new secret, shown this once; null if none was made."`
}

// WebhookDelivery is one piece of news on its way to a webhook.
type WebhookDelivery struct {
	ID             string     `json:"id" doc:"The webhook-id header: the same for every attempt."`
	Type           string     `json:"type" doc:"Such as conversation.finished."`
	ConversationID *string    `json:"conversation_id"`
	Event          *int64     `json:"event" doc:"The number of the event that it tells of."`
	State          string     `json:"state" enum:"waiting,delivered,failed"`
	Attempts       int        `json:"attempts"`
	StatusCode     *int       `json:"status_code" doc:"What the receiver answered last; null if it did not."`
	Error          *string    `json:"error" doc:"What was wrong with the last attempt."`
	TookMS         *int64     `json:"took_ms" doc:"How long the last attempt took."`
	CreatedAt      time.Time  `json:"created_at"`
	LastAttemptAt  *time.Time `json:"last_attempt_at"`
	NextAttemptAt  *time.Time `json:"next_attempt_at" doc:"null when nothing more is done."`
}

// WebhookDeliveryPage answers GET /api/webhooks/{webhook_id}/deliveries, newest first.
type WebhookDeliveryPage struct {
	Results []WebhookDelivery `json:"results"`
	Next    *int64            `json:"next" doc:"before of the next page; null on the last one."`
}

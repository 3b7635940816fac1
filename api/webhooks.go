package api

import "time"

// Webhook is a URL that is notified of events in your conversations.
type Webhook struct {
	ID             string     `json:"id"`
	URL            string     `json:"url"`
	Events         []string   `json:"events" doc:"Events that the webhook receives."`
	Description    string     `json:"description"`
	Enabled        bool       `json:"enabled"`
	DisabledReason *string    `json:"disabled_reason" doc:"Reason why the server disabled the webhook; otherwise null."`
	FailingSince   *time.Time `json:"failing_since" doc:"Start of the current run of failures; null if the last attempt succeeded."`
	Waiting        int        `json:"waiting" doc:"Number of pending deliveries."`
	CreatedAt      time.Time  `json:"created_at"`
	UpdatedAt      time.Time  `json:"updated_at"`
}

// CreateWebhook is the body of POST /api/webhooks.
type CreateWebhook struct {
	URL         string        `json:"url" minLength:"1" maxLength:"2000" doc:"URL of the receiver, http or https."`
	Events      Opt[[]string] `json:"events,omitzero" nullable:"false" maxItems:"10" doc:"Any of created, state_changed, finished and needs_approval. Default: all."`
	Description Opt[string]   `json:"description,omitzero" nullable:"false" maxLength:"200"`
	Enabled     Opt[bool]     `json:"enabled,omitzero" nullable:"false" doc:"Default: true."`
}

// NewWebhook answers POST /api/webhooks.
type NewWebhook struct {
	Webhook
	Secret string `json:"secret" doc:"Secret that signs deliveries (Standard Webhooks). It is shown only once."`
}

// PatchWebhook is the body of PATCH /api/webhooks/{webhook_id}. Omitted fields stay.
type PatchWebhook struct {
	URL          Opt[string]   `json:"url,omitzero" nullable:"false" minLength:"1" maxLength:"2000"`
	Events       Opt[[]string] `json:"events,omitzero" nullable:"false" maxItems:"10"`
	Description  Opt[string]   `json:"description,omitzero" nullable:"false" maxLength:"200"`
	Enabled      Opt[bool]     `json:"enabled,omitzero" nullable:"false" doc:"true also clears earlier failures and retries pending deliveries immediately."`
	RotateSecret Opt[bool]     `json:"rotate_secret,omitzero" nullable:"false" doc:"true creates a new secret; deliveries are also signed with the old one for a day."`
}

// PatchedWebhook answers PATCH /api/webhooks/{webhook_id}.
type PatchedWebhook struct {
	Webhook
	Secret *string `json:"secret" doc:"The new secret, shown only once; null if it was not rotated."`
}

// WebhookDelivery is one piece of news on its way to a webhook.
type WebhookDelivery struct {
	ID             string     `json:"id" doc:"Value of the webhook-id header, which all attempts share."`
	Type           string     `json:"type" doc:"Event type, such as conversation.finished."`
	ConversationID *string    `json:"conversation_id"`
	Event          *int64     `json:"event" doc:"Number of the event."`
	State          string     `json:"state" enum:"waiting,delivered,failed"`
	Attempts       int        `json:"attempts"`
	StatusCode     *int       `json:"status_code" doc:"Status of the last response; null if there was none."`
	Error          *string    `json:"error" doc:"Error of the last attempt."`
	TookMS         *int64     `json:"took_ms" doc:"Duration of the last attempt in milliseconds."`
	CreatedAt      time.Time  `json:"created_at"`
	LastAttemptAt  *time.Time `json:"last_attempt_at"`
	NextAttemptAt  *time.Time `json:"next_attempt_at" doc:"Time of the next attempt; null if there is none."`
}

// WebhookDeliveryPage answers GET /api/webhooks/{webhook_id}/deliveries, newest first.
type WebhookDeliveryPage struct {
	Results []WebhookDelivery `json:"results"`
	Next    *int64            `json:"next" doc:"Cursor of the next page: send it as before. null on the last page."`
}

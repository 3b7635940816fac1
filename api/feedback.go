package api

import (
	"encoding/json"
	"time"
)

// SubmitFeedback is the body of POST …/submit-feedback. Other fields that older clients
// send are accepted and ignored.
type SubmitFeedback struct {
	_           struct{}    `additionalProperties:"true"`
	Polarity    string      `json:"polarity" enum:"positive,negative" doc:"Whether the feedback is positive or negative."`
	Permissions Opt[string] `json:"permissions,omitzero" enum:"public,private" doc:"Whether the feedback may be shared; private by default. The server never sends it anywhere."`
	Email       Opt[string] `json:"email,omitzero" maxLength:"320"`
	Version     Opt[string] `json:"version,omitzero" maxLength:"100"`
}

// FeedbackStored is the response, in the format that older front ends expect.
type FeedbackStored struct {
	StatusCode int          `json:"statusCode" doc:"Always 200."`
	Body       FeedbackBody `json:"body"`
}

// FeedbackBody is the part that older front ends show.
type FeedbackBody struct {
	Message    string `json:"message"`
	FeedbackID string `json:"feedback_id"`
	Password   string `json:"password" doc:"Always empty: stored feedback has no page of its own."`
}

// RateConversation is the body of POST /feedback/conversation.
type RateConversation struct {
	ConversationID string              `json:"conversation_id" minLength:"1" maxLength:"100"`
	EventID        Opt[int64]          `json:"event_id,omitzero" minimum:"0" doc:"Event to rate; omitted: the whole conversation."`
	Rating         int                 `json:"rating" minimum:"1" maximum:"5"`
	Reason         Opt[string]         `json:"reason,omitzero" maxLength:"10000"`
	Metadata       Opt[map[string]any] `json:"metadata,omitzero" doc:"At most 10,000 bytes."`
}

// Rated is the response to RateConversation.
type Rated struct {
	Status  string `json:"status" doc:"Always success."`
	Message string `json:"message"`
}

// Rating is the rating of an event.
type Rating struct {
	Exists   bool            `json:"exists"`
	Rating   int             `json:"rating,omitzero"`
	Reason   string          `json:"reason,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// Feedback is a user's feedback on the agent's work, for the operator.
type Feedback struct {
	ID             int64           `json:"id"`
	User           string          `json:"user"`
	ConversationID string          `json:"conversation_id"`
	CreatedAt      time.Time       `json:"created_at"`
	Rating         *int            `json:"rating" doc:"1 to 5; null if the entry has a polarity."`
	EventID        *int64          `json:"event_id" doc:"Rated event; null for the whole conversation."`
	Reason         string          `json:"reason"`
	Metadata       json.RawMessage `json:"metadata" doc:"Metadata sent by the client; null if none."`
	Polarity       string          `json:"polarity" doc:"positive or negative; empty if the entry has a rating."`
	Permissions    string          `json:"permissions"`
	Email          string          `json:"email"`
	Version        string          `json:"version"`
}

// FeedbackPage is a page of feedback.
type FeedbackPage struct {
	Feedback []Feedback `json:"feedback"`
	Next     *int64     `json:"next" doc:"Cursor of the next page: send it as before. null on the last page."`
}

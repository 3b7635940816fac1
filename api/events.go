package api

import "encoding/json"

// EventPage is a page of a conversation's events.
type EventPage struct {
	Events  []json.RawMessage `json:"events" doc:"Events in the requested format, as described in docs/events.md."`
	HasMore bool              `json:"has_more"`
}

// MaxImage is how many bytes an image may have to be shown to models. Clients refuse larger ones before they send them.
const MaxImage = 5 << 20

// PostMessage is the body of POST …/message.
type PostMessage struct {
	Message   string        `json:"message" maxLength:"1048576"`
	ImageURLs Opt[[]string] `json:"image_urls,omitzero" maxItems:"50"`
}

// Accepted is the response to a message or an action.
type Accepted struct {
	Success bool `json:"success"`
}

// Event is an event in the format deckhand: an event of the log, with the fields of its
// kind in Payload. The OpenAPI document has a schema for each kind. Newer servers may send
// kinds and fields that a client does not know.
type Event struct {
	ID      int64           `json:"id"`
	Kind    string          `json:"kind"`
	Time    string          `json:"time"`
	Payload json.RawMessage `json:"payload"`
}

// LegacyEvent is an event in the format legacy. Exactly one of Action and Observation is set.
type LegacyEvent struct {
	ID          int64           `json:"id"`
	Timestamp   string          `json:"timestamp"`
	Source      string          `json:"source"`
	Message     string          `json:"message,omitempty"`
	Cause       int64           `json:"cause,omitempty"`
	Action      string          `json:"action,omitempty"`
	Args        json.RawMessage `json:"args,omitempty"`
	Observation string          `json:"observation,omitempty"`
	Content     string          `json:"content,omitempty"`
	Extras      json.RawMessage `json:"extras,omitempty"`
	LLMMetrics  json.RawMessage `json:"llm_metrics,omitempty"`
}

// StatusUpdate is a notice that is not an event in the format legacy.
type StatusUpdate struct {
	StatusUpdate      bool   `json:"status_update"`
	Type              string `json:"type"`
	ID                string `json:"id,omitempty"`
	Message           string `json:"message"`
	ConversationTitle string `json:"conversation_title,omitempty"`
}

// Delta is a part of a message or an output that is not complete yet.
type Delta struct {
	Call   string `json:"call"`
	Offset int64  `json:"offset"`
	Text   string `json:"text"`
}

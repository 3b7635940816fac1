package api

import "encoding/json"

// Approval is a tool call that waits for the person.
type Approval struct {
	CallID string `json:"call_id"`
	// EventID is the number of the event that made the call.
	EventID   int64           `json:"event_id"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	// Display is how the tool declares that the call is shown.
	Display Display `json:"display"`
	// Risk is -1 unknown, 0 low, 1 medium, 2 high.
	Risk   int    `json:"security_risk"`
	Reason string `json:"reason"`
	// Pattern is what "always" would allow, null if it cannot be said safely.
	Pattern *string `json:"pattern"`
	// Deadline is when Default becomes the answer, null if the call waits for ever.
	Deadline *string `json:"deadline"`
	Default  *string `json:"default"`
}

// Approvals are the calls that wait, and the patterns that are always allowed.
type Approvals struct {
	Pending []Approval `json:"pending"`
	Allowed []string   `json:"allowed"`
}

// Decision is the answer to an Approval.
type Decision struct {
	// CallID may be left out: it is then the one that waits.
	CallID Opt[string] `json:"call_id,omitzero" maxLength:"200"`
	// Decision is accept, reject, or always (accept this and all like it).
	Decision string `json:"decision" enum:"accept,reject,always"`
	// Reason is told to the agent, which goes on; a rejection without one ends the turn.
	Reason Opt[string] `json:"reason,omitzero" maxLength:"10000"`
	// Arguments replace those of the call.
	Arguments Opt[map[string]any] `json:"arguments,omitzero"`
	// Pattern is what "always" means; that of the question by default.
	Pattern Opt[string] `json:"pattern,omitzero" maxLength:"1000"`
}

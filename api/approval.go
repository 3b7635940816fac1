package api

import "encoding/json"

// Approval is a tool call that needs an approval.
type Approval struct {
	CallID string `json:"call_id"`
	// EventID is the number of the event with the call.
	EventID   int64           `json:"event_id"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	// Display is how the tool declares that the call is shown.
	Display Display `json:"display"`
	// Risk is -1 unknown, 0 low, 1 medium, 2 high.
	Risk   int    `json:"security_risk"`
	Reason string `json:"reason"`
	// Pattern is what "always" would allow, or null if there is no safe pattern.
	Pattern *string `json:"pattern"`
	// Deadline is when Default is applied, or null if there is no deadline.
	Deadline *string `json:"deadline"`
	Default  *string `json:"default"`
}

// Approvals are the pending calls and the patterns that are always allowed.
type Approvals struct {
	Pending []Approval `json:"pending"`
	Allowed []string   `json:"allowed"`
}

// Decision approves or rejects an Approval.
type Decision struct {
	// CallID defaults to the pending call.
	CallID Opt[string] `json:"call_id,omitzero" maxLength:"200"`
	// Decision is accept, reject, or always (accept this and all like it).
	Decision string `json:"decision" enum:"accept,reject,always"`
	// Reason is sent to the agent, which continues. A rejection without a reason ends
	// the turn.
	Reason Opt[string] `json:"reason,omitzero" maxLength:"10000"`
	// Arguments replace the arguments of the call.
	Arguments Opt[map[string]any] `json:"arguments,omitzero"`
	// Pattern is what "always" allows; by default, the pattern of the Approval.
	Pattern Opt[string] `json:"pattern,omitzero" maxLength:"1000"`
}

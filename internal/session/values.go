package session

import "math"

// Money is an amount in billionths of a US dollar: integers add up exactly.
type Money int64

// Dollars is for display and for JSON on the wire.
func (m Money) Dollars() float64 { return float64(m) / 1e9 }

// maxDollars is the largest amount that is accepted; it fits into Money.
const maxDollars = 9e9

// FromDollars is the one conversion from US dollars to Money: rounded to the nearest unit, but never from something to
// nothing, since a limit of 0 may mean no limit. What is negative or no number is 0, and what is too large the most there is.
func FromDollars(amount float64) Money {
	if !(amount > 0) { // also when it is no number
		return 0
	}
	return max(1, Money(math.Round(min(amount, maxDollars)*1e9)))
}

// Usage counts the tokens of one model call.
type Usage struct {
	Input      int64 `json:"input,omitempty"`
	Output     int64 `json:"output,omitempty"`
	CacheRead  int64 `json:"cache_read,omitempty"`
	CacheWrite int64 `json:"cache_write,omitempty"`
	Window     int64 `json:"window,omitempty"`
}

// Totals are a session's sums so far.
type Totals struct {
	Cost       Money  `json:"cost,omitempty"`
	Input      int64  `json:"input,omitempty"`
	Output     int64  `json:"output,omitempty"`
	CacheRead  int64  `json:"cache_read,omitempty"`
	CacheWrite int64  `json:"cache_write,omitempty"`
	Model      string `json:"model,omitempty"`
}

func (t Totals) plus(u Usage, cost Money) Totals {
	t.Cost += cost
	t.Input += u.Input
	t.Output += u.Output
	t.CacheRead += u.CacheRead
	t.CacheWrite += u.CacheWrite
	return t
}

// Risk is how dangerous a call was rated.
type Risk int

// The ratings, with the numbers that clients know.
const (
	RiskUnknown Risk = -1
	RiskLow     Risk = 0
	RiskMedium  Risk = 1
	RiskHigh    Risk = 2
)

// Outcome says how a tool call ended.
type Outcome string

// A call ends in exactly one of these ways.
const (
	Succeeded Outcome = "ok"
	FailedRun Outcome = "failed"    // the tool says no; the model can learn from it
	Cancelled Outcome = "cancelled" // stopped or paused before it ended
	Rejected  Outcome = "rejected"  // the person did not approve
	Unknown   Outcome = "unknown"   // the sandbox is gone, and the result with it
)

// AgentState is what the agent is doing, in the words that clients know.
type AgentState string

// The agent states.
const (
	AgentLoading      AgentState = "loading"
	AgentRunning      AgentState = "running"
	AgentAwaitingUser AgentState = "awaiting_user_input"
	AgentPaused       AgentState = "paused"
	AgentStopped      AgentState = "stopped"
	AgentFinished     AgentState = "finished"
	AgentRejected     AgentState = "rejected"
	AgentError        AgentState = "error"
	AgentAwaitingYes  AgentState = "awaiting_user_confirmation"
	AgentUserYes      AgentState = "user_confirmed"
	AgentUserNo       AgentState = "user_rejected"
	AgentRateLimited  AgentState = "rate_limited"
)

// Status is the conversation's state on the wire.
type Status string

// The statuses.
const (
	Starting Status = "STARTING"
	Running  Status = "RUNNING"
	Halted   Status = "STOPPED"
)

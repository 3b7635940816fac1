package check

import (
	"encoding/json"
	"fmt"
)

// Event is an event as a page of the API shows it.
type Event struct {
	ID      int64           `json:"id"`
	Kind    string          `json:"kind"`
	Payload json.RawMessage `json:"payload"`
	// Raw is the whole event as it was received.
	Raw string `json:"-"`
}

// Kinds of requests.
const (
	Create = "create" // Text is the first message
	Say    = "say"    // Text is the message
	Rename = "rename" // Text is the title
)

// Request is a request that changes a conversation. Texts are unique.
type Request struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
	// Acked says that the server confirmed the request. It may have been carried out without that.
	Acked bool `json:"acked"`
}

// Seen is an event that a follower received.
type Seen struct {
	ID  int64
	Raw string
}

// Follower is a client that follows a conversation after the event From, through all
// interruptions, until it has seen the last event of the log.
type Follower struct {
	Name string
	From int64
	Saw  []Seen
}

// Conversation is a conversation at its end.
type Conversation struct {
	ID    string
	Owner string
	// Requests are those of its user, in order.
	Requests []Request
	// Log has all events, from the pages of the API.
	Log []Event
	// State, LastEvent and Cost are what GET shows of the conversation.
	State     string
	LastEvent int64
	Cost      float64
	// Limit is its budget in US dollars, 0 if it has none.
	Limit     float64
	Followers []Follower
	// Marks are the lines that its commands left in the workspace.
	Marks []string
}

// Account is the money of a user, in US dollars.
type Account struct {
	User            string
	Spent, Reserved float64
	Limit           float64 // 0: none
	// Conversations is what the conversations of the user cost, from GET.
	Conversations float64
	// Billed is what the model charged for answers that it gave.
	Billed float64
}

// Machine is what is left when everything was deleted and the servers have ended.
type Machine struct {
	Sandboxes, Processes, Files, Groups []string
	// Goroutines and Descriptors of each server, shortly after its start and at the end, both without load.
	Goroutines, Descriptors []Growth
}

// Growth is a number at two times.
type Growth struct {
	Of            string
	Before, After int
}

// Violation is a broken rule.
type Violation struct {
	Rule         string `json:"rule"`
	Conversation string `json:"conversation,omitempty"`
	Detail       string `json:"detail"`
}

func (v Violation) String() string {
	if v.Conversation == "" {
		return v.Rule + ": " + v.Detail
	}
	return v.Rule + ": " + v.Conversation + ": " + v.Detail
}

// Rules.
const (
	RuleAcknowledged = "acknowledged"    // every acknowledged request is in the log
	RuleOnce         = "once"            // no request is in the log twice
	RuleNumbers      = "numbers"         // numbers only grow
	RuleFollowers    = "followers"       // every follower saw every event once
	RuleResults      = "results"         // each call has exactly one result
	RuleMarks        = "marks"           // each command left exactly one mark, or its outcome is unknown
	RuleMoney        = "money"           // budgets hold and nothing is lost
	RuleRest         = "rest"            // all conversations come to rest
	RuleDeleted      = "deleted"         // a deleted conversation stays deleted
	RuleOrphans      = "orphans"         // nothing is left
	RuleRefused      = "refused"         // a good request is not refused
	RuleUnavailable  = "never available" // the server is available again after a fault
)

// Rules lists all rules with their meaning.
var Rules = [][2]string{
	{RuleAcknowledged, "every acknowledged request is in the log"},
	{RuleOnce, "no request is in the log twice"},
	{RuleNumbers, "event numbers only grow, and a stored event never changes"},
	{RuleFollowers, "every follower saw every event once, in order, and nothing else"},
	{RuleResults, "each call has exactly one result"},
	{RuleMarks, "a command with exit code 0 left exactly one mark, any other at most one, and none ran that is not in the log"},
	{RuleMoney, "budgets hold; costs, ledger and the model's bill agree"},
	{RuleRest, "all conversations come to rest, with nothing open and no message unread"},
	{RuleDeleted, "a deleted conversation stays deleted"},
	{RuleOrphans, "no orphan sandbox, process, file, control group, goroutine or descriptor"},
	{RuleRefused, "a valid request is not refused"},
	{RuleUnavailable, "the server accepts writes again after each fault"},
}

// collector collects violations of one conversation.
type collector struct {
	conversation string
	found        []Violation
}

func (c *collector) add(rule, format string, args ...any) {
	c.found = append(c.found, Violation{rule, c.conversation, fmt.Sprintf("%.1000s", fmt.Sprintf(format, args...))})
}

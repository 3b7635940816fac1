// Package llm is the port to language models: one small interface, the request
// and the parts of a streamed answer, and the classes of what can go wrong.
// Adapters live in the folders below and know nothing of each other.
package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"
)

// Model answers requests.
type Model interface {
	// Stream makes one call. It yields parts in order and ends with a part whose
	// Done is set, or with an error (an *Error where the provider said why).
	// When ctx ends or the consumer stops, the call is aborted at the provider.
	Stream(ctx context.Context, req Request) iter.Seq2[Part, error]
}

// Request is what the model is shown.
type Request struct {
	Model    string
	System   string
	Messages []Message
	Tools    []Tool
	// MaxOutput is how many tokens the answer may have.
	MaxOutput int64
}

// Tool is something the model may ask to have done.
type Tool struct {
	Name        string
	Description string
	// Schema is the JSON schema of its arguments.
	Schema json.RawMessage
}

// Call is the model asking for it.
type Call struct {
	ID   string
	Name string
	Args json.RawMessage
}

// Role says who speaks in a Message.
type Role string

// The roles.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	// ToolResult is the result of the call that Message.Call names.
	ToolResult Role = "tool"
)

// Message is one contribution to the conversation.
type Message struct {
	Role   Role
	Text   string
	Images []string
	// Calls are what an Assistant message asks for. Each has a ToolResult before
	// the next message of anybody else.
	Calls []Call
	// Call is whose result a ToolResult is; Failed says that it is a failure.
	Call   string
	Failed bool
}

// Part is a piece of an answer; exactly one field is set.
type Part struct {
	Text      string
	Reasoning string
	// Call is a tool call, whole.
	Call *Call
	Done *Done
}

// Done ends an answer.
type Done struct {
	Usage Usage
	// Raw is what the provider needs to see again, opaque to everybody else.
	Raw json.RawMessage
}

// Usage counts tokens as the provider reports them.
type Usage struct{ Input, Output, CacheRead, CacheWrite, Window int64 }

// Class is why a call failed.
type Class string

// The classes.
const (
	ClassAuth     Class = "auth"
	ClassRate     Class = "rate"
	ClassOverload Class = "overload"
	ClassContext  Class = "context"
	ClassPolicy   Class = "policy"
	ClassCredit   Class = "credit"
	ClassNetwork  Class = "network"
	ClassInternal Class = "internal"
)

// Error is a failed call, classified.
type Error struct {
	Class      Class
	Message    string
	RetryAfter time.Duration
}

func (e *Error) Error() string { return fmt.Sprintf("model call failed (%s): %s", e.Class, e.Message) }

// Config is how a user reaches a model.
type Config struct {
	Model   string
	APIKey  string
	BaseURL string
}

// Provider is the part before the first slash, in lower case.
func (c Config) Provider() string {
	p, _, _ := strings.Cut(c.Model, "/")
	return strings.ToLower(p)
}

// NeedsKey reports whether the model cannot be called without a key. The
// built-in one can, and so can what runs on the user's own address.
func (c Config) NeedsKey() bool {
	switch c.Provider() {
	case "scripted":
		return false
	case "ollama", "bedrock", "lemonade":
		return false
	}
	return c.BaseURL == ""
}

// Price is what a million tokens cost, in US dollars.
type Price struct {
	Input  float64 `json:"input" yaml:"input"`
	Output float64 `json:"output" yaml:"output"`
}

// UnavailableError says that this build has no adapter for a model.
type UnavailableError struct{ Model string }

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("this version of Deckhand has no adapter for the model %q; the built-in scripted/demo works without a key", e.Model)
}

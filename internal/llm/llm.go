// Package llm is the port to language models: one small interface, the request
// and the parts of a streamed answer, and the classes of what can go wrong.
// Adapters live in the folders below and know nothing of each other.
package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"time"
)

// Model answers requests.
type Model interface {
	// Stream makes one call. It yields parts in order and ends with a part whose
	// Done is set, or with an error (an *Error where the provider said why).
	// When ctx ends or the consumer stops, the call is aborted at the provider.
	// It never tries again by itself: that is the loop's decision, for it is recorded.
	Stream(ctx context.Context, req Request) iter.Seq2[Part, error]
}

// Request is what the model is shown. Messages only grow from one request of a
// conversation to the next, so that providers find the prefix in their caches.
type Request struct {
	Model    string
	System   string
	Messages []Message
	Tools    []Tool
	// MaxOutput is how many tokens the answer may have.
	MaxOutput int64
	// Conversation is a name under which providers may keep the prefix.
	Conversation string
	// Stop are texts at which the answer ends. An adapter whose wire has no place
	// for them leaves them out: whoever sets them must be able to do without.
	Stop []string
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
	// Args is the JSON object that the model wrote. What it wrote that is not JSON
	// is kept as a JSON string, for it to learn from.
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
	Role Role
	Text string
	// Aside marks what a User message has from us and not from the person: the
	// surroundings, a summary. Providers do not see the difference.
	Aside bool
	// Images are data: URLs; what stands at other addresses was fetched before.
	// A ToolResult may have some too.
	Images []string
	// Calls are what an Assistant message asks for. Each has a ToolResult before
	// the next message of anybody else.
	Calls []Call
	// Call is whose result a ToolResult is, and Name the tool's; Failed says that
	// it is a failure.
	Call   string
	Name   string
	Failed bool
	// Raw is the Done.Raw of an Assistant message. An adapter that does not
	// recognise it as its own ignores it: people change models.
	Raw json.RawMessage
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
	// Cut says that the answer reached MaxOutput before its end.
	Cut bool
	// Raw is what the provider needs to see again (signatures, ids), opaque to
	// everybody else. It begins with {"from":"NAME OF THE ADAPTER".
	Raw json.RawMessage
}

// Usage counts tokens as the provider reports them. Input are all that were
// read, those from a cache (CacheRead) and those put there (CacheWrite)
// included; Output all that were written, reasoning included. Window is the
// model's context window, 0 if it is not known.
type Usage struct{ Input, Output, CacheRead, CacheWrite, Window int64 }

// Class is why a call failed.
type Class string

// The classes.
const (
	ClassAuth     Class = "auth"     // the key is wrong, missing or may not use this model
	ClassRate     Class = "rate"     // too many requests or tokens
	ClassOverload Class = "overload" // the provider says it is unavailable (503, 529, 502, 504)
	ClassContext  Class = "context"  // the request does not fit into the context window
	ClassPolicy   Class = "policy"   // refused for what it is about
	ClassCredit   Class = "credit"   // the account or the proxy's budget is used up
	ClassNetwork  Class = "network"  // no connection, or it ended in the middle of the answer
	ClassInternal Class = "internal" // the provider failed (500), or wrote what nobody can read
	ClassRequest  Class = "request"  // the provider does not accept the request (400, 404, 422)
)

// Error is a failed call, classified. Message is for people: the provider's own
// words where it gave some, never with the key in them.
type Error struct {
	Class      Class
	Message    string
	RetryAfter time.Duration // what the provider asked for, 0 if it did not
	// Began says that a part of the answer had come, so that the call may have
	// cost something; Unsent that the request never left, so that it cannot have.
	Began  bool
	Unsent bool
	// Final says that trying again cannot help, whatever the class.
	Final bool
}

func (e *Error) Error() string { return fmt.Sprintf("model call failed (%s): %s", e.Class, e.Message) }

// Retry reports whether the same call may succeed later.
func (e *Error) Retry() bool {
	switch e.Class {
	case ClassRate, ClassOverload, ClassNetwork, ClassInternal:
		return !e.Final
	}
	return false
}

// Config is how a user reaches a model.
type Config struct {
	// Model is "provider/name", as the settings have it.
	Model   string
	APIKey  string
	BaseURL string
	// Client makes the requests; it checks every address it dials.
	Client *http.Client
}

// Provider is the part before the first slash, in lower case.
func (c Config) Provider() string {
	p, _, _ := strings.Cut(c.Model, "/")
	return strings.ToLower(p)
}

// NeedsKey reports whether the model cannot be called without a key. The
// built-in ones and recordings can, and so can what runs on the user's own address.
func (c Config) NeedsKey() bool {
	switch c.Provider() {
	case "scripted", "cassette":
		return false
	case "ollama", "bedrock", "lemonade":
		return false
	}
	return c.BaseURL == ""
}

// Info is what is known of a model before it is called.
type Info struct {
	// Window and MaxOutput are in tokens, 0 if they are not known.
	Window    int64
	MaxOutput int64
	Price     Price
	// Priced is false when nobody said what the model costs.
	Priced bool
	// Tools is false for a model that has no native tool calling, Images for one
	// that cannot see, Thinks for one that does not reason before it answers.
	Tools  bool
	Images bool
	Thinks bool
}

// Price is what a million tokens cost, in US dollars.
type Price struct {
	Input      float64 `yaml:"input"`
	Output     float64 `yaml:"output"`
	CacheRead  float64 `yaml:"cache_read"`
	CacheWrite float64 `yaml:"cache_write"`
}

// UnavailableError says that this build has no way to a model. Reason, if there
// is one, says what is missing.
type UnavailableError struct{ Model, Reason string }

func (e *UnavailableError) Error() string {
	if e.Reason != "" {
		return fmt.Sprintf("Deckhand cannot reach the model %q: %s", e.Model, e.Reason)
	}
	return fmt.Sprintf("unknown model %q: use provider/model, or set llm_base_url to an OpenAI-compatible server; the built-in scripted/demo works without a key", e.Model)
}

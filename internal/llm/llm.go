// Package llm is the port to language models: one small interface, the request, the parts
// of a streamed response, and the classes of errors. Adapters are in the folders below
// and do not know each other.
package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Model is a language model.
type Model interface {
	// Stream makes one call. It yields parts in order and ends with a part whose Done is
	// set, or with an error (an *Error if the provider gave a reason). When ctx ends or
	// the consumer stops, the call is aborted at the provider. It never retries: the
	// loop decides about that, because every attempt is recorded.
	Stream(ctx context.Context, req Request) iter.Seq2[Part, error]
}

// Request is the input of a model call. From one request of a conversation to the next,
// Messages only grows, so that the prefix can be cached by the provider.
type Request struct {
	Model    string
	System   string
	Messages []Message
	Tools    []Tool
	// MaxOutput is the maximum number of tokens of the response.
	MaxOutput int64
	// Calling is called when the response begins to call a tool, with its name: often long before the call
	// is complete. It must not block. Adapters that hear of complete calls only do not call it; it may be nil.
	Calling func(tool string)
	// Conversation is a cache key for the prefix.
	Conversation string
	// Stop are the stop sequences. An adapter whose API does not support them ignores
	// them, so callers must not depend on them.
	Stop []string
	// Written is what adapters remember of the conversation's last request; nil for nothing.
	Written *Written
	// Fitted names the changes that were made to Messages for this model.
	Fitted string
}

// Tool is a tool that the model may call.
type Tool struct {
	Name        string
	Description string
	// Schema is the JSON schema of its arguments.
	Schema json.RawMessage
}

// Call is a tool call of the model.
type Call struct {
	ID   string
	Name string
	// Args is the JSON object that the model wrote. Invalid JSON is kept as a JSON
	// string, so that the model can learn from it.
	Args json.RawMessage
}

// Role is the author of a Message.
type Role string

// The roles.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	// ToolResult is the result of the call that Message.Call names.
	ToolResult Role = "tool"
)

// Message is one message of the conversation.
type Message struct {
	Role Role
	Text string
	// Aside marks a User message from Deckhand instead of the user: the environment, a
	// summary. Providers do not see the difference.
	Aside bool
	// Images are data: URLs; images at other URLs were fetched before. A ToolResult may
	// have images too.
	Images []string
	// Calls are the tool calls of an Assistant message. Each has a ToolResult before the
	// next other message.
	Calls []Call
	// Call is the call that a ToolResult belongs to, and Name its tool; Failed marks a
	// failure.
	Call   string
	Name   string
	Failed bool
	// Raw is the Done.Raw of an Assistant message. An adapter ignores the Raw of another
	// one, because users change models.
	Raw json.RawMessage
}

// Part is a part of a response; exactly one field is set.
type Part struct {
	Text      string
	Reasoning string
	// Call is a complete tool call.
	Call *Call
	Done *Done
}

// Done ends a response.
type Done struct {
	Usage Usage
	// Cut is set if the response was truncated at MaxOutput.
	Cut bool
	// Raw is what the provider must get back (signatures, IDs), opaque to all other code. It
	// begins with {"from":"NAME OF THE ADAPTER".
	Raw json.RawMessage
}

// Usage counts tokens as the provider reports them. Input is all input, including tokens
// read from a cache (CacheRead) and written to it (CacheWrite); Output includes
// reasoning. Window is the model's context window, or 0 if unknown.
type Usage struct{ Input, Output, CacheRead, CacheWrite, Window int64 }

// Class is the class of an error.
type Class string

// The classes.
const (
	ClassAuth     Class = "auth"     // the key is wrong, missing or may not use this model
	ClassRate     Class = "rate"     // too many requests or tokens
	ClassOverload Class = "overload" // the provider says it is unavailable (503, 529, 502, 504)
	ClassContext  Class = "context"  // the request does not fit into the context window
	ClassPolicy   Class = "policy"   // rejected by a content policy
	ClassCredit   Class = "credit"   // the account or the proxy's budget is used up
	ClassNetwork  Class = "network"  // no connection, or it was lost during the response
	ClassInternal Class = "internal" // the provider failed (500), or sent an invalid response
	ClassRequest  Class = "request"  // the provider does not accept the request (400, 404, 422)
)

// Error is a classified error of a call. Message is for users: the provider's message if
// there is one, never with the key.
type Error struct {
	Class      Class
	Message    string
	RetryAfter time.Duration // as requested by the provider, or 0
	// Began is set if a part of the response was received, so the call may have cost
	// something; Unsent if the request was never sent, so it cannot have.
	Began  bool
	Unsent bool
	// Final is set if a retry cannot help, whatever the class.
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
	// Effort is how much the model reasons: low, medium or high; "" for the provider's default.
	Effort string
	// Client makes the requests; it checks every address that it dials.
	Client *http.Client
}

// Provider returns the part before the first slash, in lower case.
func (c Config) Provider() string {
	p, _, _ := strings.Cut(c.Model, "/")
	return strings.ToLower(p)
}

// NeedsKey reports whether the model needs a key. Built-in models, recordings and models
// at a user's own URL do not.
func (c Config) NeedsKey() bool {
	switch c.Provider() {
	case "scripted", "cassette":
		return false
	case "ollama", "ollama_chat", "lmstudio", "lm_studio", "vllm", "hosted_vllm", "lemonade":
		return false
	case "bedrock", "bedrock_converse": // without a base URL, that is what is missing
		return c.at(".amazonaws.com")
	case "vertexai", "vertex_ai":
		return c.BaseURL == "" || c.at(".googleapis.com")
	}
	return c.BaseURL == ""
}

// at reports whether the host of the base URL has this suffix.
func (c Config) at(end string) bool {
	u, err := url.Parse(c.BaseURL)
	return err == nil && strings.HasSuffix(strings.ToLower(u.Hostname()), end)
}

// Info is what is known about a model before it is called.
type Info struct {
	// Window and MaxOutput are in tokens, 0 if unknown.
	Window    int64
	MaxOutput int64
	Price     Price
	// Priced is false if the price is unknown.
	Priced bool
	// Tools is native tool calling, Images is image input, and Thinks is reasoning
	// before the response.
	Tools  bool
	Images bool
	Thinks bool
}

// Price is the price of a million tokens in US dollars.
type Price struct {
	Input      float64 `yaml:"input"`
	Output     float64 `yaml:"output"`
	CacheRead  float64 `yaml:"cache_read"`
	CacheWrite float64 `yaml:"cache_write"`
}

// UnavailableError means that a model cannot be reached by this build. Reason, if set,
// says what is missing.
type UnavailableError struct{ Model, Reason string }

func (e *UnavailableError) Error() string {
	if e.Reason != "" {
		return fmt.Sprintf("Deckhand cannot reach the model %q: %s", e.Model, e.Reason)
	}
	return fmt.Sprintf("unknown model %q: use provider/model with a known provider, or set the base URL of an OpenAI-compatible server for this provider; the built-in scripted/demo works without a key", e.Model)
}

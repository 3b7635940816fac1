// Package llmtest is a model server for tests and benchmarks: real HTTP in each
// provider's own wire format, streaming included, with answers from a script.
// It also breaks on demand, in the ways that providers do.
package llmtest

import (
	"net/http"
	"testing"
	"time"

	"deckhand/internal/llm"
)

// Wire is a provider's format.
type Wire string

// The wires.
const (
	Chat      Wire = "chat"      // OpenAI chat completions: POST /v1/chat/completions
	Responses Wire = "responses" // OpenAI responses: POST /v1/responses
	Anthropic Wire = "anthropic" // Anthropic messages: POST /v1/messages
	Gemini    Wire = "gemini"    // Gemini: POST /v1beta/models/NAME:streamGenerateContent?alt=sse
)

// Reply is one answer of the script. The zero value is an empty answer.
type Reply struct {
	Text      string
	Reasoning string
	Calls     []llm.Call
	// Usage is reported as the provider would; zero counts are made up.
	Usage llm.Usage
	// Cut says that the answer reached the limit on its length.
	Cut bool

	// Status other than 0 and 200 is an error, in the wire's own shape, with this
	// Code (the wire's name for the kind of error) and Message, and Retry-After if
	// RetryAfter is set. Body, if set, is sent as it is instead. Where there is no
	// error, Code is why an Anthropic or Gemini answer ended, if not as usual.
	Status     int
	Code       string
	Message    string
	RetryAfter string
	Body       string

	// Break ends the stream in one of the ways below after half of its fragments.
	Break Break
	// Delay comes before the first byte, Pause between two fragments.
	Delay time.Duration
	Pause time.Duration
	// Fragment is how many bytes of text a fragment has (default 8).
	Fragment int
}

// Break is a way in which a stream goes wrong.
type Break string

// The ways.
const (
	Drop      Break = "drop"      // the connection is closed
	EndEarly  Break = "end"       // the stream ends properly, but without its last frames
	Malformed Break = "malformed" // a frame is not JSON
	Hang      Break = "hang"      // nothing comes any more, until the client goes away
	ErrorLate Break = "error"     // an error frame as the provider sends them inside a stream
)

// Asked is a request as the server understood it.
type Asked struct {
	Wire   Wire
	Model  string
	Stream bool
	System string
	// Messages are as the adapter was given them, as far as the wire can say it.
	Messages []llm.Message
	Tools    []string
	Header   http.Header
	Body     []byte
	// Gone is closed when the client has gone away.
	Gone <-chan struct{}

	countsWanted bool // the client asked for a frame with the usage
	sealWanted   bool // the client asked for reasoning that it can give back
}

// Server is a running model server.
type Server struct {
	// URL is its address, without a path.
	URL string

	state
}

// New starts a server for a test. answer is called for each request and may
// block; it is called concurrently.
func New(t testing.TB, answer func(Asked) Reply) *Server {
	t.Helper()
	s := Start(answer)
	t.Cleanup(s.Close)
	return s
}

// Script answers with the replies in turn, and then repeats the last one.
func Script(replies ...Reply) func(Asked) Reply {
	next := make(chan int, 1)
	next <- 0
	return func(Asked) Reply {
		n := <-next
		defer func() { next <- min(n+1, len(replies)-1) }()
		return replies[n]
	}
}

// Config is how to reach the server with a model of this wire.
func (s *Server) Config(w Wire, name string) llm.Config {
	switch w {
	case Anthropic:
		return llm.Config{Model: "anthropic/" + name, APIKey: "test-key", BaseURL: s.URL}
	case Gemini:
		return llm.Config{Model: "gemini/" + name, APIKey: "test-key", BaseURL: s.URL}
	case Responses:
		return llm.Config{Model: "openai/responses/" + name, APIKey: "test-key", BaseURL: s.URL + "/v1"}
	}
	return llm.Config{Model: "openai/" + name, APIKey: "test-key", BaseURL: s.URL + "/v1"}
}

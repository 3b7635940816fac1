// Package tool is the port to what an agent can do: each tool is a folder
// below with its text for the model beside its code. Tools work in a sandbox,
// never on the machine of the server.
package tool

import (
	"context"
	"encoding/json"

	"deckhand/internal/sandbox"
)

// Spec is what the model is told of a tool.
type Spec struct {
	Name        string
	Description string
	// Schema is the JSON schema of the arguments.
	Schema json.RawMessage
}

// Call is one use of a tool.
type Call struct {
	// ID is the same when the call is made again after a restart; the sandbox
	// then gives the result of the first one.
	ID    string
	Again bool
	Args  json.RawMessage
	// Live takes output while it comes; may be nil.
	Live func([]byte)
}

// Result is what a call gave.
type Result struct {
	Text string
	// Failed says that the tool could not do what was asked; the model learns from the text.
	Failed bool
	// Unknown says that nobody can tell whether it was done.
	Unknown bool
	// Details are what a tool says beside its text.
	Details json.RawMessage
}

// Tool is something an agent can do.
type Tool interface {
	Spec() Spec
	// Run does the call in the sandbox. An error is not the model's business: the
	// sandbox was lost, or ctx ended.
	Run(ctx context.Context, box *sandbox.Sandbox, call Call) (Result, error)
}

// Package think is the tool with which a model thinks aloud: what it thought
// stands in the log, and nothing else happens.
package think

import (
	"context"
	_ "embed"
	"strings"

	"deckhand/internal/tool"
)

//go:embed think.md
var description string

//go:embed schema.json
var schema []byte

// Tool implements tool.Tool.
type Tool struct{}

// Name is the tool's.
const Name = "think"

// Spec implements tool.Tool.
func (Tool) Spec() tool.Spec {
	return tool.Spec{Name: Name, Description: strings.TrimSpace(description), Schema: schema, Harmless: true}
}

// heard is all that a thought gets for an answer.
const heard = "Your thought has been logged."

type args struct {
	Thought *string `json:"thought"`
}

// Run implements tool.Tool. The thought is in the call; the result only says
// that it was heard.
func (Tool) Run(_ context.Context, _ tool.Box, call tool.Call) (tool.Result, error) {
	var a args
	if err := call.Into(&a); err != nil {
		return tool.Failf("This call is not valid: %v.", err), nil
	}
	if a.Thought == nil {
		return tool.Failf("The argument thought is missing."), nil
	}
	return tool.Result{Text: heard}, nil
}

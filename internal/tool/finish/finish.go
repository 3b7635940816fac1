// Package finish is the tool with which a model says that its task is done, or
// that it cannot go on.
package finish

import (
	"context"
	_ "embed"
	"strings"

	"deckhand/internal/tool"
)

//go:embed finish.md
var description string

//go:embed schema.json
var schema []byte

// Tool implements tool.Tool.
type Tool struct{}

// Name is the tool's.
const Name = "finish"

// Spec implements tool.Tool.
func (Tool) Spec() tool.Spec {
	return tool.Spec{Name: Name, Description: strings.TrimSpace(description), Schema: schema, Harmless: true}
}

type args struct {
	Message *string `json:"message"`
}

// Run implements tool.Tool.
func (Tool) Run(_ context.Context, _ tool.Box, call tool.Call) (tool.Result, error) {
	var a args
	if err := call.Into(&a); err != nil {
		return tool.Failf("This call is not valid: %v.", err), nil
	}
	if a.Message == nil {
		return tool.Failf("The argument message is missing: say what was done, and what was not."), nil
	}
	return tool.Result{Text: *a.Message, Ends: true}, nil
}

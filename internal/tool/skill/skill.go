// Package skill is the tool with which the agent reads a skill: instructions for one kind
// of task. The prompt only has a line about each skill, and skills of the server and of
// users are not in the sandbox.
package skill

import (
	"context"
	_ "embed"
	"errors"
	"io/fs"
	"strings"

	"deckhand/internal/sandbox"
	"deckhand/internal/tool"
)

//go:embed skill.md
var description string

//go:embed schema.json
var schema []byte

// Name is the tool's.
const Name = "skill"

// Read gives the text of a skill, or of one of its files if file is not empty.
// What is not there is fs.ErrNotExist, in words for the agent.
type Read func(ctx context.Context, session, owner, name, file string) (string, error)

// Tool implements tool.Tool.
type Tool struct{ read Read }

// New makes the tool.
func New(read Read) *Tool { return &Tool{read} }

// Spec implements tool.Tool.
func (*Tool) Spec() tool.Spec {
	return tool.Spec{Name: Name, Description: strings.TrimSpace(description), Schema: schema, ReadOnly: true, Harmless: true}
}

type args struct {
	Name string `json:"name"`
	File string `json:"file"`
}

// Run implements tool.Tool. Reading twice does no harm, so a repeated call is
// like any other, and it does not need the sandbox to run.
func (t *Tool) Run(ctx context.Context, _ tool.Box, call tool.Call) (tool.Result, error) {
	var a args
	if err := call.Into(&a); err != nil {
		return tool.Failf("This call is not valid: %v.", err), nil
	}
	if a.Name == "" {
		return tool.Failf("name is the skill to be read."), nil
	}
	text, err := t.read(ctx, call.Session, call.Owner, a.Name, a.File)
	switch {
	case err == nil:
		return tool.Result{Text: text}, nil
	case ctx.Err() != nil, errors.Is(err, sandbox.ErrLost), errors.Is(err, sandbox.ErrGone):
		return tool.Result{}, err
	case errors.Is(err, fs.ErrNotExist):
		return tool.Failf("%v", err), nil
	}
	return tool.Failf("The skill cannot be read."), nil // no details: they would name paths of the server
}

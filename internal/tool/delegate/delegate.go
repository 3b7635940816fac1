// Package delegate is the tool that has a task done by an agent of its own, in a
// conversation of its own with its own log, in the same workspace. What that may cost is
// set aside from the budget of the one who asks. The loop does what the tool stands for.
package delegate

import (
	"context"
	_ "embed"
	"strings"

	"deckhand/internal/risk"
	"deckhand/internal/tool"
	"deckhand/internal/v0/form"
)

//go:embed delegate.md
var description string

//go:embed schema.json
var schema []byte

// Tool implements tool.Tool. The loop knows it by its type.
type Tool struct{}

// Name is the tool's.
const Name = "delegate"

// Descriptor is what others know of the tool.
var Descriptor = tool.Descriptor{
	Name:    Name,
	Open:    func(tool.Server) tool.Tool { return Tool{} },
	Offered: func(c tool.Conversation) bool { return c.Delegates },
	Rate:    risk.Fixed(risk.Medium, "It hands a task to another agent."),
	Legacy: &form.Form{Action: action, Observe: observe, Actions: map[string]form.Action{
		"delegate": {Means: []string{"agent", "inputs"}, Read: leftOut},
	}},
	Display: tool.Display{Content: tool.Delegated},
}

// Spec implements tool.Tool.
func (Tool) Spec() tool.Spec {
	return tool.Spec{Name: Name, Description: strings.TrimSpace(description), Schema: schema}
}

// Run implements tool.Tool. The loop never calls it.
func (Tool) Run(context.Context, tool.Box, tool.Call) (tool.Result, error) {
	return tool.Result{Failed: true, Text: "Nothing can be delegated here."}, nil
}

func action(w *form.Writer, c form.Call) {
	agent := c.Given.Text("agent")
	w.Call(c, "delegate", "I'm asking "+agent+" for help with this task.")
	w.Str("agent", agent)
	w.Object("inputs", c.Given["inputs"])
	w.Str("thought", c.Thought)
	w.Waits(c)
	w.Shut('}')
}

func observe(w *form.Writer, r form.Result) {
	w.Result(r, "delegate", r.Output, r.Output)
	w.Object("outputs", form.Details[form.DelegateDetails](r.Details).Outputs)
	w.Shut('}')
}

// leftOut: what the other agent did is recorded with its own actions.
func leftOut(*form.Writer, form.Recorded) error {
	return form.LeftOut("A recorded delegation was left out: what the other agent did follows in the recording, or is not known.")
}

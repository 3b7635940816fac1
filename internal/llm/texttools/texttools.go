// Package texttools gives tools to models that cannot call any by themselves.
// The tools are described in the system prompt, the model writes its calls as
// tags into its text, and the results go back to it as what a person says:
//
//	<call tool="execute_bash">
//	<arg name="command">make test</arg>
//	</call>
//
// Values stand between the tags as they are, over as many lines as they need:
// small models fail at escaping sooner than at anything else.
package texttools

import (
	"context"
	"iter"

	"deckhand/internal/llm"
)

// Wrap makes a model with tools of one without.
func Wrap(m llm.Model) llm.Model { return &model{m} }

type model struct{ inner llm.Model }

// Stream implements llm.Model.
func (m *model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Part, error] {
	tools := req.Tools
	req.Messages, req.Written = messages(req.Messages), nil
	if len(tools) == 0 {
		return m.inner.Stream(ctx, req)
	}
	req.System = system(req.System, tools)
	req.Tools = nil
	req.Stop = append(req.Stop[:len(req.Stop):len(req.Stop)], openResult)
	return func(yield func(llm.Part, error) bool) {
		a := &answer{schemas: schemas(tools), yield: yield}
		for p, err := range m.inner.Stream(ctx, req) {
			if !a.take(p, err) {
				return
			}
		}
	}
}

// answer turns the parts of the inner model into those of the outer one.
type answer struct {
	parser  parser
	schemas map[string]schema
	yield   func(llm.Part, error) bool
}

// take passes a part on, and reports whether to go on.
func (a *answer) take(p llm.Part, err error) bool {
	switch {
	case err != nil:
		a.yield(llm.Part{}, err)
		return false
	case p.Text != "":
		return a.say(a.parser.feed(p.Text))
	case p.Done != nil:
		return a.say(a.parser.end()) && a.yield(p, nil)
	}
	return a.yield(p, nil)
}

// say yields what the parser found.
func (a *answer) say(found []found) bool {
	for _, f := range found {
		p := llm.Part{Text: f.text}
		if f.call {
			call := f.read(a.schemas)
			p = llm.Part{Call: &call}
		}
		if !a.yield(p, nil) {
			return false
		}
	}
	return true
}

package v0

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"

	stdjson "encoding/json"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"deckhand/internal/session"
	"deckhand/internal/tool"
	"deckhand/internal/v0/form"
)

// bad refuses a part of the event.
func (e replayItem) bad(field, message string) error {
	return &ReplayError{Item: e.index, Field: field, Message: message}
}

// args are the action's; an action without any has none.
func (e replayItem) args() (arguments, error) {
	var a arguments
	switch e.Args.Kind() {
	case '{':
		if json.Unmarshal(e.Args, &a) == nil {
			return a, nil
		}
	case 'n', 0:
		return a, nil
	}
	return nil, e.bad("args", "Must be an object.")
}

// str is an argument that must be there and be a string.
func (e replayItem) str(a arguments, name string) (string, error) {
	if form.KindOf(a[name]) != '"' {
		return "", e.bad("args."+name, "Must be a string.")
	}
	return form.Details[string](a[name]), nil
}

// list is an argument that may be missing, and else is a list of strings that pass check.
func (e replayItem) list(a arguments, name string, most int, check func(string) (typ, msg string)) ([]string, error) {
	if k := form.KindOf(a[name]); k == 0 || k == 'n' {
		return nil, nil
	}
	var out []string
	if json.Unmarshal(a[name], &out) != nil {
		return nil, e.bad("args."+name, "A list of strings is expected.")
	}
	if len(out) > most {
		return nil, e.bad("args."+name, "A message has at most "+decimal(most)+" of these.")
	}
	for i, s := range out {
		if typ, msg := check(s); typ != "" {
			return nil, e.bad(fmt.Sprintf("args.%s[%d]", name, i), msg)
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	return out, nil
}

// metadata is what an event says of the model's answer behind it.
type metadata struct {
	name, id, answer, content string
	arguments                 stdjson.RawMessage
	calls                     int64
}

// metadata reads as much as is there; nothing depends on it.
func (e replayItem) metadata() (m metadata, ok bool) {
	var raw struct {
		Name     jsontext.Value `json:"function_name"`
		ID       jsontext.Value `json:"tool_call_id"`
		Calls    jsontext.Value `json:"total_calls_in_response"`
		Response jsontext.Value `json:"model_response"`
	}
	if e.Metadata.Kind() != '{' || json.Unmarshal(e.Metadata, &raw) != nil {
		return m, false
	}
	m.name, m.id = text(raw.Name), text(raw.ID)
	m.calls, _ = whole(raw.Calls)
	type toolCall struct {
		ID       string `json:"id"`
		Function struct {
			Arguments string `json:"arguments"`
		} `json:"function"`
	}
	var response struct {
		ID      string `json:"id"`
		Choices []struct {
			Message struct {
				Content jsontext.Value `json:"content"`
				Calls   []toolCall     `json:"tool_calls"`
			} `json:"message"`
		} `json:"choices"`
	}
	if raw.Response.Kind() != '{' || json.Unmarshal(raw.Response, &response) != nil || len(response.Choices) == 0 {
		return m, m.name != ""
	}
	m.answer, m.content = response.ID, text(response.Choices[0].Message.Content)
	for _, c := range response.Choices[0].Message.Calls {
		if c.ID == m.id {
			m.arguments = stdjson.RawMessage(c.Function.Arguments)
			if !jsontext.Value(m.arguments).IsValid() { // the model wrote no JSON
				m.arguments = stdjson.RawMessage(form.AppendString(nil, c.Function.Arguments))
			}
		}
	}
	return m, m.name != ""
}

// agrees reports whether the call that the metadata tell of is the action: encoded
// again, it says the same. A recording must not do another thing than it shows.
func (m metadata) agrees(action string, args arguments) bool {
	if m.arguments == nil {
		return false
	}
	names := []string{"name", "arguments"}
	if action != foreignAction {
		_, a, known := tool.ForAction(action)
		if !known {
			return false
		}
		names = a.Means
	}
	f := toolCalled(session.Event{}, session.ToolCalled{ToolCall: session.ToolCall{ID: m.id, Name: m.name, Args: m.arguments}})
	var again struct {
		Action string    `json:"action"`
		Args   arguments `json:"args"`
	}
	if json.Unmarshal(f.JSON, &again) != nil || again.Action != action {
		return false
	}
	for _, name := range names {
		var a, b any
		if len(args[name]) > 0 && json.Unmarshal(args[name], &a) != nil || len(again.Args[name]) > 0 && json.Unmarshal(again.Args[name], &b) != nil || !reflect.DeepEqual(a, b) {
			return false
		}
	}
	return true
}

// call takes over an action that is the call of a tool.
func (r *replay) call(e replayItem, action string, args arguments) error {
	m, told := e.metadata()
	name, raw, err := e.tool(action, args)
	var left form.LeftOut
	if err != nil && !errors.As(err, &left) {
		return err
	}
	switch {
	case told && m.agrees(action, args) && !tool.Describe(m.name).Retired:
		name, raw = m.name, m.arguments
	case left != "":
		r.note(string(left))
		return nil
	}
	said := m.content
	if action != "think" { // whose thought is what it is about
		said = form.Or(said, args.Text("thought"))
	}
	r.calls++
	id := "replay-" + strconv.Itoa(r.calls)
	same := told && m.answer != "" && m.calls > 1 && m.answer == r.answer
	if !same {
		r.add(e, Recorded{Text: said})
		r.answer, r.at = m.answer, len(r.steps)-1
	}
	step := &r.steps[r.at]
	if told && callName.MatchString(m.id) && !step.has(m.id) {
		id = m.id
	}
	step.Calls = append(step.Calls, session.ToolCall{ID: id, Name: name, Args: raw})
	step.Ends = step.Ends || action == "finish"
	return nil
}

// callName is what an id of a call may look like to be taken over.
var callName = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,128}$`)

func (s *Recorded) has(call string) bool {
	for _, c := range s.Calls {
		if c.ID == call {
			return true
		}
	}
	return false
}

// foreignAction is a call of a tool that is not ours.
const foreignAction = "call_tool_mcp"

// tool maps an action to the call that does it today. An error is a *ReplayError, or
// form.LeftOut for an action that nothing is called for.
func (e replayItem) tool(action string, args arguments) (name string, raw stdjson.RawMessage, err error) {
	if action == foreignAction {
		return e.foreign(args)
	}
	d, a, ok := tool.ForAction(action)
	if !ok {
		return "", nil, e.bad("action", "This action is not known.")
	}
	if d.Instead != nil {
		return e.read(d.Instead.Tool, d.Instead.Read, args)
	}
	return e.read(d.Name, a.Read, args)
}

// read makes an action the call of a tool.
func (e replayItem) read(name string, read func(*form.Writer, form.Recorded) error, args arguments) (string, stdjson.RawMessage, error) {
	w := form.NewWriter(256 + len(e.Args))
	w.Open("", '{')
	err := read(w, form.Recorded{Args: args, Timeout: e.Timeout})
	w.Shut('}')
	var wrong *form.FieldError
	if errors.As(err, &wrong) {
		err = e.bad(wrong.Field, wrong.Message)
	}
	return name, w.B, err
}

func (e replayItem) foreign(args arguments) (string, stdjson.RawMessage, error) {
	name, err := e.str(args, "name")
	if err == nil && !callName.MatchString(name) {
		err = e.bad("args.name", "The name of a tool is expected.")
	}
	switch k := form.KindOf(args["arguments"]); {
	case k == '{':
		return name, args["arguments"], err
	case k != 0 && k != 'n' && err == nil:
		err = e.bad("args.arguments", "Must be an object.")
	}
	return name, stdjson.RawMessage("{}"), err
}

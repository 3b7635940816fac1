package v0

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	stdjson "encoding/json"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"deckhand/internal/session"
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
	if kindOf(a[name]) != '"' {
		return "", e.bad("args."+name, "Must be a string.")
	}
	return details[string](a[name]), nil
}

// list is an argument that may be missing, and else is a list of strings that pass check.
func (e replayItem) list(a arguments, name string, most int, check func(string) (typ, msg string)) ([]string, error) {
	if k := kindOf(a[name]); k == 0 || k == 'n' {
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
				m.arguments = stdjson.RawMessage(appendString(nil, c.Function.Arguments))
			}
		}
	}
	return m, m.name != ""
}

// meaning are the arguments of an action that say what is done.
var meaning = map[string][]string{
	"run": {"command", "is_input"}, "read": {"path", "view_range"}, "edit": {"path", "command", "file_text", "old_str", "new_str", "insert_line"},
	"browse": {"url"}, "browse_interactive": {"browser_actions"}, "call_tool_mcp": {"name", "arguments"}, "task_tracking": {"command", "task_list"},
	"think": nil, "finish": {"final_thought"}, "delegate": {"agent", "inputs"},
}

// agrees reports whether the call that the metadata tell of is the action: encoded
// again, it says the same. A recording must not do another thing than it shows.
func (m metadata) agrees(action string, args arguments) bool {
	names, known := meaning[action]
	if !known || m.arguments == nil {
		return false
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
	if err != nil {
		return err
	}
	switch {
	case told && m.agrees(action, args) && !gone[m.name]:
		name, raw = m.name, m.arguments
	case name == "":
		r.note(leftOut[action])
		return nil
	}
	said := m.content
	if action != "think" { // whose thought is what it is about
		said = or(said, args.text("thought"))
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
	step.Ends = step.Ends || name == "finish"
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

// gone are the tools of the legacy server that are called in another way today.
var gone = map[string]bool{"execute_ipython_cell": true, "edit_file": true, "browse": true}

// leftOut says why an action has no call.
var leftOut = map[string]string{
	"edit":     "A recorded edit was left out: it was a draft of a part of a file, which a second model had to apply.",
	"delegate": "A recorded delegation was left out: what the other agent did follows in the recording, or is not known.",
}

// tool maps an action to the call that does it today; without a name there is none.
func (e replayItem) tool(action string, args arguments) (name string, raw stdjson.RawMessage, err error) {
	w := newWriter(256 + len(e.Args))
	w.open("", '{')
	switch action {
	case "run":
		name, err = "execute_bash", e.run(w, args)
	case "run_ipython":
		name, err = "execute_bash", e.python(w, args)
	case "read", "write", "edit":
		name, err = e.editor(w, action, args)
	case "browse":
		name, err = "fetch", e.copy(w, args, "url", "url")
	case "browse_interactive":
		name, err = "browser", e.copy(w, args, "browser_actions", "code")
	case "think":
		name, err = "think", e.copy(w, args, "thought", "thought")
	case "finish":
		name = "finish"
		w.str("message", or(args.text("final_thought"), args.text("thought")))
	case "task_tracking":
		name, err = "task_tracker", e.copy(w, args, "command", "command")
		if kindOf(args["task_list"]) == '[' {
			w.raw("task_list", args["task_list"])
		}
	case "call_tool_mcp":
		if name, err = e.str(args, "name"); err == nil && !callName.MatchString(name) {
			err = e.bad("args.name", "The name of a tool is expected.")
		}
		if k := kindOf(args["arguments"]); k == '{' {
			return name, stdjson.RawMessage(args["arguments"]), err
		} else if k != 0 && k != 'n' && err == nil {
			err = e.bad("args.arguments", "Must be an object.")
		}
	case "delegate": // what the other agent did is recorded with its own actions
	default:
		return "", nil, e.bad("action", "This action is not known.")
	}
	w.shut('}')
	return name, w.b, err
}

// copy writes an argument that must be a string, under the name that it has today.
func (e replayItem) copy(w *writer, args arguments, from, to string) error {
	s, err := e.str(args, from)
	w.str(to, s)
	return err
}

func (e replayItem) run(w *writer, args arguments) error {
	if err := e.copy(w, args, "command", "command"); err != nil {
		return err
	}
	if args.yes("is_input") {
		w.str("is_input", "true")
	}
	return e.timeout(w)
}

// timeout stands beside the args.
func (e replayItem) timeout(w *writer) error {
	switch e.Timeout.Kind() {
	case 0, 'n':
		return nil
	case '0':
		var f float64
		if json.Unmarshal(e.Timeout, &f) == nil && f >= 0 {
			w.float("timeout", f)
			return nil
		}
	}
	return e.bad("timeout", "A number of seconds is expected.")
}

// python runs the code of a notebook cell as a script of its own: there is no kernel
// any more, so what one cell defined is not known to the next.
func (e replayItem) python(w *writer, args arguments) error {
	code, err := e.str(args, "code")
	if err != nil {
		return err
	}
	mark := "PYTHON"
	for n := 0; strings.Contains(code, mark); n++ {
		mark = "PYTHON" + strconv.Itoa(n)
	}
	w.str("command", "python3 - <<'"+mark+"'\n"+strings.TrimSuffix(code, "\n")+"\n"+mark)
	return e.timeout(w)
}

// editor maps the three actions on files.
func (e replayItem) editor(w *writer, action string, args arguments) (name string, err error) {
	command := args.text("command")
	switch {
	case action == "read":
		command = "view"
	case action == "write":
		command = "create"
	case command == "":
		from, _ := args.number("start")
		to, limited := args.number("end")
		if from > 1 || limited && to != -1 {
			return "", nil
		}
		command = "create" // the draft of a whole file is its text
	}
	w.str("command", command)
	if err := e.copy(w, args, "path", "path"); err != nil {
		return "", err
	}
	switch {
	case action == "read":
		if kindOf(args["view_range"]) == '[' {
			w.raw("view_range", args["view_range"])
		}
		return "str_replace_editor", nil
	case action == "write" || args.text("command") == "":
		return "str_replace_editor", e.copy(w, args, "content", "file_text")
	}
	for _, field := range []string{"file_text", "old_str", "new_str"} {
		switch kindOf(args[field]) {
		case 0, 'n':
		case '"':
			w.str(field, args.text(field))
		default:
			return "", e.bad("args."+field, "Must be a string.")
		}
	}
	if _, ok := args.number("insert_line"); ok {
		w.integer("insert_line", args, "0")
	}
	return "str_replace_editor", nil
}

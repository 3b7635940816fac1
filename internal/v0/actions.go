package v0

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"deckhand/internal/session"
)

// form is how a tool looks to legacy clients: as an action when it is called, as an
// observation when it returned.
type form struct {
	// action writes the envelope's head, the kind, the args and what follows them.
	action func(*writer, session.Event, call)
	// observe does the same for the result. Nil means that clients expect none.
	observe func(*writer, session.Event, result)
	// tells reports whether observe can show a failure itself.
	tells func(session.ToolReturned) bool
}

// forms holds the tools that have a form of their own; all others are foreign (MCP).
var forms = map[string]form{
	"execute_bash":         {runAction, runObservation, toldExit},
	"execute_ipython_cell": {pythonAction, pythonObservation, nil},
	"str_replace_editor":   {editorAction, editorObservation, nil},
	"edit_file":            {draftAction, draftObservation, nil},
	"think":                {thinkAction, thinkObservation, nil},
	"finish":               {finishAction, nil, nil},
	"browser":              {browserAction, browserObservation, toldPage},
	"browse":               {browseAction, browseObservation, toldPage},
	"fetch":                {browseAction, browseObservation, toldPage},
	"task_tracker":         {tasksAction, tasksObservation, nil},
	"delegate":             {delegateAction, delegateObservation, nil},
	"request_condensation": {condenseAction, nil, nil},
}

// Tools are the names of the tools that have a form of their own. Nobody else's
// tool may have one of them: clients would take it for ours.
func Tools() []string { return slices.Sorted(maps.Keys(forms)) }

var foreign = form{mcpAction, mcpObservation, toldResult}

func formOf(tool string) form {
	if f, ok := forms[tool]; ok {
		return f
	}
	return foreign
}

// call is a tool call with its arguments taken apart.
type call struct {
	session.ToolCalled
	args arguments
}

func toolCalled(e session.Event, p session.ToolCalled) Frame {
	w := newWriter(1280 + 4*len(p.Args) + 3*len(p.Thought))
	formOf(p.Name).action(w, e, call{p, parseArguments(p.Args)})
	w.metadata(e, p.ToolCall, p.Thought, p.Totals.Model, p.Answer, p.InAnswer)
	w.metrics(p.Totals, p.Usage)
	return w.end()
}

// metadata rebuilds the model's answer around one of its calls in the shape that
// clients know. The log keeps answers in a shape of its own, once; usage is on the
// answer and not on its calls, so it is null here. An answer of 0 is not known.
func (w *writer) metadata(e session.Event, c session.ToolCall, thought, model string, answer int64, calls int) {
	w.open("tool_call_metadata", '{')
	w.str("function_name", c.Name)
	w.str("tool_call_id", c.ID)
	w.open("model_response", '{')
	w.str("id", answerID(answer))
	w.num("created", e.At.Unix())
	w.str("model", model)
	w.str("object", "chat.completion")
	w.open("choices", '[')
	w.open("", '{')
	w.str("finish_reason", "tool_calls")
	w.num("index", 0)
	w.open("message", '{')
	w.str("role", "assistant")
	w.str("content", thought)
	w.open("tool_calls", '[')
	w.open("", '{')
	w.str("id", c.ID)
	w.str("type", "function")
	w.open("function", '{')
	w.str("name", c.Name)
	w.str("arguments", argumentText(c.Args))
	w.b = append(w.b, `}}]}}],"usage":null}`...)
	w.num("total_calls_in_response", int64(max(calls, 1)))
	w.shut('}')
}

func answerID(number int64) string {
	if number == 0 {
		return ""
	}
	return "answer-" + strconv.FormatInt(number, 10)
}

// argumentText is the text the model wrote. Text that was no JSON is kept as a string.
func argumentText(raw json.RawMessage) string {
	switch kindOf(raw) {
	case 0:
		return "{}"
	case '"':
		return details[string](raw)
	default:
		return string(raw)
	}
}

// rated closes args with what most of them end in.
func (w *writer) rated(c call) {
	w.str("thought", c.Thought)
	w.num("security_risk", int64(c.Risk))
	w.waits(c)
}

// waits says that the call waits for the person. Of other calls nothing is said: the
// legacy server called them confirmed, which nobody had done.
func (w *writer) waits(c call) {
	if c.Awaits {
		w.str("confirmation_state", "awaiting_confirmation")
	}
}

func runAction(w *writer, e session.Event, c call) {
	command := c.args.text("command")
	timeout, limited := c.args.number("timeout")
	w.head(e, fromAgent, "Running command: "+command)
	w.action("run")
	w.str("command", command)
	w.flag("is_input", c.args.yes("is_input"))
	w.str("thought", c.Thought)
	w.flag("blocking", limited) // with a limit of its own a command is waited for
	w.flag("is_static", false)
	w.lit("cwd", "null")
	w.flag("hidden", false)
	w.waits(c)
	w.num("security_risk", int64(c.Risk))
	w.shut('}')
	if limited {
		w.float("timeout", timeout)
	}
}

func pythonAction(w *writer, e session.Event, c call) {
	code := c.args.text("code")
	w.head(e, fromAgent, "Running Python code interactively: "+code)
	w.action("run_ipython")
	w.str("code", code)
	w.str("thought", c.Thought)
	w.flag("include_extra", true)
	w.waits(c)
	w.num("security_risk", int64(c.Risk))
	w.str("kernel_init_code", "")
	w.shut('}')
}

// editorAction is a read or an edit: one tool to the model, two kinds to clients.
func editorAction(w *writer, e session.Event, c call) {
	path := c.args.text("path")
	if c.args.text("command") == "view" {
		w.head(e, fromAgent, "Reading file: "+path)
		w.action("read")
		w.str("path", path)
		w.num("start", 0)
		w.num("end", -1)
		w.rated(c)
		w.str("impl_source", "oh_aci")
		w.array("view_range", c.args["view_range"], "null")
		w.shut('}')
		return
	}
	w.head(e, fromAgent, "")
	w.action("edit")
	w.str("path", path)
	w.str("command", c.args.text("command"))
	w.opt("file_text", c.args.optional("file_text"))
	w.opt("old_str", c.args.optional("old_str"))
	w.opt("new_str", c.args.optional("new_str"))
	w.integer("insert_line", c.args, "null")
	w.str("content", "")
	w.num("start", 1)
	w.num("end", -1)
	w.rated(c)
	w.str("impl_source", "oh_aci")
	w.shut('}')
}

// draftAction is the editor in which a second model applies a draft.
func draftAction(w *writer, e session.Event, c call) {
	w.head(e, fromAgent, "")
	w.action("edit")
	w.str("path", c.args.text("path"))
	w.str("command", "")
	w.lit("file_text", "null")
	w.lit("old_str", "null")
	w.lit("new_str", "null")
	w.lit("insert_line", "null")
	w.str("content", c.args.text("content"))
	w.integer("start", c.args, "1")
	w.integer("end", c.args, "-1")
	w.rated(c)
	w.str("impl_source", "llm_based_edit")
	w.shut('}')
}

// integer writes an argument that is a whole number, or the default.
func (w *writer) integer(k string, a arguments, other string) {
	f, ok := a.number(k)
	if !ok || f != float64(int64(f)) {
		w.lit(k, other)
		return
	}
	w.num(k, int64(f))
}

// thinkAction joins what the model said to what it thought: there is one field for both.
func thinkAction(w *writer, e session.Event, c call) {
	thought := c.args.text("thought")
	switch {
	case thought == "":
		thought = c.Thought
	case c.Thought != "":
		thought = c.Thought + "\n" + thought
	}
	w.head(e, fromAgent, "I am thinking...: "+thought)
	w.action("think")
	w.str("thought", thought)
	w.shut('}')
}

func finishAction(w *writer, e session.Event, c call) {
	message := c.Thought
	if message == "" {
		message = "All done! What's next on the agenda?"
	}
	w.head(e, fromAgent, message)
	w.action("finish")
	w.str("final_thought", c.args.text("message"))
	w.lit("outputs", "{}")
	w.str("thought", c.Thought)
	w.shut('}')
}

func browserAction(w *writer, e session.Event, c call) {
	code := c.args.text("code")
	w.head(e, fromAgent, "I am interacting with the browser:\n```\n"+code+"\n```")
	w.action("browse_interactive")
	w.str("browser_actions", code)
	w.str("thought", c.Thought)
	w.str("browsergym_send_msg_to_user", "")
	w.num("security_risk", int64(c.Risk))
	w.waits(c)
	w.flag("return_axtree", false)
	w.shut('}')
}

func browseAction(w *writer, e session.Event, c call) {
	url := c.args.text("url")
	w.head(e, fromAgent, "I am browsing the URL: "+url)
	w.action("browse")
	w.str("url", url)
	w.rated(c)
	w.flag("return_axtree", false)
	w.shut('}')
}

func mcpAction(w *writer, e session.Event, c call) {
	w.head(e, fromAgent, "I am calling the tool "+c.Name+" with these arguments:\n```\n"+argumentText(c.Args)+"\n```")
	w.action("call_tool_mcp")
	w.str("name", c.Name)
	w.object("arguments", c.Args)
	w.rated(c)
	w.shut('}')
}

func tasksAction(w *writer, e session.Event, c call) {
	tasks := parseTasks(c.args["task_list"])
	w.head(e, fromAgent, tasksMessage(c.args.text("command"), len(tasks)))
	w.action("task_tracking")
	w.str("command", c.args.text("command"))
	w.tasks(tasks)
	w.str("thought", c.Thought)
	w.shut('}')
}

func tasksMessage(command string, n int) string {
	switch {
	case n == 1:
		return "Managing 1 task item."
	case n > 1:
		return fmt.Sprintf("Managing %d task items.", n)
	case command == "plan":
		return "Clearing the task list."
	default:
		return "Looking at the task list."
	}
}

func parseTasks(raw json.RawMessage) []arguments { return details[[]arguments](raw) }

// tasks gives each item all four fields, for clients read them without asking.
func (w *writer) tasks(items []arguments) {
	w.open("task_list", '[')
	for _, t := range items {
		w.open("", '{')
		w.str("id", t.text("id"))
		w.str("title", t.text("title"))
		w.str("status", t.text("status"))
		w.str("notes", t.text("notes"))
		w.shut('}')
	}
	w.shut(']')
}

func delegateAction(w *writer, e session.Event, c call) {
	agent := c.args.text("agent")
	w.head(e, fromAgent, "I'm asking "+agent+" for help with this task.")
	w.action("delegate")
	w.str("agent", agent)
	w.object("inputs", c.args["inputs"])
	w.str("thought", c.Thought)
	w.waits(c)
	w.shut('}')
}

func condenseAction(w *writer, e session.Event, _ call) {
	w.head(e, fromAgent, "Requesting a condensation of the conversation's history.")
	w.action("condensation_request")
	w.shut('}')
}

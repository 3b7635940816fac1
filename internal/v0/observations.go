package v0

import (
	"fmt"

	"deckhand/internal/session"
)

// result is a tool's result with its arguments taken apart.
type result struct {
	session.ToolReturned
	args arguments
}

// Ids of the results of calls that did not come to their end.
const (
	errorNotExecuted = "AGENT_ERROR$ERROR_ACTION_NOT_EXECUTED_STOPPED"
	errorUnknown     = "AGENT_ERROR$OUTCOME_UNKNOWN"
)

// shellTool is the tool whose output front ends show in their terminal.
const shellTool = "execute_bash"

// exitInterrupted is the exit code of a command that was interrupted, as shells have it.
// -1 means that a command still runs.
const exitInterrupted = 130

// What people read when the result itself says nothing.
const (
	textNotExecuted = "The action was not completed because the agent was stopped."
	textRejected    = "The action was rejected by the user. Waiting for further input."
	textUnknown     = "The outcome of this action is unknown: it may or may not have taken effect."
	textFailed      = "The tool failed without saying why."
)

func toolReturned(e session.Event, p session.ToolReturned) Frame {
	w := newWriter(1280 + 2*len(p.Output) + 3*len(p.Args) + len(p.Details))
	f := formOf(p.Name)
	switch p.Outcome {
	case session.Cancelled:
		if p.Partial && p.Name == shellTool {
			runObservation(w, e, result{p, parseArguments(p.Args)})
			break
		}
		w.failure(e, p, or(p.Output, textNotExecuted), errorNotExecuted)
	case session.Rejected:
		text := or(p.Output, textRejected)
		w.head(e, fromAgent, text)
		w.observation("user_rejected", text, p.Cause)
		w.shut('}')
	case session.Unknown:
		text := textUnknown
		if p.Output != "" {
			text += " " + p.Output
		}
		w.failure(e, p, text, errorUnknown)
	default:
		switch {
		case p.Outcome == session.FailedRun && (f.tells == nil || !f.tells(p)):
			w.failure(e, p, or(p.Output, textFailed), "")
		case f.observe == nil:
			return Frame{}
		default:
			f.observe(w, e, result{p, parseArguments(p.Args)})
		}
	}
	// A result does not know which answer asked for it; its cause does.
	w.metadata(e, session.ToolCall{ID: p.ID, Name: p.Name, Args: p.Args}, "", "", 0, 1)
	return w.end()
}

func or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// failure is the observation for whatever has no better one.
func (w *writer) failure(e session.Event, p session.ToolReturned, text, id string) {
	w.head(e, fromAgent, text)
	w.observation("error", text, p.Cause)
	w.str("error_id", id)
	w.shut('}')
}

// toldExit: a command that ended with a code tells its failure by the code.
func toldExit(p session.ToolReturned) bool {
	return details[RunDetails](p.Details).ExitCode != nil
}

// toldPage: a browser that got somewhere shows where, and that it is an error.
func toldPage(p session.ToolReturned) bool {
	return details[BrowseDetails](p.Details).URL != ""
}

// toldResult: a foreign result says itself that it is an error.
func toldResult(p session.ToolReturned) bool {
	return kindOf(details[MCPDetails](p.Details).Result) == '{'
}

func runObservation(w *writer, e session.Event, r result) {
	d := details[RunDetails](r.Details)
	command := r.args.text("command")
	code, pid := 0, -1
	if d.ExitCode != nil {
		code = *d.ExitCode
	}
	if d.PID != nil {
		pid = *d.PID
	}
	message := fmt.Sprintf("Command `%s` executed with exit code %d.", command, code)
	if r.Outcome == session.Cancelled { // front ends say of the id of a cancelled call that it was not executed
		code, message = exitInterrupted, fmt.Sprintf("Command `%s` was interrupted.", command)
	}
	w.head(e, fromAgent, message)
	w.observation("run", r.Output, r.Cause)
	w.ran(command, code, pid, d)
}

// ran closes the extras of a command's result.
func (w *writer) ran(command string, code, pid int, d RunDetails) {
	w.str("command", command)
	w.open("metadata", '{')
	w.num("exit_code", int64(code))
	w.num("pid", int64(pid))
	w.str("username", d.Username)
	w.str("hostname", d.Hostname)
	w.str("working_dir", d.WorkingDir)
	w.str("py_interpreter_path", d.PyInterpreterPath)
	w.str("prefix", d.Prefix)
	w.str("suffix", d.Suffix)
	w.shut('}')
	w.flag("hidden", d.Hidden)
	w.shut('}')
	w.flag("success", code == 0)
}

// setUp is the result of a command that nobody called: the repository's script.
func setUp(e session.Event, p session.SetUp) Frame {
	message := fmt.Sprintf("The setup script %s ended with exit code %d.", p.Script, p.Exit)
	if p.Problem != "" {
		message = p.Problem
	}
	w := newWriter(512 + 2*len(p.Output) + len(message))
	w.head(e, fromEnvironment, message)
	w.observation("run", p.Output, 0)
	w.str("command", ". ./"+p.Script)
	w.open("metadata", '{')
	w.num("exit_code", int64(p.Exit))
	w.num("pid", -1)
	w.str("username", "")
	w.str("hostname", "")
	w.str("working_dir", "")
	w.str("py_interpreter_path", "")
	w.str("prefix", "")
	w.str("suffix", p.Problem)
	w.shut('}')
	w.flag("hidden", false)
	w.shut('}')
	w.flag("success", p.Exit == 0)
	return w.end()
}

func pythonObservation(w *writer, e session.Event, r result) {
	w.head(e, fromAgent, "Code executed in IPython cell.")
	w.observation("run_ipython", r.Output, r.Cause)
	w.str("code", r.args.text("code"))
	w.strs("image_urls", details[PythonDetails](r.Details).ImageURLs)
	w.shut('}')
	w.flag("success", true)
}

func editorObservation(w *writer, e session.Event, r result) {
	d := details[EditDetails](r.Details)
	command := r.args.text("command")
	if command == "" && d.NewContent != nil {
		command = "edit" // the arguments are not repeated, but something was changed
	}
	if command == "" || command == "view" {
		readObservation(w, e, r)
		return
	}
	w.edited(e, r, d, "oh_aci", command != "create")
}

func draftObservation(w *writer, e session.Event, r result) {
	w.edited(e, r, details[EditDetails](r.Details), "llm_based_edit", true)
}

func readObservation(w *writer, e session.Event, r result) {
	d := details[ReadDetails](r.Details)
	path := or(d.Path, r.args.text("path"))
	w.head(e, fromAgent, "I read the file "+path+".")
	w.observation("read", r.Output, r.Cause)
	w.str("path", path)
	w.str("impl_source", or(d.ImplSource, "oh_aci"))
	w.shut('}')
}

func (w *writer) edited(e session.Event, r result, d EditDetails, impl string, existed bool) {
	path := or(d.Path, r.args.text("path"))
	if d.PrevExist != nil {
		existed = *d.PrevExist
	}
	w.head(e, fromAgent, "I edited the file "+path+".")
	w.observation("edit", r.Output, r.Cause)
	w.str("path", path)
	w.flag("prev_exist", existed)
	w.opt("old_content", d.OldContent)
	w.opt("new_content", d.NewContent)
	w.str("impl_source", or(d.ImplSource, impl))
	w.opt("diff", d.Diff)
	w.lit("_diff_cache", "null")
	w.shut('}')
}

// thinkObservation acknowledges; what was thought is in the action.
func thinkObservation(w *writer, e session.Event, r result) {
	const text = "Your thought has been logged."
	w.head(e, fromAgent, text)
	w.observation("think", text, r.Cause)
	w.shut('}')
}

func browserObservation(w *writer, e session.Event, r result) {
	w.browsed(e, r, "browse_interactive")
}

func browseObservation(w *writer, e session.Event, r result) { w.browsed(e, r, "browse") }

func (w *writer) browsed(e session.Event, r result, trigger string) {
	d := details[BrowseDetails](r.Details)
	url := or(d.URL, r.args.text("url"))
	w.head(e, fromAgent, "Visited "+url)
	w.observation("browse", r.Output, r.Cause)
	w.str("url", url)
	w.str("trigger_by_action", trigger)
	w.str("screenshot", d.Screenshot)
	w.opt("screenshot_path", d.ScreenshotPath)
	w.str("set_of_marks", d.SetOfMarks)
	w.flag("error", d.Error || r.Outcome == session.FailedRun)
	w.lit("goal_image_urls", "[]")
	w.list("open_pages_urls", d.OpenPagesURLs)
	w.num("active_page_index", int64(d.ActivePageIndex))
	w.object("dom_object", d.DOM)
	w.object("axtree_object", d.AXTree)
	w.object("extra_element_properties", d.ElementProperties)
	w.str("last_browser_action", or(d.LastBrowserAction, r.args.text("code")))
	w.str("last_browser_action_error", d.LastBrowserActionError)
	w.str("focused_element_bid", d.FocusedElement)
	w.flag("filter_visible_only", d.FilterVisibleOnly)
	w.shut('}')
}

func mcpObservation(w *writer, e session.Event, r result) {
	content := foreignResult(r)
	w.head(e, fromAgent, content)
	w.observation("mcp", content, r.Cause)
	w.str("name", r.Name)
	w.object("arguments", r.Args)
	w.shut('}')
}

// foreignResult is the result as JSON text. When only the model's text is at hand,
// it is put into the same shape.
func foreignResult(r result) string {
	raw := details[MCPDetails](r.Details).Result
	if kindOf(raw) == '{' {
		return string(raw)
	}
	w := newWriter(96 + len(r.Output))
	w.b = append(w.b, `{"meta":null,"content":[{"type":"text"`...)
	w.str("text", r.Output)
	w.b = append(w.b, `}],"isError":false}`...)
	return string(w.b)
}

func tasksObservation(w *writer, e session.Event, r result) {
	list := details[TaskDetails](r.Details).TaskList
	if kindOf(list) != '[' {
		list = r.args["task_list"]
	}
	w.head(e, fromAgent, r.Output)
	w.observation("task_tracking", r.Output, r.Cause)
	w.str("command", r.args.text("command"))
	w.tasks(parseTasks(list))
	w.shut('}')
}

func delegateObservation(w *writer, e session.Event, r result) {
	w.head(e, fromAgent, r.Output)
	w.observation("delegate", r.Output, r.Cause)
	w.object("outputs", details[DelegateDetails](r.Details).Outputs)
	w.shut('}')
}

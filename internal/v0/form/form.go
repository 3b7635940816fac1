// Package form lets a tool declare how legacy clients see it: as an action when it is
// called, as an observation when it has returned. Each tool declares its Form in its own
// folder; package v0 adds the envelope. A tool without a Form is shown like an MCP tool.
package form

import (
	"fmt"
	"time"

	"deckhand/internal/session"
)

// Form is how a tool looks to legacy clients. It also applies to stored events, so its
// output for them never changes.
type Form struct {
	// Action starts with Writer.Call and writes the args and what follows them.
	Action func(*Writer, Call)
	// Observe starts with Writer.Result and writes the extras and what follows them. Nil
	// means that clients expect no result.
	Observe func(*Writer, Result)
	// Tells reports whether Observe can show a failure itself; nil if it never can.
	Tells func(session.ToolReturned) bool
	// Partial is set if Observe shows an interrupted call with its output so far.
	Partial bool
	// Actions are the legacy actions, and observations of the same name, that are calls
	// of this tool: recordings and imported conversations contain them.
	Actions map[string]Action
}

// Action is a legacy action that is a call of the tool.
type Action struct {
	// Means are the args that say what is done. If the recorded call differs, the action
	// counts.
	Means []string
	// Read writes the arguments of the call. Errors are a *FieldError and LeftOut.
	Read func(*Writer, Recorded) error
}

// Call is a tool call with its arguments taken apart.
type Call struct {
	session.ToolCalled
	Event session.Event
	Given Arguments
}

// Result is a tool's result with its arguments taken apart.
type Result struct {
	session.ToolReturned
	Event session.Event
	Given Arguments
}

// The sources of an event.
const (
	FromAgent       = "agent"
	FromUser        = "user"
	FromEnvironment = "environment"
)

// Stamp is RFC 3339 with microseconds and, unlike the legacy server's, a zone.
const Stamp = "2006-01-02T15:04:05.000000Z"

// Call opens an action of this kind and its args. The message is for people.
func (w *Writer) Call(c Call, kind, message string) {
	w.Head(c.Event, FromAgent, message)
	w.Action(kind)
}

// Result opens an observation of this kind and its extras. The message is for people.
func (w *Writer) Result(r Result, kind, message, content string) {
	w.Head(r.Event, FromAgent, message)
	w.Observation(kind, content, r.Cause)
}

// Head opens the envelope.
func (w *Writer) Head(e session.Event, source, message string) {
	w.Open("", '{')
	w.Num("id", e.Number)
	w.Key("timestamp")
	w.B = append(w.B, '"')
	w.B = e.At.In(time.UTC).AppendFormat(w.B, Stamp)
	w.B = append(w.B, '"')
	w.Str("source", source)
	w.Key("message")
	w.from = len(w.B)
	w.B = AppendString(w.B, message)
	w.to = len(w.B)
}

// Action opens the args of an action.
func (w *Writer) Action(kind string) {
	w.Str("action", kind)
	w.Open("args", '{')
}

// Observation writes the text and opens the extras. A cause of 0 is none.
func (w *Writer) Observation(kind, content string, cause int64) {
	if cause > 0 {
		w.Num("cause", cause)
	}
	w.Str("observation", kind)
	w.Str("content", content)
	w.Open("extras", '{')
}

// Rated writes what most args end in.
func (w *Writer) Rated(c Call) {
	w.Str("thought", c.Thought)
	w.Num("security_risk", int64(c.Risk))
	w.Waits(c)
}

// Waits marks a call that waits for approval. Other calls are not marked: the legacy server
// marked them as confirmed, although no user had confirmed them.
func (w *Writer) Waits(c Call) {
	if c.Awaits {
		w.Str("confirmation_state", "awaiting_confirmation")
	}
}

// Integer writes an argument that is a whole number, or the default.
func (w *Writer) Integer(k string, a Arguments, other string) {
	f, ok := a.Number(k)
	if !ok || f != float64(int64(f)) {
		w.Lit(k, other)
		return
	}
	w.Num(k, int64(f))
}

// exitInterrupted is the exit code of a command that was interrupted, as shells have it.
// -1 means that a command still runs.
const exitInterrupted = 130

// Ended is how a command ended, and a sentence about it; code holds if the details have none.
func (d RunDetails) Ended(command string, outcome session.Outcome, code int) (exit, pid int, message string) {
	pid = -1
	if d.ExitCode != nil {
		code = *d.ExitCode
	}
	if d.PID != nil {
		pid = *d.PID
	}
	if outcome == session.Cancelled { // front ends say of the id of a cancelled call that it was not executed
		return exitInterrupted, pid, fmt.Sprintf("Command `%s` was interrupted.", command)
	}
	return code, pid, fmt.Sprintf("Command `%s` executed with exit code %d.", command, code)
}

// Ran writes the extras of a command's result, closes them and writes
// what follows them.
func (w *Writer) Ran(command string, code, pid int, d RunDetails) {
	w.Str("command", command)
	w.Open("metadata", '{')
	w.Num("exit_code", int64(code))
	w.Num("pid", int64(pid))
	w.Str("username", d.Username)
	w.Str("hostname", d.Hostname)
	w.Str("working_dir", d.WorkingDir)
	w.Str("py_interpreter_path", d.PyInterpreterPath)
	w.Str("prefix", d.Prefix)
	w.Str("suffix", d.Suffix)
	w.Shut('}')
	w.Flag("hidden", d.Hidden)
	w.Shut('}')
	w.Flag("success", code == 0)
}

// Edited is the observation of a changed file. impl and existed hold if the details do
// not say.
func (w *Writer) Edited(r Result, d EditDetails, impl string, existed bool) {
	path := Or(d.Path, r.Given.Text("path"))
	if d.PrevExist != nil {
		existed = *d.PrevExist
	}
	w.Result(r, "edit", "I edited the file "+path+".", r.Output)
	w.Str("path", path)
	w.Flag("prev_exist", existed)
	w.Opt("old_content", d.OldContent)
	w.Opt("new_content", d.NewContent)
	w.Str("impl_source", Or(d.ImplSource, impl))
	w.Opt("diff", d.Diff)
	w.Lit("_diff_cache", "null")
	w.Shut('}')
}

// Browsed is the observation of a page.
func (w *Writer) Browsed(r Result, trigger string) {
	d := Details[BrowseDetails](r.Details)
	url := Or(d.URL, r.Given.Text("url"))
	w.Result(r, "browse", "Visited "+url, r.Output)
	w.Str("url", url)
	w.Str("trigger_by_action", trigger)
	w.Str("screenshot", d.Screenshot)
	w.Opt("screenshot_path", d.ScreenshotPath)
	w.Str("set_of_marks", d.SetOfMarks)
	w.Flag("error", d.Error || r.Outcome == session.FailedRun)
	w.Lit("goal_image_urls", "[]")
	w.List("open_pages_urls", d.OpenPagesURLs)
	w.Num("active_page_index", int64(d.ActivePageIndex))
	w.Object("dom_object", d.DOM)
	w.Object("axtree_object", d.AXTree)
	w.Object("extra_element_properties", d.ElementProperties)
	w.Str("last_browser_action", Or(d.LastBrowserAction, r.Given.Text("code")))
	w.Str("last_browser_action_error", d.LastBrowserActionError)
	w.Str("focused_element_bid", d.FocusedElement)
	w.Flag("filter_visible_only", d.FilterVisibleOnly)
	w.Shut('}')
}

// TellsPage is Form.Tells for browsers: one that got somewhere shows where, and that it
// is an error.
func TellsPage(p session.ToolReturned) bool { return Details[BrowseDetails](p.Details).URL != "" }

// Browse is the form of tools that read a page by its address.
func Browse() Form {
	return Form{
		Action: func(w *Writer, c Call) {
			url := c.Given.Text("url")
			w.Call(c, "browse", "I am browsing the URL: "+url)
			w.Str("url", url)
			w.Rated(c)
			w.Flag("return_axtree", false)
			w.Shut('}')
		},
		Observe: func(w *Writer, r Result) { w.Browsed(r, "browse") },
		Tells:   TellsPage,
	}
}

// Or is the text, or another one if it is empty.
func Or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

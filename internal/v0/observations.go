package v0

import (
	"fmt"

	"deckhand/internal/session"
	"deckhand/internal/v0/form"
)

// IDs of the results of calls that were not completed.
const (
	errorNotExecuted = "AGENT_ERROR$ERROR_ACTION_NOT_EXECUTED_STOPPED"
	errorUnknown     = "AGENT_ERROR$OUTCOME_UNKNOWN"
)

// Texts for results without text.
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
		if p.Partial && f.Partial {
			f.Observe(&w.Writer, form.Result{ToolReturned: p, Event: e, Given: form.ParseArguments(p.Args)})
			break
		}
		w.failure(e, p, form.Or(p.Output, textNotExecuted), errorNotExecuted)
	case session.Rejected:
		text := form.Or(p.Output, textRejected)
		w.Head(e, fromAgent, text)
		w.Observation("user_rejected", text, p.Cause)
		w.Shut('}')
	case session.Unknown:
		text := textUnknown
		if p.Output != "" {
			text += " " + p.Output
		}
		w.failure(e, p, text, errorUnknown)
	default:
		switch {
		case p.Outcome == session.FailedRun && (f.Tells == nil || !f.Tells(p)):
			w.failure(e, p, form.Or(p.Output, textFailed), "")
		case f.Observe == nil:
			return Frame{}
		default:
			f.Observe(&w.Writer, form.Result{ToolReturned: p, Event: e, Given: form.ParseArguments(p.Args)})
		}
	}
	// A result does not have the response that requested it; its cause does.
	w.metadata(e, session.ToolCall{ID: p.ID, Name: p.Name, Args: p.Args}, "", "", 0, 1)
	return w.end()
}

// failure writes the default observation.
func (w *writer) failure(e session.Event, p session.ToolReturned, text, id string) {
	w.Head(e, fromAgent, text)
	w.Observation("error", text, p.Cause)
	w.Str("error_id", id)
	w.Shut('}')
}

// toldResult reports whether the result of an MCP tool contains the error.
func toldResult(p session.ToolReturned) bool {
	return form.KindOf(form.Details[form.MCPDetails](p.Details).Result) == '{'
}

// setUp shows the result of the repository's setup script as a command without a call.
func setUp(e session.Event, p session.SetUp) Frame {
	message := fmt.Sprintf("The setup script %s ended with exit code %d.", p.Script, p.Exit)
	if p.Problem != "" {
		message = p.Problem
	}
	w := newWriter(512 + 2*len(p.Output) + len(message))
	w.Head(e, fromEnvironment, message)
	w.Observation("run", p.Output, 0)
	w.Str("command", ". ./"+p.Script)
	w.Open("metadata", '{')
	w.Num("exit_code", int64(p.Exit))
	w.Num("pid", -1)
	w.Str("username", "")
	w.Str("hostname", "")
	w.Str("working_dir", "")
	w.Str("py_interpreter_path", "")
	w.Str("prefix", "")
	w.Str("suffix", p.Problem)
	w.Shut('}')
	w.Flag("hidden", false)
	w.Shut('}')
	w.Flag("success", p.Exit == 0)
	return w.end()
}

func mcpObservation(w *form.Writer, r form.Result) {
	content := foreignResult(r)
	w.Result(r, "mcp", content, content)
	w.Str("name", r.Name)
	w.Object("arguments", r.Args)
	w.Shut('}')
}

// foreignResult returns the result as JSON text. If only the text for the model is known,
// it is converted to the same format.
func foreignResult(r form.Result) string {
	raw := form.Details[form.MCPDetails](r.Details).Result
	if form.KindOf(raw) == '{' {
		return string(raw)
	}
	w := newWriter(96 + len(r.Output))
	w.B = append(w.B, `{"meta":null,"content":[{"type":"text"`...)
	w.Str("text", r.Output)
	w.B = append(w.B, `}],"isError":false}`...)
	return string(w.B)
}

package v0

import (
	"encoding/json"
	"strconv"

	"deckhand/internal/session"
	"deckhand/internal/tool"
	"deckhand/internal/v0/form"
)

// formOf returns the legacy form of a tool. Tools without one are shown as MCP tools.
func formOf(name string) form.Form {
	if d := tool.Describe(name); d.Legacy != nil {
		return *d.Legacy
	}
	return foreign
}

var foreign = form.Form{Action: mcpAction, Observe: mcpObservation, Tells: toldResult}

func toolCalled(e session.Event, p session.ToolCalled) Frame {
	w := newWriter(1280 + 4*len(p.Args) + 3*len(p.Thought))
	formOf(p.Name).Action(&w.Writer, form.Call{ToolCalled: p, Event: e, Given: form.ParseArguments(p.Args)})
	w.metadata(e, p.ToolCall, p.Thought, p.Totals.Model, p.Answer, p.InAnswer)
	w.metrics(p.Totals, p.Usage)
	return w.end()
}

// metadata rebuilds the model's response around one of its calls in the format that
// clients know. The log stores responses once, in its own format; usage belongs to the
// response, not to its calls, so it is null here. A response of 0 is unknown.
func (w *writer) metadata(e session.Event, c session.ToolCall, thought, model string, answer int64, calls int) {
	w.Open("tool_call_metadata", '{')
	w.Str("function_name", c.Name)
	w.Str("tool_call_id", c.ID)
	w.Open("model_response", '{')
	w.Str("id", answerID(answer))
	w.Num("created", e.At.Unix())
	w.Str("model", model)
	w.Str("object", "chat.completion")
	w.Open("choices", '[')
	w.Open("", '{')
	w.Str("finish_reason", "tool_calls")
	w.Num("index", 0)
	w.Open("message", '{')
	w.Str("role", "assistant")
	w.Str("content", thought)
	w.Open("tool_calls", '[')
	w.Open("", '{')
	w.Str("id", c.ID)
	w.Str("type", "function")
	w.Open("function", '{')
	w.Str("name", c.Name)
	w.Str("arguments", argumentText(c.Args))
	w.B = append(w.B, `}}]}}],"usage":null}`...)
	w.Num("total_calls_in_response", int64(max(calls, 1)))
	w.Shut('}')
}

func answerID(number int64) string {
	if number == 0 {
		return ""
	}
	return "answer-" + strconv.FormatInt(number, 10)
}

// argumentText returns the arguments as the model wrote them. Invalid JSON is stored as a
// string.
func argumentText(raw json.RawMessage) string {
	switch form.KindOf(raw) {
	case 0:
		return "{}"
	case '"':
		return form.Details[string](raw)
	default:
		return string(raw)
	}
}

func mcpAction(w *form.Writer, c form.Call) {
	w.Call(c, "call_tool_mcp", "I am calling the tool "+c.Name+" with these arguments:\n```\n"+argumentText(c.Args)+"\n```")
	w.Str("name", c.Name)
	w.Object("arguments", c.Args)
	w.Rated(c)
	w.Shut('}')
}

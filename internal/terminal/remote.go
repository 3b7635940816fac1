package terminal

import (
	"encoding/json"
	"strings"

	"deckhand/internal/session"
	"deckhand/internal/tool/bash"
)

// early is the beginning of an answer that came before the result of the call
// which it is about: fragments may overtake events.
type early struct {
	call string
	text strings.Builder
}

// Remote shows one event of a server's stream. Give all of them, in order.
func (d *Display) Remote(e session.Event) {
	if _, answer := e.Payload.(session.ModelAnswered); answer {
		d.release()
	}
	d.Event(e)
	if d.output == nil {
		d.release()
	}
}

// release shows what came early.
func (d *Display) release() {
	call, text := d.early.call, d.early.text.String()
	d.early = early{}
	if text != "" {
		d.Delta(call, text)
	}
}

// RemoteDelta shows more of what is being written. offset is where the text
// begins; what was shown before a connection was lost comes again.
func (d *Display) RemoteDelta(call string, offset int64, text string) {
	have := int64(0)
	held := d.output != nil && call != d.tool.ID
	switch {
	case held && call == d.early.call:
		have = int64(d.early.text.Len())
	case held:
		d.early = early{call: call}
	case d.output != nil:
		have = d.output.seen
	case call == d.call:
		have = int64(d.said.Len())
	}
	if again := have - offset; again > 0 {
		if again >= int64(len(text)) {
			return
		}
		text = text[again:]
	}
	if held {
		d.early.text.WriteString(text)
		return
	}
	d.Delta(call, text)
}

// typed shows a command of a person's own as a call of the shell.
func (d *Display) typed(number int64, p session.CommandTyped) {
	args, _ := json.Marshal(map[string]string{"command": p.Command}) // a string is always JSON
	d.called(session.ToolCalled{ToolCall: session.ToolCall{ID: session.TypedCommand{Number: number}.Call(), Name: bash.Name, Args: args}})
}

func (d *Display) typedEnded(p session.CommandEnded) {
	d.returned(session.ToolReturned{ID: session.TypedCommand{Number: p.Cause}.Call(), Name: bash.Name, Outcome: p.Outcome, Output: p.Output, Details: p.Details})
}

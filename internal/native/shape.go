package native

import (
	"slices"

	"deckhand/internal/v0"
)

// protocol are the fields of payloads that programs go by, as paths with dots between the
// names; arrays are passed over. A secret that is the same word is not masked in them.
var protocol = []string{
	"agent", "answer", "call", "child", "class", "deadline", "display.content", "display.file.after", "display.file.before", "display.file.lines", "display.file.path", "display.main", "error_id", "forked.at", "forked.from", "id", "mode", "model", "name", "origin", "outcome", "outside",
	"parent", "provider", "purpose", "rule", "state", "step", "tool_calls.id", "tool_calls.name", "totals.model", "before.model", "trigger", "type",
	"args.task_list.id", "args.task_list.status", "details.task_list.id", "details.task_list.status", "details.recall_type",
	"tools.type", "tools.function.name", "tools.function.parameters",
}

// freeForm are the fields whose content has names that others choose: they are text.
var freeForm = []string{"args", "details", "tool_calls.args"}

// Protocol lists the fields of events that are never masked.
func Protocol() []string {
	return slices.Concat([]string{"id", "kind", "time"}, payloads(protocol, v0.Protocol()), []string{"payload.as.id", "payload.as.kind", "payload.as.time"})
}

// FreeForm lists the fields in which names are masked too.
func FreeForm() []string { return payloads(freeForm, v0.FreeForm()) }

// Coded lists the fields that hold JSON as a string.
func Coded() []string { return payloads(nil, v0.Coded()) }

// payloads are paths in a payload, in those that an imported event stands for, and in the
// legacy event itself.
func payloads(own, legacy []string) []string {
	var out []string
	for _, path := range own {
		out = append(out, "payload."+path, "payload.as.payload."+path)
	}
	for _, path := range legacy {
		out = append(out, "payload.event."+path)
	}
	return out
}

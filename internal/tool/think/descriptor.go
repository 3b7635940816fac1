package think

import (
	"encoding/json"

	"deckhand/internal/risk"
	"deckhand/internal/tool"
	"deckhand/internal/v0/form"
)

// Descriptor is what others know of the tool.
var Descriptor = tool.Descriptor{
	Name:    Name,
	Open:    func(tool.Server) tool.Tool { return Tool{} },
	Browses: true,
	Rate:    risk.Fixed(risk.Low, "It only thinks, plans or ends the turn."),
	Legacy: &form.Form{Action: action, Observe: observe, Actions: map[string]form.Action{
		"think": {Read: form.Copies("thought", "thought")},
	}},
	Display: tool.Display{Content: tool.Thought, Main: "thought", ReadOnly: true, View: view},
}

func view(raw json.RawMessage) tool.View {
	return tool.View{Text: form.ParseArguments(raw).Text("thought")}
}

// action joins what the model said to what it thought: there is one field for both.
func action(w *form.Writer, c form.Call) {
	thought := c.Given.Text("thought")
	switch {
	case thought == "":
		thought = c.Thought
	case c.Thought != "":
		thought = c.Thought + "\n" + thought
	}
	w.Call(c, "think", "I am thinking...: "+thought)
	w.Str("thought", thought)
	w.Shut('}')
}

// observe acknowledges; what was thought is in the action.
func observe(w *form.Writer, r form.Result) {
	w.Result(r, "think", heard, heard)
	w.Shut('}')
}

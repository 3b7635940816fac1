package finish

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
	Legacy:  &form.Form{Action: action, Actions: map[string]form.Action{"finish": {Means: []string{"final_thought"}, Read: read}}},
	Display: tool.Display{Content: tool.Message, Main: "message", ReadOnly: true, View: view},
}

func view(raw json.RawMessage) tool.View {
	return tool.View{Text: form.ParseArguments(raw).Text("message")}
}

func action(w *form.Writer, c form.Call) {
	w.Call(c, "finish", form.Or(c.Thought, "All done! What's next on the agenda?"))
	w.Str("final_thought", c.Given.Text("message"))
	w.Lit("outputs", "{}")
	w.Str("thought", c.Thought)
	w.Shut('}')
}

func read(w *form.Writer, a form.Recorded) error {
	w.Str("message", form.Or(a.Args.Text("final_thought"), a.Args.Text("thought")))
	return nil
}

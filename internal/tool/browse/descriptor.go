package browse

import (
	"deckhand/internal/risk"
	"deckhand/internal/tool"
	"deckhand/internal/v0/form"
)

// Descriptor is what others know of the tool.
var Descriptor = tool.Descriptor{
	Name:    Name,
	Open:    func(tool.Server) tool.Tool { return New() },
	Browses: true,
	Rate:    risk.ByArguments(rate),
	Legacy: &form.Form{Action: action, Observe: func(w *form.Writer, r form.Result) { w.Browsed(r, "browse_interactive") }, Tells: form.TellsPage,
		Actions: map[string]form.Action{
			"browse_interactive": {Means: []string{"browser_actions"}, Read: form.Copies("browser_actions", "code")},
		}},
	Display: tool.Display{Content: tool.Page, Main: "code", ReadOnly: true},
}

func action(w *form.Writer, c form.Call) {
	code := c.Given.Text("code")
	w.Call(c, "browse_interactive", "I am interacting with the browser:\n```\n"+code+"\n```")
	w.Str("browser_actions", code)
	w.Str("thought", c.Thought)
	w.Str("browsergym_send_msg_to_user", "")
	w.Num("security_risk", int64(c.Risk))
	w.Waits(c)
	w.Flag("return_axtree", false)
	w.Shut('}')
}

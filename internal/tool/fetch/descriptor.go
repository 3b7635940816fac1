package fetch

import (
	"deckhand/internal/risk"
	"deckhand/internal/tool"
	"deckhand/internal/v0/form"
)

// Descriptor is what others know of the tool.
var Descriptor = tool.Descriptor{
	Name:    Name,
	Open:    func(s tool.Server) tool.Tool { return New(Through(s.Outward)) },
	Browses: true,
	Rate:    risk.ByArguments(rate),
	Legacy:  legacy(),
	Display: tool.Display{Content: tool.Page, Main: "url", ReadOnly: true},
}

func rate(a risk.Arguments) (risk.Rating, string) {
	target, ok := a.Text("url")
	if !ok {
		return risk.Unknown, "The address is missing."
	}
	return risk.Address(target)
}

func legacy() *form.Form {
	f := form.Browse()
	f.Actions = map[string]form.Action{"browse": {Means: []string{"url"}, Read: form.Copies("url", "url")}}
	return &f
}

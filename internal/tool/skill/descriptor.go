package skill

import (
	"deckhand/internal/risk"
	"deckhand/internal/tool"
)

// Descriptor is what others know of the tool.
var Descriptor = tool.Descriptor{
	Name:    Name,
	Open:    func(s tool.Server) tool.Tool { return New(s.Skill) },
	Rate:    risk.Fixed(risk.Low, "It only reads."),
	Display: tool.Display{Main: "name", ReadOnly: true},
}

package glob

import (
	"deckhand/internal/risk"
	"deckhand/internal/tool"
)

// Descriptor is what others know of the tool.
var Descriptor = tool.Descriptor{
	Name:    Name,
	Open:    func(tool.Server) tool.Tool { return Tool{} },
	Rate:    risk.Fixed(risk.Low, "It only reads."),
	Display: tool.Display{Main: "pattern", ReadOnly: true},
}

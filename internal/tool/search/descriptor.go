package search

import (
	"deckhand/internal/risk"
	"deckhand/internal/tool"
)

// Descriptor is what others know of the tool.
var Descriptor = tool.Descriptor{
	Name:    Name,
	Open:    func(s tool.Server) tool.Tool { return New(s.Client, s.SearchURL, s.SearchKey) },
	Browses: true,
	Offered: func(c tool.Conversation) bool { return c.Searches },
	Rate:    risk.ByArguments(rate),
	Display: tool.Display{Main: "query", ReadOnly: true},
}

// maxQuestion is how long a question may be that cannot carry much away.
const maxQuestion = 400

func rate(a risk.Arguments) (risk.Rating, string) {
	query, ok := a.Text("query")
	switch {
	case !ok:
		return risk.Unknown, "The search query is missing."
	case len(query) > maxQuestion:
		return risk.Medium, "The search query is long enough to leak data."
	}
	return risk.Low, "It only queries a search engine."
}

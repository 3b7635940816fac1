package httpapi

import "slices"

// legacyRoutes are the rows of the table that are there for older clients alone.
func legacyRoutes() []route {
	return slices.Concat([]route{
		op(route{method: "POST", path: "/api/conversations/{conversation_id}/submit-feedback", id: "submitFeedback", tag: tagFeedback, summary: "Say whether the agent did well.", about: aboutFeedback}, submitFeedback),
		op(route{method: "POST", path: "/feedback/conversation", id: "rateConversation", tag: tagFeedback, summary: "Give stars to an event, or to a conversation.", about: aboutFeedback + " Stars replace those that you gave before."}, rateConversation),
		op(route{method: "GET", path: "/feedback/conversation/{conversation_id}/batch", id: "listRatings", tag: tagFeedback, summary: "The stars that you gave to events of a conversation, by their numbers."}, listRatings),
		op(route{method: "GET", path: "/feedback/conversation/{conversation_id}/{event_id}", id: "getRating", tag: tagFeedback, summary: "The stars that you gave to one event."}, getRating),
		op(route{method: "GET", path: "/api/feedback", id: "listFeedback", tag: tagFeedback, admin: true, summary: "What everybody said, newest first, for admin keys."}, listFeedback),

		op(route{method: "GET", path: "/api/conversations/{conversation_id}/vscode-url", id: "getVSCodeURL", tag: tagOlder, summary: "Where an editor is: nowhere."}, getVSCodeURL),
		op(route{method: "POST", path: "/api/conversations/{conversation_id}/exp-config", id: "setExperiment", tag: tagOlder, family: conversation, summary: "Accepted and not used.", about: aboutExperiment}, setExperiment),
		op(route{method: "POST", path: "/api/authenticate", id: "authenticate", tag: tagOlder, summary: "Is this key good?"}, authenticate),
		op(route{method: "POST", path: "/api/accept_tos", id: "acceptTerms", tag: tagOlder, summary: "There are no terms to accept."}, acceptTerms),
		op(route{method: "GET", path: "/api/keys/llm/byor", id: "getModelKey", tag: tagOlder, summary: "There are no keys for models to be had: it answers 404."}, noModelKey),
		op(route{method: "POST", path: "/api/keys/llm/byor/refresh", id: "refreshModelKey", tag: tagOlder, summary: "There are no keys for models to be had: it answers 404."}, noModelKey),
		raw(route{method: "POST", path: "/mcp/mcp", id: "ownMCPAlias", stream: true, tag: tagOlder, summary: "Deckhand as a tool server, where older clients look for it.", about: aboutOwnMCP}, describeOwnMCP, serveOwnMCP),
	},
		security("/api/conversations/{conversation_id}/security/{path}", "conversationSecurity", noAnalyzerHere, "GET", "POST", "PUT", "DELETE"),
		security("/api/security/policy", "securityPolicy", noAnalyzer, "GET", "POST"),
		security("/api/security/settings", "securitySettings", noAnalyzer, "GET", "POST"),
		security("/api/security/export-trace", "securityTrace", noAnalyzer, "GET"))
}

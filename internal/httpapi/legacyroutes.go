package httpapi

import "slices"

// legacyRoutes are the rows of the table that are there for older clients alone.
func legacyRoutes() []route {
	return slices.Concat([]route{
		op(route{method: "POST", path: "/api/conversations/{conversation_id}/submit-feedback", id: "submitFeedback", tag: tagFeedback, summary: "Submit feedback on a conversation", about: aboutFeedback}, submitFeedback),
		op(route{method: "POST", path: "/feedback/conversation", id: "rateConversation", tag: tagFeedback, summary: "Rate an event or a conversation", about: aboutFeedback + " A new rating replaces your previous one."}, rateConversation),
		op(route{method: "GET", path: "/feedback/conversation/{conversation_id}/batch", id: "listRatings", tag: tagFeedback, summary: "List your event ratings in a conversation"}, listRatings),
		op(route{method: "GET", path: "/feedback/conversation/{conversation_id}/{event_id}", id: "getRating", tag: tagFeedback, summary: "Get your rating of an event"}, getRating),
		op(route{method: "GET", path: "/api/feedback", id: "listFeedback", tag: tagFeedback, admin: true, summary: "List all feedback, newest first", about: "Requires an admin key."}, listFeedback),

		op(route{method: "GET", path: "/api/conversations/{conversation_id}/vscode-url", id: "getVSCodeURL", tag: tagOlder, summary: "Get the editor URL (always null)"}, getVSCodeURL),
		op(route{method: "POST", path: "/api/conversations/{conversation_id}/exp-config", id: "setExperiment", tag: tagOlder, family: conversation, summary: "Set experiment configuration (ignored)", about: aboutExperiment}, setExperiment),
		op(route{method: "POST", path: "/api/authenticate", id: "authenticate", tag: tagOlder, summary: "Check that the key is valid"}, authenticate),
		op(route{method: "POST", path: "/api/accept_tos", id: "acceptTerms", tag: tagOlder, summary: "Accept the terms of service (no effect)"}, acceptTerms),
		op(route{method: "GET", path: "/api/keys/llm/byor", id: "getModelKey", tag: tagOlder, summary: "Get a model key (not supported, always 404)"}, noModelKey),
		op(route{method: "POST", path: "/api/keys/llm/byor/refresh", id: "refreshModelKey", tag: tagOlder, summary: "Refresh a model key (not supported, always 404)"}, noModelKey),
		raw(route{method: "POST", path: "/mcp/mcp", id: "ownMCPAlias", stream: true, tag: tagOlder, summary: "Call Deckhand as an MCP server (legacy path)", about: aboutOwnMCP}, describeOwnMCP, serveOwnMCP),
	},
		security("/api/conversations/{conversation_id}/security/{path}", "conversationSecurity", noAnalyzerHere, "GET", "POST", "PUT", "DELETE"),
		security("/api/security/policy", "securityPolicy", noAnalyzer, "GET", "POST"),
		security("/api/security/settings", "securitySettings", noAnalyzer, "GET", "POST"),
		security("/api/security/export-trace", "securityTrace", noAnalyzer, "GET"))
}

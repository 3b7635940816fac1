package httpapi

import "net/http"

// Tags group the routes for readers.
const (
	tagHealth        = "Health"
	tagSettings      = "Settings"
	tagConversations = "Conversations"
	tagEvents        = "Events"
	tagWorkspace     = "Workspace"
	tagKeys          = "Keys"
	tagPages         = "Pages"
)

// table is every route there is. What is not here does not exist; what is here
// needs a key unless it says public.
func table() []route {
	return []route{
		op(route{method: "GET", path: "/alive", id: "alive", tag: tagHealth, public: true, summary: "Is the process there?"}, alive),
		op(route{method: "GET", path: "/health", id: "health", tag: tagHealth, public: true, summary: "The same for older clients."}, health),
		op(route{method: "GET", path: "/ready", id: "ready", tag: tagHealth, public: true, summary: "Can it work? 503 says what is wrong."}, ready),
		op(route{method: "GET", path: "/server_info", id: "serverInfo", tag: tagHealth, public: true, summary: "Version, uptime and resources."}, serverInfo),

		op(route{method: "GET", path: "/api/settings", id: "getSettings", tag: tagSettings, summary: "The settings, with every secret masked."}, getSettings),
		op(route{method: "POST", path: "/api/settings", id: "storeSettings", tag: tagSettings, summary: "Store settings. Omitted fields keep their value, null resets, an empty string clears."}, storeSettings),
		op(route{method: "POST", path: "/api/settings/test-model", id: "testModel", stream: true, tag: tagSettings, summary: "Try a model out.", about: aboutTestModel}, testModel),
		op(route{method: "POST", path: "/api/settings/test-mcp", id: "testMCP", stream: true, tag: tagSettings, summary: "Try tool servers out.", about: aboutTestMCP}, testMCP),
		op(route{method: "GET", path: "/api/options/models", id: "listModels", tag: tagSettings, summary: "Models that are known by name."}, listModels),
		op(route{method: "GET", path: "/api/options/agents", id: "listAgents", tag: tagSettings, summary: "Agent profiles."}, listAgents),
		op(route{method: "GET", path: "/api/options/security-analyzers", id: "listAnalyzers", tag: tagSettings, summary: "Security analyzers."}, listAnalyzers),
		op(route{method: "GET", path: "/api/options/config", id: "getConfig", tag: tagSettings, summary: "What older front ends ask for first."}, getConfig),

		op(route{method: "POST", path: "/api/conversations", id: "createConversation", tag: tagConversations, family: conversation, summary: "Create a conversation; answered after the durable commit."}, createConversation),
		op(route{method: "GET", path: "/api/conversations", id: "listConversations", tag: tagConversations, family: conversation, summary: "Your conversations, newest first."}, listConversations),
		op(route{method: "GET", path: "/api/conversations/{conversation_id}", id: "getConversation", tag: tagConversations, family: conversation, summary: "One conversation, with the reason if it failed."}, getConversation),
		op(route{method: "PATCH", path: "/api/conversations/{conversation_id}", id: "patchConversation", tag: tagConversations, family: conversation, summary: "Give it a title."}, patchConversation),
		op(route{method: "DELETE", path: "/api/conversations/{conversation_id}", id: "deleteConversation", tag: tagConversations, family: conversation, summary: "Delete it for ever."}, deleteConversation),
		op(route{method: "POST", path: "/api/conversations/{conversation_id}/start", id: "startConversation", tag: tagConversations, family: conversation, summary: "Start a stopped conversation again."}, startConversation),
		op(route{method: "POST", path: "/api/conversations/{conversation_id}/stop", id: "stopConversation", tag: tagConversations, family: conversation, summary: "Stop it; a model call under way is aborted."}, stopConversation),

		op(route{method: "GET", path: "/api/conversations/{conversation_id}/mcp", id: "getMCP", tag: tagConversations, family: conversation, summary: "Where its tool servers stand.", about: aboutMCP}, getMCP),
		raw(route{method: "POST", path: "/mcp", id: "ownMCP", stream: true, tag: tagConversations, summary: "Deckhand as a tool server.", about: aboutOwnMCP}, describeOwnMCP, serveOwnMCP),

		op(route{method: "GET", path: "/api/conversations/{conversation_id}/events", id: "listEvents", tag: tagEvents, family: conversation, summary: "Stored events by number."}, listEvents),
		op(route{method: "POST", path: "/api/conversations/{conversation_id}/events", id: "postEvent", tag: tagEvents, family: conversation, summary: "A message, or a change of the agent's state."}, postEvent),
		op(route{method: "POST", path: "/api/conversations/{conversation_id}/message", id: "postMessage", tag: tagEvents, family: conversation, summary: "Say something; queued durably while the agent works."}, postMessage),
		op(route{method: "GET", path: "/api/conversations/{conversation_id}/approvals", id: "getApprovals", tag: tagEvents, family: conversation, summary: "Tool calls that wait for your answer, and what you always allow."}, getApprovals),
		op(route{method: "POST", path: "/api/conversations/{conversation_id}/approvals", id: "postApproval", tag: tagEvents, family: conversation, summary: "Accept or reject the tool call that waits, change it first, or allow all like it."}, postApproval),
		rawOp(route{method: "GET", path: "/api/conversations/{conversation_id}/trajectory", id: "getTrajectory", stream: true, tag: tagEvents, family: conversation, summary: "Everything that happened, to keep or to replay.", about: aboutTrajectory}, describeTrajectory, getTrajectory),
		raw(route{method: "GET", path: "/api/conversations/{conversation_id}/events/stream", id: "streamEvents", stream: true, tag: tagEvents, family: conversation, summary: "Follow the events as server-sent events; resume with Last-Event-ID."}, describeStream, streamEvents),
		raw(route{method: "GET", path: "/api/conversations/{conversation_id}/events/ws", id: "socketEvents", stream: true, tag: tagEvents, family: conversation, summary: "Follow the events over a WebSocket; resume with after=."}, describeSocket, socketEvents),

		op(route{method: "GET", path: "/api/conversations/{conversation_id}/list-files", id: "listFiles", tag: tagWorkspace, summary: "What is in a folder of the workspace, one level deep.", about: aboutListFiles, may: reads}, listFiles),
		rawOp(route{method: "GET", path: "/api/conversations/{conversation_id}/select-file", id: "selectFile", stream: true, tag: tagWorkspace, summary: "Read a file of the workspace.", about: aboutSelectFile, may: append(tooMuch, reads...)}, describeFile, selectFile),
		rawOp(route{method: "GET", path: "/api/conversations/{conversation_id}/zip-directory", id: "zipDirectory", stream: true, tag: tagWorkspace, summary: "Download the workspace as workspace.zip.", about: aboutZip, may: reads}, describeZip, zipDirectory),
		op(route{method: "GET", path: "/api/conversations/{conversation_id}/git/changes", id: "gitChanges", tag: tagWorkspace, summary: "Files that differ from where the work began.", about: aboutChanges, may: reads}, gitChanges),
		op(route{method: "GET", path: "/api/conversations/{conversation_id}/git/diff", id: "gitDiff", tag: tagWorkspace, summary: "One file before and now.", about: aboutDiff, may: append(tooMuch, reads...)}, gitDiff),
		rawOp(route{method: "POST", path: "/api/conversations/{conversation_id}/upload-files", id: "uploadFiles", stream: true, upload: true, tag: tagWorkspace, summary: "Put files into the workspace.", about: aboutUpload, may: append(tooMuch, uses...)}, describeUpload, uploadFiles),
		rawOp(route{method: "GET", path: "/api/conversations/{conversation_id}/terminal", id: "terminal", stream: true, tag: tagWorkspace, summary: "A terminal in the sandbox over a WebSocket.", about: aboutTerminal, may: uses}, describeTerminal, openTerminal),
		op(route{method: "GET", path: "/api/conversations/{conversation_id}/ports", id: "listPorts", tag: tagWorkspace, summary: "TCP ports that something in the sandbox listens on.", about: "Empty while the sandbox does not run.", may: uses}, listPorts),
		op(route{method: "GET", path: "/api/conversations/{conversation_id}/config", id: "getRuntimeConfig", tag: tagWorkspace, summary: "Which sandbox the conversation has.", may: uses[:1]}, getRuntimeConfig),
		op(route{method: "GET", path: "/api/conversations/{conversation_id}/microagents", id: "listMicroagents", tag: tagWorkspace, summary: "Texts that tell the agent how to work.", about: aboutMicroagents, may: reads}, listMicroagents),
		op(route{method: "GET", path: "/api/conversations/{conversation_id}/egress", id: "getEgress", tag: tagWorkspace, summary: "How the sandbox may reach the network, and what it asked for.", about: aboutEgress, may: uses[:1]}, getEgress),
		op(route{method: "PUT", path: "/api/conversations/{conversation_id}/egress", id: "setEgress", tag: tagWorkspace, summary: "Say how the sandbox may reach the network.", about: aboutEgress, may: uses[:1]}, setEgress),

		op(route{method: "GET", path: "/api/keys", id: "listKeys", tag: tagKeys, summary: "Your keys; for an admin key, everybody's."}, listKeys),
		op(route{method: "POST", path: "/api/keys", id: "createKey", tag: tagKeys, status: http.StatusCreated, summary: "Make a key; it is shown this once."}, createKey),
		op(route{method: "DELETE", path: "/api/keys/{key_id}", id: "revokeKey", tag: tagKeys, summary: "Revoke a key and close its streams."}, revokeKey),
		op(route{method: "GET", path: "/api/me", id: "me", tag: tagKeys, summary: "Whose key is this?"}, me),
		op(route{method: "GET", path: "/api/usage", id: "getUsage", tag: tagKeys, summary: "What you spent, and what you may spend.", about: aboutUsage}, getUsage),
		op(route{method: "POST", path: "/api/login", id: "login", tag: tagKeys, public: true, summary: "Trade a login ticket or a key for a browser cookie."}, login),
		op(route{method: "POST", path: "/api/logout", id: "logout", tag: tagKeys, summary: "End the browser login."}, logout),

		raw(route{method: "GET", path: "/openapi.json", id: "openapi", tag: tagPages, summary: "This document."}, describePage("application/json"), serveSpec),
		raw(route{method: "GET", path: "/docs", id: "docs", tag: tagPages, summary: "This document, to read."}, describePage("text/html"), serveDocs),
		raw(route{method: "GET", path: "/login", id: "loginPage", tag: tagPages, public: true, summary: "Where a login link leads."}, describePage("text/html"), serveLogin),
		raw(route{method: "GET", path: "/assets/{name}", id: "asset", tag: tagPages, public: true, summary: "Style and script of the pages."}, describePage("text/css"), serveAsset),
		raw(route{method: "GET", path: "/{$}", id: "home", tag: tagPages, summary: "The home page."}, describePage("text/html"), serveHome),
		raw(route{method: "GET", path: "/metrics", id: "metrics", tag: tagPages, admin: true, summary: "Prometheus metrics, for admin keys."}, describePage("text/plain"), serveMetrics),
	}
}

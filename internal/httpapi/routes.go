package httpapi

import (
	"net/http"
	"slices"

	"deckhand/internal/httpapi/rest"
)

// table is every route there is. What is not here does not exist; what is here
// needs a key unless it says public.
func (d *Door) table() []rest.Route {
	return slices.Concat(d.legacy.Routes(), []rest.Route{
		rest.Op(rest.Route{Method: "GET", Path: "/alive", ID: "alive", Tag: rest.TagHealth, Public: true, Summary: "Liveness probe"}, d.alive),
		rest.Op(rest.Route{Method: "GET", Path: "/health", ID: "health", Tag: rest.TagHealth, Public: true, Summary: "Liveness probe (legacy path)"}, d.health),
		rest.Op(rest.Route{Method: "GET", Path: "/ready", ID: "ready", Tag: rest.TagHealth, Public: true, Summary: "Readiness probe", About: "Returns 503 with the reason if the server cannot work."}, d.ready),
		rest.Op(rest.Route{Method: "GET", Path: "/server_info", ID: "serverInfo", Tag: rest.TagHealth, Public: true, Summary: "Get version, uptime and resource usage"}, d.serverInfo),

		rest.Op(rest.Route{Method: "GET", Path: "/api/settings", ID: "getSettings", Tag: rest.TagSettings, Summary: "Get your settings, with secrets masked"}, d.getSettings),
		rest.Op(rest.Route{Method: "POST", Path: "/api/settings", ID: "storeSettings", Tag: rest.TagSettings, Summary: "Store settings", About: "Omitted fields keep their values, null resets a field to its default, and an empty string clears it."}, d.storeSettings),
		rest.Op(rest.Route{Method: "POST", Path: "/api/settings/test-model", ID: "testModel", Stream: true, Tag: rest.TagSettings, Summary: "Test a model", About: aboutTestModel}, d.testModel),
		rest.Op(rest.Route{Method: "POST", Path: "/api/settings/test-mcp", ID: "testMCP", Stream: true, Tag: rest.TagSettings, Summary: "Test MCP servers", About: aboutTestMCP}, d.testMCP),
		rest.Op(rest.Route{Method: "GET", Path: "/api/options/models", ID: "listModels", Tag: rest.TagSettings, Summary: "List known models"}, d.listModels),
		rest.Op(rest.Route{Method: "GET", Path: "/api/options/agents", ID: "listAgents", Tag: rest.TagSettings, Summary: "List agent profiles"}, d.listAgents),
		rest.Op(rest.Route{Method: "GET", Path: "/api/options/security-analyzers", ID: "listAnalyzers", Tag: rest.TagSettings, Summary: "List security analyzers"}, d.listAnalyzers),
		rest.Op(rest.Route{Method: "GET", Path: "/api/options/config", ID: "getConfig", Tag: rest.TagOlder, Summary: "Get the configuration for legacy front ends"}, d.getConfig),

		rest.Op(rest.Route{Method: "POST", Path: "/api/conversations", ID: "createConversation", Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Create a conversation", About: "The response is sent after the conversation has been stored durably."}, d.createConversation),
		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations", ID: "listConversations", Tag: rest.TagConversations, Family: rest.Conversation, Summary: "List your conversations, newest first"}, d.listConversations),
		rest.Raw(rest.Route{Method: "GET", Path: "/api/conversations/stream", ID: "streamConversations", Stream: true, Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Stream changes to your conversation list (server-sent events)", About: aboutListStream}, describeListStream, d.streamConversations),
		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}", ID: "getConversation", Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Get a conversation", About: "Includes the reason if the conversation failed to start or the last turn ended in an error."}, d.getConversation),
		rest.Op(rest.Route{Method: "PATCH", Path: "/api/conversations/{conversation_id}", ID: "patchConversation", Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Rename a conversation"}, d.patchConversation),
		rest.Op(rest.Route{Method: "DELETE", Path: "/api/conversations/{conversation_id}", ID: "deleteConversation", Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Permanently delete a conversation"}, d.deleteConversation),
		rest.Op(rest.Route{Method: "POST", Path: "/api/conversations/{conversation_id}/start", ID: "startConversation", Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Start a stopped conversation"}, d.startConversation),
		rest.Op(rest.Route{Method: "POST", Path: "/api/conversations/{conversation_id}/stop", ID: "stopConversation", Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Stop a conversation", About: "Aborts the model call and interrupts the command in progress."}, d.stopConversation),

		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/overrides", ID: "getOverrides", Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Get the model and budget overrides of a conversation", About: aboutOverrides}, d.getOverrides),
		rest.Op(rest.Route{Method: "PUT", Path: "/api/conversations/{conversation_id}/overrides", ID: "setOverrides", Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Set the model and budget overrides of a conversation", About: aboutOverrides}, d.setOverrides),
		rest.Op(rest.Route{Method: "POST", Path: "/api/conversations/{conversation_id}/fork", ID: "forkConversation", Stream: true, Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Fork a conversation", About: aboutFork}, d.forkConversation),

		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/trust", ID: "getTrust", Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Get whether a conversation's repository is trusted", About: aboutTrust}, d.getTrust),
		rest.Op(rest.Route{Method: "PUT", Path: "/api/conversations/{conversation_id}/trust", ID: "setTrust", Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Trust or distrust a conversation's repository", About: aboutTrust}, d.setTrust),

		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/mcp", ID: "getMCP", Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Get the status of a conversation's MCP servers", About: aboutMCP}, d.getMCP),
		rest.Raw(rest.Route{Method: "POST", Path: "/mcp", ID: "ownMCP", Stream: true, Tag: rest.TagConversations, Summary: "Call Deckhand as an MCP server", About: aboutOwnMCP}, describeOwnMCP, d.serveOwnMCP),
		rest.Raw(rest.Route{Method: "POST", Path: "/mcp/mcp", ID: "ownMCPAlias", Stream: true, Tag: rest.TagOlder, Summary: "Call Deckhand as an MCP server (legacy path)", About: aboutOwnMCP}, describeOwnMCP, d.serveOwnMCP),

		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/events", ID: "listEvents", Body: true, Tag: rest.TagEvents, Family: rest.Conversation, Summary: "List stored events", About: aboutEvents}, d.listEvents),
		rest.Op(rest.Route{Method: "POST", Path: "/api/conversations/{conversation_id}/events", ID: "postEvent", Tag: rest.TagEvents, Family: rest.Conversation, Summary: "Send a message or change the agent state"}, d.postEvent),
		rest.Op(rest.Route{Method: "POST", Path: "/api/conversations/{conversation_id}/message", ID: "postMessage", Tag: rest.TagEvents, Family: rest.Conversation, Summary: "Send a message to the agent", About: "The message is stored durably and queued while the agent is working."}, d.postMessage),
		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/approvals", ID: "getApprovals", Tag: rest.TagEvents, Family: rest.Conversation, Summary: "List pending tool calls and always-allow rules"}, d.getApprovals),
		rest.Op(rest.Route{Method: "POST", Path: "/api/conversations/{conversation_id}/approvals", ID: "postApproval", Tag: rest.TagEvents, Family: rest.Conversation, Summary: "Approve, edit or reject a pending tool call", About: "An approval can also allow all similar calls from now on."}, d.postApproval),
		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/queue", ID: "getQueue", Tag: rest.TagEvents, Family: rest.Conversation, Summary: "List queued messages", About: aboutQueue}, d.getQueue),
		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/timeline", ID: "getTimeline", Tag: rest.TagEvents, Family: rest.Conversation, Summary: "Get a time breakdown: queue, sandbox, model, tools, approvals", About: aboutTimeline}, d.getTimeline),
		rest.RawOp(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/trajectory", ID: "getTrajectory", Stream: true, Tag: rest.TagEvents, Family: rest.Conversation, Summary: "Export the trajectory of a conversation", About: aboutTrajectory}, describeTrajectory, d.getTrajectory),
		rest.Raw(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/events/stream", ID: "streamEvents", Stream: true, Tag: rest.TagEvents, Family: rest.Conversation, Summary: "Stream events (server-sent events)", About: "Resume after a disconnect with the header Last-Event-ID."}, describeStream, d.streamEvents),
		rest.Raw(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/events/ws", ID: "socketEvents", Stream: true, Tag: rest.TagEvents, Family: rest.Conversation, Summary: "Stream events over a WebSocket", About: "Resume after a disconnect with the query parameter after."}, describeSocket, d.socketEvents),

		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/microagents", ID: "listMicroagents", Tag: rest.TagWorkspace, Summary: "List microagents available to a conversation", About: aboutMicroagents, May: rest.WorkspaceErrors}, d.listMicroagents),

		rest.Op(rest.Route{Method: "GET", Path: "/api/microagent-management/conversations", ID: "microagentConversations", Tag: rest.TagGit, Family: rest.Conversation, Summary: "List conversations that write microagents, newest first"}, d.microagentConversations),
		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/remember-prompt", ID: "rememberPrompt", Stream: true, Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Generate a prompt for a microagent from a conversation", About: aboutRemember}, d.rememberPrompt),

		rest.Op(rest.Route{Method: "GET", Path: "/api/trusted-repositories", ID: "getTrustedRepositories", Tag: rest.TagSettings, Summary: "List trusted repositories", About: aboutTrust}, d.getTrusted),
		rest.Op(rest.Route{Method: "PUT", Path: "/api/trusted-repositories", ID: "setTrustedRepositories", Tag: rest.TagSettings, Summary: "Replace the list of trusted repositories", About: aboutTrust}, d.setTrusted),
		rest.Op(rest.Route{Method: "GET", Path: "/api/secrets", ID: "listSecrets", Tag: rest.TagSettings, Summary: "List custom secrets, without their values"}, d.listSecrets),
		rest.Op(rest.Route{Method: "POST", Path: "/api/secrets", ID: "createSecret", Tag: rest.TagSettings, Status: http.StatusCreated, Summary: "Add a custom secret"}, d.createSecret),
		rest.Op(rest.Route{Method: "PUT", Path: "/api/secrets/{secret_id}", ID: "editSecret", Tag: rest.TagSettings, Summary: "Update a custom secret", About: "Changes the name, description or repositories. The value is kept; to change it, use secrets_store in POST /api/settings."}, d.editSecret),
		rest.Op(rest.Route{Method: "DELETE", Path: "/api/secrets/{secret_id}", ID: "deleteSecret", Tag: rest.TagSettings, Summary: "Delete a custom secret"}, d.deleteSecret),
		rest.Op(rest.Route{Method: "POST", Path: "/api/reset-settings", ID: "resetSettings", Tag: rest.TagOlder, Summary: "Reset settings (removed, always 410)"}, d.resetSettings),

		rest.Op(rest.Route{Method: "GET", Path: "/api/keys", ID: "listKeys", Tag: rest.TagKeys, Summary: "List keys: your own, or all with an admin key"}, d.listKeys),
		rest.Op(rest.Route{Method: "POST", Path: "/api/keys", ID: "createKey", Tag: rest.TagKeys, Status: http.StatusCreated, Summary: "Create a key", About: "The key is shown only once."}, d.createKey),
		rest.Op(rest.Route{Method: "DELETE", Path: "/api/keys/{key_id}", ID: "revokeKey", Tag: rest.TagKeys, Summary: "Revoke a key and close its streams"}, d.revokeKey),
		rest.Op(rest.Route{Method: "GET", Path: "/api/me", ID: "me", Tag: rest.TagKeys, Summary: "Get the user of this key"}, d.me),
		rest.Op(rest.Route{Method: "GET", Path: "/api/usage", ID: "getUsage", Tag: rest.TagKeys, Summary: "Get spending and spending limit", About: aboutUsage}, d.getUsage),
		rest.Op(rest.Route{Method: "GET", Path: "/api/users", ID: "listUsers", Admin: true, Tag: rest.TagKeys, Summary: "List users", About: aboutUsers}, d.listUsers),
		rest.Op(rest.Route{Method: "POST", Path: "/api/users", ID: "createUser", Admin: true, Tag: rest.TagKeys, Status: http.StatusCreated, Summary: "Create a user", About: aboutUsers}, d.createUser),
		rest.Op(rest.Route{Method: "PATCH", Path: "/api/users/{name}", ID: "patchUser", Admin: true, Tag: rest.TagKeys, Summary: "Disable or enable a user, or confirm an e-mail address", About: aboutUsers}, d.patchUser),

		rest.Raw(rest.Route{Method: "GET", Path: "/openapi.json", ID: "openapi", Tag: rest.TagPages, Summary: "Get this OpenAPI document"}, rest.DescribePage("application/json"), d.serveSpec),
		rest.Raw(rest.Route{Method: "GET", Path: "/metrics", ID: "metrics", Tag: rest.TagPages, Admin: true, Summary: "Get Prometheus metrics", About: "Requires an admin key."}, rest.DescribePage("text/plain"), d.serveMetrics),
	}, d.files.Routes(), d.git.Routes(), d.hooks.Routes(), d.ports.Routes(), d.pages.Routes())
}

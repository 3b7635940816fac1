package httpapi

import "net/http"

// Tags group the routes for readers.
const (
	tagHealth        = "Health"
	tagSettings      = "Settings"
	tagConversations = "Conversations"
	tagEvents        = "Events"
	tagWorkspace     = "Workspace"
	tagGit           = "Git providers"
	tagKeys          = "Keys"
	tagFeedback      = "Feedback"
	tagWebhooks      = "Webhooks"
	tagIntegrations  = "Integrations"
	tagPages         = "Pages"
	tagOlder         = "Older clients"
)

// table is every route there is. What is not here does not exist; what is here
// needs a key unless it says public.
func table() []route {
	return append(legacyRoutes(), []route{
		op(route{method: "GET", path: "/alive", id: "alive", tag: tagHealth, public: true, summary: "Liveness probe"}, alive),
		op(route{method: "GET", path: "/health", id: "health", tag: tagHealth, public: true, summary: "Liveness probe (legacy path)"}, health),
		op(route{method: "GET", path: "/ready", id: "ready", tag: tagHealth, public: true, summary: "Readiness probe", about: "Returns 503 with the reason if the server cannot work."}, ready),
		op(route{method: "GET", path: "/server_info", id: "serverInfo", tag: tagHealth, public: true, summary: "Get version, uptime and resource usage"}, serverInfo),

		op(route{method: "GET", path: "/api/settings", id: "getSettings", tag: tagSettings, summary: "Get your settings, with secrets masked"}, getSettings),
		op(route{method: "POST", path: "/api/settings", id: "storeSettings", tag: tagSettings, summary: "Store settings", about: "Omitted fields keep their values, null resets a field to its default, and an empty string clears it."}, storeSettings),
		op(route{method: "POST", path: "/api/settings/test-model", id: "testModel", stream: true, tag: tagSettings, summary: "Test a model", about: aboutTestModel}, testModel),
		op(route{method: "POST", path: "/api/settings/test-mcp", id: "testMCP", stream: true, tag: tagSettings, summary: "Test MCP servers", about: aboutTestMCP}, testMCP),
		op(route{method: "GET", path: "/api/options/models", id: "listModels", tag: tagSettings, summary: "List known models"}, listModels),
		op(route{method: "GET", path: "/api/options/agents", id: "listAgents", tag: tagSettings, summary: "List agent profiles"}, listAgents),
		op(route{method: "GET", path: "/api/options/security-analyzers", id: "listAnalyzers", tag: tagSettings, summary: "List security analyzers"}, listAnalyzers),
		op(route{method: "GET", path: "/api/options/config", id: "getConfig", tag: tagOlder, summary: "Get the configuration for legacy front ends"}, getConfig),

		op(route{method: "POST", path: "/api/conversations", id: "createConversation", tag: tagConversations, family: conversation, summary: "Create a conversation", about: "The response is sent after the conversation has been stored durably."}, createConversation),
		op(route{method: "GET", path: "/api/conversations", id: "listConversations", tag: tagConversations, family: conversation, summary: "List your conversations, newest first"}, listConversations),
		raw(route{method: "GET", path: "/api/conversations/stream", id: "streamConversations", stream: true, tag: tagConversations, family: conversation, summary: "Stream changes to your conversation list (server-sent events)", about: aboutListStream}, describeListStream, streamConversations),
		op(route{method: "GET", path: "/api/conversations/{conversation_id}", id: "getConversation", tag: tagConversations, family: conversation, summary: "Get a conversation", about: "Includes the reason if the conversation failed to start or the last turn ended in an error."}, getConversation),
		op(route{method: "PATCH", path: "/api/conversations/{conversation_id}", id: "patchConversation", tag: tagConversations, family: conversation, summary: "Rename a conversation"}, patchConversation),
		op(route{method: "DELETE", path: "/api/conversations/{conversation_id}", id: "deleteConversation", tag: tagConversations, family: conversation, summary: "Permanently delete a conversation"}, deleteConversation),
		op(route{method: "POST", path: "/api/conversations/{conversation_id}/start", id: "startConversation", tag: tagConversations, family: conversation, summary: "Start a stopped conversation"}, startConversation),
		op(route{method: "POST", path: "/api/conversations/{conversation_id}/stop", id: "stopConversation", tag: tagConversations, family: conversation, summary: "Stop a conversation", about: "Aborts the model call and interrupts the command in progress."}, stopConversation),

		op(route{method: "GET", path: "/api/conversations/{conversation_id}/overrides", id: "getOverrides", tag: tagConversations, family: conversation, summary: "Get the model and budget overrides of a conversation", about: aboutOverrides}, getOverrides),
		op(route{method: "PUT", path: "/api/conversations/{conversation_id}/overrides", id: "setOverrides", tag: tagConversations, family: conversation, summary: "Set the model and budget overrides of a conversation", about: aboutOverrides}, setOverrides),
		op(route{method: "POST", path: "/api/conversations/{conversation_id}/fork", id: "forkConversation", stream: true, tag: tagConversations, family: conversation, summary: "Fork a conversation", about: aboutFork}, forkConversation),

		op(route{method: "GET", path: "/api/conversations/{conversation_id}/trust", id: "getTrust", tag: tagConversations, family: conversation, summary: "Get whether a conversation's repository is trusted", about: aboutTrust}, getTrust),
		op(route{method: "PUT", path: "/api/conversations/{conversation_id}/trust", id: "setTrust", tag: tagConversations, family: conversation, summary: "Trust or distrust a conversation's repository", about: aboutTrust}, setTrust),

		op(route{method: "GET", path: "/api/conversations/{conversation_id}/mcp", id: "getMCP", tag: tagConversations, family: conversation, summary: "Get the status of a conversation's MCP servers", about: aboutMCP}, getMCP),
		raw(route{method: "POST", path: "/mcp", id: "ownMCP", stream: true, tag: tagConversations, summary: "Call Deckhand as an MCP server", about: aboutOwnMCP}, describeOwnMCP, serveOwnMCP),

		op(route{method: "GET", path: "/api/conversations/{conversation_id}/events", id: "listEvents", body: true, tag: tagEvents, family: conversation, summary: "List stored events", about: aboutEvents}, listEvents),
		op(route{method: "POST", path: "/api/conversations/{conversation_id}/events", id: "postEvent", tag: tagEvents, family: conversation, summary: "Send a message or change the agent state"}, postEvent),
		op(route{method: "POST", path: "/api/conversations/{conversation_id}/message", id: "postMessage", tag: tagEvents, family: conversation, summary: "Send a message to the agent", about: "The message is stored durably and queued while the agent is working."}, postMessage),
		op(route{method: "GET", path: "/api/conversations/{conversation_id}/approvals", id: "getApprovals", tag: tagEvents, family: conversation, summary: "List pending tool calls and always-allow rules"}, getApprovals),
		op(route{method: "POST", path: "/api/conversations/{conversation_id}/approvals", id: "postApproval", tag: tagEvents, family: conversation, summary: "Approve, edit or reject a pending tool call", about: "An approval can also allow all similar calls from now on."}, postApproval),
		op(route{method: "GET", path: "/api/conversations/{conversation_id}/queue", id: "getQueue", tag: tagEvents, family: conversation, summary: "List queued messages", about: aboutQueue}, getQueue),
		op(route{method: "GET", path: "/api/conversations/{conversation_id}/timeline", id: "getTimeline", tag: tagEvents, family: conversation, summary: "Get a time breakdown: queue, sandbox, model, tools, approvals", about: aboutTimeline}, getTimeline),
		rawOp(route{method: "GET", path: "/api/conversations/{conversation_id}/trajectory", id: "getTrajectory", stream: true, tag: tagEvents, family: conversation, summary: "Export the trajectory of a conversation", about: aboutTrajectory}, describeTrajectory, getTrajectory),
		raw(route{method: "GET", path: "/api/conversations/{conversation_id}/events/stream", id: "streamEvents", stream: true, tag: tagEvents, family: conversation, summary: "Stream events (server-sent events)", about: "Resume after a disconnect with the header Last-Event-ID."}, describeStream, streamEvents),
		raw(route{method: "GET", path: "/api/conversations/{conversation_id}/events/ws", id: "socketEvents", stream: true, tag: tagEvents, family: conversation, summary: "Stream events over a WebSocket", about: "Resume after a disconnect with the query parameter after."}, describeSocket, socketEvents),
		raw(route{method: "GET", path: "/socket.io/{$}", id: "socketIO", stream: true, public: true, tag: tagEvents, summary: "Stream events over Socket.IO", about: aboutSocketIO}, describeSocketIO, serveSocketIO),
		raw(route{method: "POST", path: "/socket.io/{$}", id: "socketIOSend", stream: true, public: true, upload: true, tag: tagEvents, summary: "Send Socket.IO packets (long-polling)", about: aboutSocketIO}, describeSocketIO, serveSocketIO),
		raw(route{method: "GET", path: "/socket.io", id: "socketIOBare", stream: true, public: true, tag: tagEvents, summary: "Stream events over Socket.IO (path without trailing slash)", about: aboutSocketIO}, describeSocketIO, serveSocketIO),
		raw(route{method: "POST", path: "/socket.io", id: "socketIOBareSend", stream: true, public: true, upload: true, tag: tagEvents, summary: "Send Socket.IO packets (path without trailing slash)", about: aboutSocketIO}, describeSocketIO, serveSocketIO),

		op(route{method: "GET", path: "/api/conversations/{conversation_id}/list-files", id: "listFiles", tag: tagWorkspace, summary: "List a workspace folder", about: aboutListFiles, may: reads}, listFiles),
		rawOp(route{method: "GET", path: "/api/conversations/{conversation_id}/select-file", id: "selectFile", stream: true, tag: tagWorkspace, summary: "Read a workspace file", about: aboutSelectFile, may: append(tooMuch, reads...)}, describeFile, selectFile),
		rawOp(route{method: "GET", path: "/api/conversations/{conversation_id}/file", id: "getFile", stream: true, tag: tagWorkspace, summary: "Download a workspace file", about: aboutGetFile, may: reads}, describeBytes, getFile),
		op(route{method: "PUT", path: "/api/conversations/{conversation_id}/file", id: "saveFile", stream: true, tag: tagWorkspace, summary: "Write a workspace file", about: aboutSaveFile, may: append(tooMuch, uses...)}, saveFile),
		rawOp(route{method: "GET", path: "/api/conversations/{conversation_id}/zip-directory", id: "zipDirectory", stream: true, tag: tagWorkspace, summary: "Download the workspace as workspace.zip", about: aboutZip, may: reads}, describeZip, zipDirectory),
		op(route{method: "GET", path: "/api/conversations/{conversation_id}/git/changes", id: "gitChanges", tag: tagWorkspace, summary: "List changed files", about: aboutChanges, may: reads}, gitChanges),
		op(route{method: "GET", path: "/api/conversations/{conversation_id}/git/diff", id: "gitDiff", tag: tagWorkspace, summary: "Get the old and new content of a changed file", about: aboutDiff, may: append(tooMuch, reads...)}, gitDiff),
		rawOp(route{method: "POST", path: "/api/conversations/{conversation_id}/upload-files", id: "uploadFiles", stream: true, upload: true, tag: tagWorkspace, summary: "Upload files to the workspace", about: aboutUpload, may: append(tooMuch, uses...)}, describeUpload, uploadFiles),
		rawOp(route{method: "GET", path: "/api/conversations/{conversation_id}/terminal", id: "terminal", stream: true, tag: tagWorkspace, summary: "Open a terminal in the sandbox over a WebSocket", about: aboutTerminal, may: uses}, describeTerminal, openTerminal),
		op(route{method: "GET", path: "/api/conversations/{conversation_id}/ports", id: "listPorts", tag: tagWorkspace, summary: "List the TCP ports that are open in the sandbox", about: "The list is empty while the sandbox is not running.", may: uses}, listPorts),
		op(route{method: "GET", path: "/api/conversations/{conversation_id}/web-hosts", id: "listWebHosts", tag: tagWorkspace, summary: "List the URLs of web servers in the sandbox", about: aboutWebHosts, may: uses}, listWebHosts),
		op(route{method: "GET", path: "/api/conversations/{conversation_id}/config", id: "getRuntimeConfig", tag: tagWorkspace, summary: "Get the sandbox of a conversation", may: uses[:1]}, getRuntimeConfig),
		op(route{method: "GET", path: "/api/conversations/{conversation_id}/microagents", id: "listMicroagents", tag: tagWorkspace, summary: "List microagents available to a conversation", about: aboutMicroagents, may: reads}, listMicroagents),
		op(route{method: "GET", path: "/api/conversations/{conversation_id}/egress", id: "getEgress", tag: tagWorkspace, summary: "Get the network policy and requests of a sandbox", about: aboutEgress, may: uses[:1]}, getEgress),
		op(route{method: "PUT", path: "/api/conversations/{conversation_id}/egress", id: "setEgress", tag: tagWorkspace, summary: "Set the network policy of a sandbox", about: aboutEgress, may: uses[:1]}, setEgress),

		op(route{method: "POST", path: "/api/add-git-providers", id: "addGitProviders", stream: true, tag: tagGit, summary: "Store git provider tokens", about: aboutAddProviders}, addGitProviders),
		op(route{method: "POST", path: "/api/unset-provider-tokens", id: "unsetProviderTokens", tag: tagGit, summary: "Delete all git provider tokens", about: "Custom secrets are kept."}, unsetProviderTokens),
		op(route{method: "GET", path: "/api/user/info", id: "gitUser", stream: true, tag: tagGit, family: bare, summary: "Get your git provider profile"}, gitUser),
		op(route{method: "GET", path: "/api/user/installations", id: "gitInstallations", stream: true, tag: tagGit, family: bare, summary: "List GitHub app installations or Bitbucket workspaces"}, gitInstallations),
		op(route{method: "GET", path: "/api/user/repositories", id: "gitRepositories", stream: true, tag: tagGit, family: bare, summary: "List your repositories", about: aboutRepositories}, gitRepositories),
		op(route{method: "GET", path: "/api/user/search/repositories", id: "searchRepositories", stream: true, tag: tagGit, family: bare, summary: "Search repositories by name or URL", about: aboutSeveral}, searchRepositories),
		op(route{method: "GET", path: "/api/user/search/branches", id: "searchBranches", stream: true, tag: tagGit, family: bare, summary: "Search branches by name"}, searchBranches),
		op(route{method: "GET", path: "/api/user/repository/branches", id: "gitBranches", stream: true, tag: tagGit, family: bare, summary: "List the branches of a repository", about: aboutBranches}, gitBranches),
		op(route{method: "GET", path: "/api/user/repository/{repository_name}/microagents", id: "repositoryMicroagents", stream: true, tag: tagGit, family: bare, summary: "List the microagents of a repository", about: aboutRepositoryName}, repositoryMicroagents),
		op(route{method: "GET", path: "/api/user/repository/{repository_name}/microagents/content", id: "repositoryMicroagent", stream: true, tag: tagGit, family: bare, summary: "Get a microagent of a repository", about: aboutRepositoryName}, repositoryMicroagent),
		op(route{method: "GET", path: "/api/user/suggested-tasks", id: "suggestedTasks", stream: true, tag: tagGit, family: bare, summary: "List suggested tasks from your git providers", about: aboutTasks}, suggestedTasks),
		op(route{method: "GET", path: "/api/starters", id: "starters", stream: true, tag: tagGit, summary: "List conversation starters for the home page", about: aboutStarters}, starters),
		op(route{method: "GET", path: "/api/microagent-management/conversations", id: "microagentConversations", tag: tagGit, family: conversation, summary: "List conversations that write microagents, newest first"}, microagentConversations),
		op(route{method: "GET", path: "/api/conversations/{conversation_id}/remember-prompt", id: "rememberPrompt", stream: true, tag: tagConversations, family: conversation, summary: "Generate a prompt for a microagent from a conversation", about: aboutRemember}, rememberPrompt),

		op(route{method: "GET", path: "/api/trusted-repositories", id: "getTrustedRepositories", tag: tagSettings, summary: "List trusted repositories", about: aboutTrust}, getTrusted),
		op(route{method: "PUT", path: "/api/trusted-repositories", id: "setTrustedRepositories", tag: tagSettings, summary: "Replace the list of trusted repositories", about: aboutTrust}, setTrusted),
		op(route{method: "GET", path: "/api/secrets", id: "listSecrets", tag: tagSettings, summary: "List custom secrets, without their values"}, listSecrets),
		op(route{method: "POST", path: "/api/secrets", id: "createSecret", tag: tagSettings, status: http.StatusCreated, summary: "Add a custom secret"}, createSecret),
		op(route{method: "PUT", path: "/api/secrets/{secret_id}", id: "editSecret", tag: tagSettings, summary: "Update a custom secret", about: "Changes the name, description or repositories. The value is kept; to change it, use secrets_store in POST /api/settings."}, editSecret),
		op(route{method: "DELETE", path: "/api/secrets/{secret_id}", id: "deleteSecret", tag: tagSettings, summary: "Delete a custom secret"}, deleteSecret),
		op(route{method: "POST", path: "/api/reset-settings", id: "resetSettings", tag: tagOlder, summary: "Reset settings (removed, always 410)"}, resetSettings),

		op(route{method: "GET", path: "/api/keys", id: "listKeys", tag: tagKeys, summary: "List keys: your own, or all with an admin key"}, listKeys),
		op(route{method: "POST", path: "/api/keys", id: "createKey", tag: tagKeys, status: http.StatusCreated, summary: "Create a key", about: "The key is shown only once."}, createKey),
		op(route{method: "DELETE", path: "/api/keys/{key_id}", id: "revokeKey", tag: tagKeys, summary: "Revoke a key and close its streams"}, revokeKey),
		op(route{method: "GET", path: "/api/me", id: "me", tag: tagKeys, summary: "Get the user of this key"}, me),
		op(route{method: "GET", path: "/api/usage", id: "getUsage", tag: tagKeys, summary: "Get spending and spending limit", about: aboutUsage}, getUsage),
		op(route{method: "GET", path: "/api/users", id: "listUsers", admin: true, tag: tagKeys, summary: "List users", about: aboutUsers}, listUsers),
		op(route{method: "POST", path: "/api/users", id: "createUser", admin: true, tag: tagKeys, status: http.StatusCreated, summary: "Create a user", about: aboutUsers}, createUser),
		op(route{method: "PATCH", path: "/api/users/{name}", id: "patchUser", admin: true, tag: tagKeys, summary: "Disable or enable a user, or confirm an e-mail address", about: aboutUsers}, patchUser),
		op(route{method: "GET", path: "/api/login/options", id: "loginOptions", tag: tagKeys, public: true, summary: "List login methods"}, loginOptions),
		op(route{method: "POST", path: "/api/login", id: "login", tag: tagKeys, public: true, summary: "Exchange a login ticket or a key for a session cookie"}, login),
		op(route{method: "POST", path: "/api/logout", id: "logout", tag: tagKeys, summary: "Log out of the browser session"}, logout),

		op(route{method: "GET", path: "/api/webhooks", id: "listWebhooks", tag: tagWebhooks, summary: "List your webhooks", about: aboutWebhooks}, listWebhooks),
		op(route{method: "POST", path: "/api/webhooks", id: "createWebhook", tag: tagWebhooks, status: http.StatusCreated, summary: "Create a webhook", about: aboutWebhooks}, createWebhook),
		op(route{method: "GET", path: "/api/webhooks/{webhook_id}", id: "getWebhook", tag: tagWebhooks, summary: "Get a webhook", about: "Includes the reason if the server disabled the webhook."}, getWebhook),
		op(route{method: "PATCH", path: "/api/webhooks/{webhook_id}", id: "patchWebhook", tag: tagWebhooks, summary: "Update a webhook, enable it or rotate its secret"}, patchWebhook),
		op(route{method: "DELETE", path: "/api/webhooks/{webhook_id}", id: "deleteWebhook", tag: tagWebhooks, summary: "Delete a webhook and its delivery history"}, deleteWebhook),
		op(route{method: "POST", path: "/api/webhooks/{webhook_id}/test", id: "testWebhook", tag: tagWebhooks, status: http.StatusAccepted, summary: "Send a test delivery", about: aboutWebhookTest}, testWebhook),
		op(route{method: "GET", path: "/api/webhooks/{webhook_id}/deliveries", id: "listDeliveries", tag: tagWebhooks, summary: "List webhook deliveries, newest first"}, listDeliveries),
		op(route{method: "POST", path: "/api/webhooks/{webhook_id}/deliveries/{delivery_id}/retry", id: "retryDelivery", tag: tagWebhooks, status: http.StatusAccepted, summary: "Retry a webhook delivery"}, retryDelivery),

		op(route{method: "GET", path: "/api/integrations", id: "listIntegrations", tag: tagIntegrations, summary: "List your integrations", about: aboutIntegrations}, listIntegrations),
		op(route{method: "POST", path: "/api/integrations", id: "createIntegration", stream: true, tag: tagIntegrations, status: http.StatusCreated, summary: "Create an integration with a git provider", about: aboutIntegrations}, createIntegration),
		op(route{method: "GET", path: "/api/integrations/{integration_id}", id: "getIntegration", tag: tagIntegrations, summary: "Get an integration"}, getIntegration),
		op(route{method: "PATCH", path: "/api/integrations/{integration_id}", id: "patchIntegration", stream: true, tag: tagIntegrations, summary: "Update an integration or rotate its secret"}, patchIntegration),
		op(route{method: "DELETE", path: "/api/integrations/{integration_id}", id: "deleteIntegration", tag: tagIntegrations, summary: "Delete an integration and its delivery history"}, deleteIntegration),
		op(route{method: "GET", path: "/api/integrations/{integration_id}/deliveries", id: "listArrivals", tag: tagIntegrations, summary: "List received deliveries, newest first"}, listArrivals),
		rawOp(route{method: "POST", path: "/integrations/{provider}/webhook", id: "receiveWebhook", public: true, upload: true, tag: tagIntegrations, summary: "Receive a webhook delivery from a git provider", about: aboutArrival}, describeArrival, receiveWebhook),

		raw(route{method: "GET", path: "/openapi.json", id: "openapi", tag: tagPages, summary: "Get this OpenAPI document"}, describePage("application/json"), serveSpec),
		raw(route{method: "GET", path: "/docs", id: "docs", tag: tagPages, summary: "Read this API reference as a web page"}, describePage("text/html"), serveDocs),
		raw(route{method: "GET", path: "/manual/{$}", id: "manual", tag: tagPages, summary: "Read the manual"}, describePage("text/html"), serveManual),
		raw(route{method: "GET", path: "/manual/{page}", id: "manualPage", tag: tagPages, summary: "Get a manual page"}, describePage("text/html"), serveManual),
		raw(route{method: "GET", path: "/manual/{folder}/{page}", id: "manualPart", tag: tagPages, summary: "Get a manual page or picture in a subfolder"}, describePage("text/html"), serveManual),
		raw(route{method: "GET", path: "/login", id: "loginPage", tag: tagPages, public: true, summary: "Show the login page"}, describePage("text/html"), serveLogin),
		rawOp(route{method: "GET", path: signOnPath, id: "startSignOn", tag: tagPages, public: true, stream: true, summary: "Start single sign-on", about: aboutSignOn}, describeRedirect, startSignOn),
		raw(route{method: "GET", path: callbackPath, id: "finishSignOn", tag: tagPages, public: true, stream: true, summary: "Complete single sign-on", about: aboutCallback}, describeCallback, finishSignOn),
		raw(route{method: "GET", path: "/assets/deckhand/{name}", id: "asset", tag: tagPages, public: true, summary: "Get a stylesheet or script of the plain pages"}, describePage("text/css"), serveAsset),
		raw(route{method: "GET", path: "/" + pageFolder + "/{name}", id: "pageFile", yields: true, public: true, tag: tagPages, summary: "Get a file of the web page"}, describePage("text/javascript"), serveUI),
		raw(route{method: "GET", path: "/{$}", id: "home", yields: true, public: true, tag: tagPages, summary: "Show the home page"}, describePage("text/html"), servePage),
		raw(route{method: "GET", path: "/conversations/{conversation_id}", id: "conversationPage", yields: true, public: true, tag: tagPages, summary: "Show a conversation"}, describePage("text/html"), servePage),
		raw(route{method: "GET", path: "/conversations/{conversation_id}/{tab}", id: "workspacePage", yields: true, public: true, tag: tagPages, summary: "Show a tab of a conversation"}, describePage("text/html"), servePage),
		raw(route{method: "GET", path: "/settings", id: "settingsPage", yields: true, public: true, tag: tagPages, summary: "Show the settings page"}, describePage("text/html"), servePage),
		raw(route{method: "GET", path: "/settings/{tab}", id: "settingsTab", yields: true, public: true, tag: tagPages, summary: "Show a section of the settings page"}, describePage("text/html"), servePage),
		raw(route{method: "GET", path: "/metrics", id: "metrics", tag: tagPages, admin: true, summary: "Get Prometheus metrics", about: "Requires an admin key."}, describePage("text/plain"), serveMetrics),
	}...)
}

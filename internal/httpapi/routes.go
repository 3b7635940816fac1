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
		op(route{method: "GET", path: "/api/options/config", id: "getConfig", tag: tagOlder, summary: "What older front ends ask for first."}, getConfig),

		op(route{method: "POST", path: "/api/conversations", id: "createConversation", tag: tagConversations, family: conversation, summary: "Create a conversation; answered after the durable commit."}, createConversation),
		op(route{method: "GET", path: "/api/conversations", id: "listConversations", tag: tagConversations, family: conversation, summary: "Your conversations, newest first."}, listConversations),
		raw(route{method: "GET", path: "/api/conversations/stream", id: "streamConversations", stream: true, tag: tagConversations, family: conversation, summary: "Follow the list of your conversations as server-sent events.", about: aboutListStream}, describeListStream, streamConversations),
		op(route{method: "GET", path: "/api/conversations/{conversation_id}", id: "getConversation", tag: tagConversations, family: conversation, summary: "One conversation, with the reason if it failed."}, getConversation),
		op(route{method: "PATCH", path: "/api/conversations/{conversation_id}", id: "patchConversation", tag: tagConversations, family: conversation, summary: "Give it a title."}, patchConversation),
		op(route{method: "DELETE", path: "/api/conversations/{conversation_id}", id: "deleteConversation", tag: tagConversations, family: conversation, summary: "Delete it for ever."}, deleteConversation),
		op(route{method: "POST", path: "/api/conversations/{conversation_id}/start", id: "startConversation", tag: tagConversations, family: conversation, summary: "Start a stopped conversation again."}, startConversation),
		op(route{method: "POST", path: "/api/conversations/{conversation_id}/stop", id: "stopConversation", tag: tagConversations, family: conversation, summary: "Stop it; a model call under way is aborted."}, stopConversation),

		op(route{method: "GET", path: "/api/conversations/{conversation_id}/overrides", id: "getOverrides", tag: tagConversations, family: conversation, summary: "Model and budget of this conversation alone.", about: aboutOverrides}, getOverrides),
		op(route{method: "PUT", path: "/api/conversations/{conversation_id}/overrides", id: "setOverrides", tag: tagConversations, family: conversation, summary: "Choose model and budget for this conversation alone.", about: aboutOverrides}, setOverrides),
		op(route{method: "POST", path: "/api/conversations/{conversation_id}/fork", id: "forkConversation", stream: true, tag: tagConversations, family: conversation, summary: "Make a copy that goes its own way.", about: aboutFork}, forkConversation),

		op(route{method: "GET", path: "/api/conversations/{conversation_id}/trust", id: "getTrust", tag: tagConversations, family: conversation, summary: "Get whether its repository is trusted.", about: aboutTrust}, getTrust),
		op(route{method: "PUT", path: "/api/conversations/{conversation_id}/trust", id: "setTrust", tag: tagConversations, family: conversation, summary: "Trust its repository, or stop trusting it.", about: aboutTrust}, setTrust),

		op(route{method: "GET", path: "/api/conversations/{conversation_id}/mcp", id: "getMCP", tag: tagConversations, family: conversation, summary: "Where its tool servers stand.", about: aboutMCP}, getMCP),
		raw(route{method: "POST", path: "/mcp", id: "ownMCP", stream: true, tag: tagConversations, summary: "Deckhand as a tool server.", about: aboutOwnMCP}, describeOwnMCP, serveOwnMCP),

		op(route{method: "GET", path: "/api/conversations/{conversation_id}/events", id: "listEvents", body: true, tag: tagEvents, family: conversation, summary: "Stored events by number.", about: aboutEvents}, listEvents),
		op(route{method: "POST", path: "/api/conversations/{conversation_id}/events", id: "postEvent", tag: tagEvents, family: conversation, summary: "A message, or a change of the agent's state."}, postEvent),
		op(route{method: "POST", path: "/api/conversations/{conversation_id}/message", id: "postMessage", tag: tagEvents, family: conversation, summary: "Say something; queued durably while the agent works."}, postMessage),
		op(route{method: "GET", path: "/api/conversations/{conversation_id}/approvals", id: "getApprovals", tag: tagEvents, family: conversation, summary: "Tool calls that wait for your answer, and what you always allow."}, getApprovals),
		op(route{method: "POST", path: "/api/conversations/{conversation_id}/approvals", id: "postApproval", tag: tagEvents, family: conversation, summary: "Accept or reject the tool call that waits, change it first, or allow all like it."}, postApproval),
		op(route{method: "GET", path: "/api/conversations/{conversation_id}/queue", id: "getQueue", tag: tagEvents, family: conversation, summary: "Messages that the agent has not taken up yet.", about: aboutQueue}, getQueue),
		op(route{method: "GET", path: "/api/conversations/{conversation_id}/timeline", id: "getTimeline", tag: tagEvents, family: conversation, summary: "Where the time went: queue, sandbox, model, tools, approvals.", about: aboutTimeline}, getTimeline),
		rawOp(route{method: "GET", path: "/api/conversations/{conversation_id}/trajectory", id: "getTrajectory", stream: true, tag: tagEvents, family: conversation, summary: "Everything that happened, to keep or to replay.", about: aboutTrajectory}, describeTrajectory, getTrajectory),
		raw(route{method: "GET", path: "/api/conversations/{conversation_id}/events/stream", id: "streamEvents", stream: true, tag: tagEvents, family: conversation, summary: "Follow the events as server-sent events; resume with Last-Event-ID."}, describeStream, streamEvents),
		raw(route{method: "GET", path: "/api/conversations/{conversation_id}/events/ws", id: "socketEvents", stream: true, tag: tagEvents, family: conversation, summary: "Follow the events over a WebSocket; resume with after=."}, describeSocket, socketEvents),
		raw(route{method: "GET", path: "/socket.io/{$}", id: "socketIO", stream: true, public: true, tag: tagEvents, summary: "Follow the events over Socket.IO, as legacy clients do.", about: aboutSocketIO}, describeSocketIO, serveSocketIO),
		raw(route{method: "POST", path: "/socket.io/{$}", id: "socketIOSend", stream: true, public: true, upload: true, tag: tagEvents, summary: "What a client sends that polls.", about: aboutSocketIO}, describeSocketIO, serveSocketIO),
		raw(route{method: "GET", path: "/socket.io", id: "socketIOBare", stream: true, public: true, tag: tagEvents, summary: "The same without the slash.", about: aboutSocketIO}, describeSocketIO, serveSocketIO),
		raw(route{method: "POST", path: "/socket.io", id: "socketIOBareSend", stream: true, public: true, upload: true, tag: tagEvents, summary: "The same without the slash.", about: aboutSocketIO}, describeSocketIO, serveSocketIO),

		op(route{method: "GET", path: "/api/conversations/{conversation_id}/list-files", id: "listFiles", tag: tagWorkspace, summary: "What is in a folder of the workspace, one level deep.", about: aboutListFiles, may: reads}, listFiles),
		rawOp(route{method: "GET", path: "/api/conversations/{conversation_id}/select-file", id: "selectFile", stream: true, tag: tagWorkspace, summary: "Read a file of the workspace.", about: aboutSelectFile, may: append(tooMuch, reads...)}, describeFile, selectFile),
		rawOp(route{method: "GET", path: "/api/conversations/{conversation_id}/file", id: "getFile", stream: true, tag: tagWorkspace, summary: "Download a file of the workspace.", about: aboutGetFile, may: reads}, describeBytes, getFile),
		op(route{method: "PUT", path: "/api/conversations/{conversation_id}/file", id: "saveFile", stream: true, tag: tagWorkspace, summary: "Write a file of the workspace.", about: aboutSaveFile, may: append(tooMuch, uses...)}, saveFile),
		rawOp(route{method: "GET", path: "/api/conversations/{conversation_id}/zip-directory", id: "zipDirectory", stream: true, tag: tagWorkspace, summary: "Download the workspace as workspace.zip.", about: aboutZip, may: reads}, describeZip, zipDirectory),
		op(route{method: "GET", path: "/api/conversations/{conversation_id}/git/changes", id: "gitChanges", tag: tagWorkspace, summary: "Files that differ from where the work began.", about: aboutChanges, may: reads}, gitChanges),
		op(route{method: "GET", path: "/api/conversations/{conversation_id}/git/diff", id: "gitDiff", tag: tagWorkspace, summary: "One file before and now.", about: aboutDiff, may: append(tooMuch, reads...)}, gitDiff),
		rawOp(route{method: "POST", path: "/api/conversations/{conversation_id}/upload-files", id: "uploadFiles", stream: true, upload: true, tag: tagWorkspace, summary: "Put files into the workspace.", about: aboutUpload, may: append(tooMuch, uses...)}, describeUpload, uploadFiles),
		rawOp(route{method: "GET", path: "/api/conversations/{conversation_id}/terminal", id: "terminal", stream: true, tag: tagWorkspace, summary: "A terminal in the sandbox over a WebSocket.", about: aboutTerminal, may: uses}, describeTerminal, openTerminal),
		op(route{method: "GET", path: "/api/conversations/{conversation_id}/ports", id: "listPorts", tag: tagWorkspace, summary: "TCP ports that something in the sandbox listens on.", about: "Empty while the sandbox does not run.", may: uses}, listPorts),
		op(route{method: "GET", path: "/api/conversations/{conversation_id}/web-hosts", id: "listWebHosts", tag: tagWorkspace, summary: "Where a browser finds what listens in the sandbox.", about: aboutWebHosts, may: uses}, listWebHosts),
		op(route{method: "GET", path: "/api/conversations/{conversation_id}/config", id: "getRuntimeConfig", tag: tagWorkspace, summary: "Which sandbox the conversation has.", may: uses[:1]}, getRuntimeConfig),
		op(route{method: "GET", path: "/api/conversations/{conversation_id}/microagents", id: "listMicroagents", tag: tagWorkspace, summary: "Texts that tell the agent how to work.", about: aboutMicroagents, may: reads}, listMicroagents),
		op(route{method: "GET", path: "/api/conversations/{conversation_id}/egress", id: "getEgress", tag: tagWorkspace, summary: "How the sandbox may reach the network, and what it asked for.", about: aboutEgress, may: uses[:1]}, getEgress),
		op(route{method: "PUT", path: "/api/conversations/{conversation_id}/egress", id: "setEgress", tag: tagWorkspace, summary: "Say how the sandbox may reach the network.", about: aboutEgress, may: uses[:1]}, setEgress),

		op(route{method: "POST", path: "/api/add-git-providers", id: "addGitProviders", stream: true, tag: tagGit, summary: "Store tokens of git providers.", about: aboutAddProviders}, addGitProviders),
		op(route{method: "POST", path: "/api/unset-provider-tokens", id: "unsetProviderTokens", tag: tagGit, summary: "Forget all tokens of git providers; custom secrets stay."}, unsetProviderTokens),
		op(route{method: "GET", path: "/api/user/info", id: "gitUser", stream: true, tag: tagGit, family: bare, summary: "Who you are at your git provider."}, gitUser),
		op(route{method: "GET", path: "/api/user/installations", id: "gitInstallations", stream: true, tag: tagGit, family: bare, summary: "Where an app was let in (GitHub), or your workspaces (Bitbucket)."}, gitInstallations),
		op(route{method: "GET", path: "/api/user/repositories", id: "gitRepositories", stream: true, tag: tagGit, family: bare, summary: "Your repositories.", about: aboutRepositories}, gitRepositories),
		op(route{method: "GET", path: "/api/user/search/repositories", id: "searchRepositories", stream: true, tag: tagGit, family: bare, summary: "Find repositories by a part of the name, or one by its address.", about: aboutSeveral}, searchRepositories),
		op(route{method: "GET", path: "/api/user/search/branches", id: "searchBranches", stream: true, tag: tagGit, family: bare, summary: "Find branches by a part of the name."}, searchBranches),
		op(route{method: "GET", path: "/api/user/repository/branches", id: "gitBranches", stream: true, tag: tagGit, family: bare, summary: "The branches of a repository.", about: aboutBranches}, gitBranches),
		op(route{method: "GET", path: "/api/user/repository/{repository_name}/microagents", id: "repositoryMicroagents", stream: true, tag: tagGit, family: bare, summary: "Files with microagents in a repository.", about: aboutRepositoryName}, repositoryMicroagents),
		op(route{method: "GET", path: "/api/user/repository/{repository_name}/microagents/content", id: "repositoryMicroagent", stream: true, tag: tagGit, family: bare, summary: "Read one of them.", about: aboutRepositoryName}, repositoryMicroagent),
		op(route{method: "GET", path: "/api/user/suggested-tasks", id: "suggestedTasks", stream: true, tag: tagGit, family: bare, summary: "What there is to be done at your git providers.", about: aboutTasks}, suggestedTasks),
		op(route{method: "GET", path: "/api/starters", id: "starters", stream: true, tag: tagGit, summary: "What the home page offers to begin with.", about: aboutStarters}, starters),
		op(route{method: "GET", path: "/api/microagent-management/conversations", id: "microagentConversations", tag: tagGit, family: conversation, summary: "Conversations that write microagents for a repository, newest first."}, microagentConversations),
		op(route{method: "GET", path: "/api/conversations/{conversation_id}/remember-prompt", id: "rememberPrompt", stream: true, tag: tagConversations, family: conversation, summary: "A prompt by which an agent makes a microagent remember what happened here.", about: aboutRemember}, rememberPrompt),

		op(route{method: "GET", path: "/api/trusted-repositories", id: "getTrustedRepositories", tag: tagSettings, summary: "List the repositories that you trust.", about: aboutTrust}, getTrusted),
		op(route{method: "PUT", path: "/api/trusted-repositories", id: "setTrustedRepositories", tag: tagSettings, summary: "Replace the repositories that you trust.", about: aboutTrust}, setTrusted),
		op(route{method: "GET", path: "/api/secrets", id: "listSecrets", tag: tagSettings, summary: "Your custom secrets, without their values."}, listSecrets),
		op(route{method: "POST", path: "/api/secrets", id: "createSecret", tag: tagSettings, status: http.StatusCreated, summary: "Add a custom secret."}, createSecret),
		op(route{method: "PUT", path: "/api/secrets/{secret_id}", id: "editSecret", tag: tagSettings, summary: "Rename or describe a custom secret; its value stays."}, editSecret),
		op(route{method: "DELETE", path: "/api/secrets/{secret_id}", id: "deleteSecret", tag: tagSettings, summary: "Remove a custom secret."}, deleteSecret),
		op(route{method: "POST", path: "/api/reset-settings", id: "resetSettings", tag: tagOlder, summary: "Gone: it answers 410."}, resetSettings),

		op(route{method: "GET", path: "/api/keys", id: "listKeys", tag: tagKeys, summary: "Your keys; for an admin key, everybody's."}, listKeys),
		op(route{method: "POST", path: "/api/keys", id: "createKey", tag: tagKeys, status: http.StatusCreated, summary: "Make a key; it is shown this once."}, createKey),
		op(route{method: "DELETE", path: "/api/keys/{key_id}", id: "revokeKey", tag: tagKeys, summary: "Revoke a key and close its streams."}, revokeKey),
		op(route{method: "GET", path: "/api/me", id: "me", tag: tagKeys, summary: "Whose key is this?"}, me),
		op(route{method: "GET", path: "/api/usage", id: "getUsage", tag: tagKeys, summary: "What you spent, and what you may spend.", about: aboutUsage}, getUsage),
		op(route{method: "GET", path: "/api/users", id: "listUsers", admin: true, tag: tagKeys, summary: "Everybody, by name.", about: aboutUsers}, listUsers),
		op(route{method: "POST", path: "/api/users", id: "createUser", admin: true, tag: tagKeys, status: http.StatusCreated, summary: "Make a user, without a key.", about: aboutUsers}, createUser),
		op(route{method: "PATCH", path: "/api/users/{name}", id: "patchUser", admin: true, tag: tagKeys, summary: "Lock a user out, or let them in again.", about: aboutUsers}, patchUser),
		op(route{method: "GET", path: "/api/login/options", id: "loginOptions", tag: tagKeys, public: true, summary: "How people may log in beside with a key."}, loginOptions),
		op(route{method: "POST", path: "/api/login", id: "login", tag: tagKeys, public: true, summary: "Trade a login ticket or a key for a browser cookie."}, login),
		op(route{method: "POST", path: "/api/logout", id: "logout", tag: tagKeys, summary: "End the browser login."}, logout),

		op(route{method: "GET", path: "/api/webhooks", id: "listWebhooks", tag: tagWebhooks, summary: "Your webhooks.", about: aboutWebhooks}, listWebhooks),
		op(route{method: "POST", path: "/api/webhooks", id: "createWebhook", tag: tagWebhooks, status: http.StatusCreated, summary: "Make a webhook; its secret is shown this once.", about: aboutWebhooks}, createWebhook),
		op(route{method: "GET", path: "/api/webhooks/{webhook_id}", id: "getWebhook", tag: tagWebhooks, summary: "One webhook, with the reason if it was disabled."}, getWebhook),
		op(route{method: "PATCH", path: "/api/webhooks/{webhook_id}", id: "patchWebhook", tag: tagWebhooks, summary: "Change a webhook, enable it, or give it a new secret."}, patchWebhook),
		op(route{method: "DELETE", path: "/api/webhooks/{webhook_id}", id: "deleteWebhook", tag: tagWebhooks, summary: "Remove a webhook and the record of its deliveries."}, deleteWebhook),
		op(route{method: "POST", path: "/api/webhooks/{webhook_id}/test", id: "testWebhook", tag: tagWebhooks, status: http.StatusAccepted, summary: "Send a delivery that says nothing.", about: aboutWebhookTest}, testWebhook),
		op(route{method: "GET", path: "/api/webhooks/{webhook_id}/deliveries", id: "listDeliveries", tag: tagWebhooks, summary: "What it was told, or is to be, newest first."}, listDeliveries),
		op(route{method: "POST", path: "/api/webhooks/{webhook_id}/deliveries/{delivery_id}/retry", id: "retryDelivery", tag: tagWebhooks, status: http.StatusAccepted, summary: "Make a delivery again, whatever became of it."}, retryDelivery),

		op(route{method: "GET", path: "/api/integrations", id: "listIntegrations", tag: tagIntegrations, summary: "Your integrations with git providers.", about: aboutIntegrations}, listIntegrations),
		op(route{method: "POST", path: "/api/integrations", id: "createIntegration", stream: true, tag: tagIntegrations, status: http.StatusCreated, summary: "Make an integration; its secret is shown this once.", about: aboutIntegrations}, createIntegration),
		op(route{method: "GET", path: "/api/integrations/{integration_id}", id: "getIntegration", tag: tagIntegrations, summary: "One integration."}, getIntegration),
		op(route{method: "PATCH", path: "/api/integrations/{integration_id}", id: "patchIntegration", stream: true, tag: tagIntegrations, summary: "Change an integration, or give it a new secret."}, patchIntegration),
		op(route{method: "DELETE", path: "/api/integrations/{integration_id}", id: "deleteIntegration", tag: tagIntegrations, summary: "Remove an integration and the record of what came in."}, deleteIntegration),
		op(route{method: "GET", path: "/api/integrations/{integration_id}/deliveries", id: "listArrivals", tag: tagIntegrations, summary: "What came in and what was done, newest first."}, listArrivals),
		rawOp(route{method: "POST", path: "/integrations/{provider}/webhook", id: "receiveWebhook", public: true, upload: true, tag: tagIntegrations, summary: "What a git provider tells.", about: aboutArrival}, describeArrival, receiveWebhook),

		raw(route{method: "GET", path: "/openapi.json", id: "openapi", tag: tagPages, summary: "This document."}, describePage("application/json"), serveSpec),
		raw(route{method: "GET", path: "/docs", id: "docs", tag: tagPages, summary: "This document, to read."}, describePage("text/html"), serveDocs),
		raw(route{method: "GET", path: "/manual/{$}", id: "manual", tag: tagPages, summary: "The documentation, to read."}, describePage("text/html"), serveManual),
		raw(route{method: "GET", path: "/manual/{page}", id: "manualPage", tag: tagPages, summary: "A page of it."}, describePage("text/html"), serveManual),
		raw(route{method: "GET", path: "/manual/{folder}/{page}", id: "manualPart", tag: tagPages, summary: "A page or a picture in a folder of it."}, describePage("text/html"), serveManual),
		raw(route{method: "GET", path: "/login", id: "loginPage", tag: tagPages, public: true, summary: "Where a login link leads."}, describePage("text/html"), serveLogin),
		rawOp(route{method: "GET", path: signOnPath, id: "startSignOn", tag: tagPages, public: true, stream: true, summary: "Where a single sign-on begins.", about: aboutSignOn}, describeRedirect, startSignOn),
		raw(route{method: "GET", path: callbackPath, id: "finishSignOn", tag: tagPages, public: true, stream: true, summary: "Where a single sign-on ends.", about: aboutCallback}, describeCallback, finishSignOn),
		raw(route{method: "GET", path: "/assets/deckhand/{name}", id: "asset", tag: tagPages, public: true, summary: "Style and script of the plain pages."}, describePage("text/css"), serveAsset),
		raw(route{method: "GET", path: "/" + pageFolder + "/{name}", id: "pageFile", yields: true, public: true, tag: tagPages, summary: "What the web page loads."}, describePage("text/javascript"), serveUI),
		raw(route{method: "GET", path: "/{$}", id: "home", yields: true, public: true, tag: tagPages, summary: "The home page."}, describePage("text/html"), servePage),
		raw(route{method: "GET", path: "/conversations/{conversation_id}", id: "conversationPage", yields: true, public: true, tag: tagPages, summary: "The page of a conversation."}, describePage("text/html"), servePage),
		raw(route{method: "GET", path: "/conversations/{conversation_id}/{tab}", id: "workspacePage", yields: true, public: true, tag: tagPages, summary: "The same, with a part of its workspace."}, describePage("text/html"), servePage),
		raw(route{method: "GET", path: "/settings", id: "settingsPage", yields: true, public: true, tag: tagPages, summary: "The page of the settings."}, describePage("text/html"), servePage),
		raw(route{method: "GET", path: "/settings/{tab}", id: "settingsTab", yields: true, public: true, tag: tagPages, summary: "The same, with a section of them."}, describePage("text/html"), servePage),
		raw(route{method: "GET", path: "/metrics", id: "metrics", tag: tagPages, admin: true, summary: "Prometheus metrics, for admin keys."}, describePage("text/plain"), serveMetrics),
	}...)
}

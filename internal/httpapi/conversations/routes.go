package conversations

import (
	"context"
	"log/slog"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/conversation/command"
	"deckhand/internal/conversation/query"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/live"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

// Routes are those on conversations and their events.
func (d *Handlers) Routes() []rest.Route {
	return append(append(d.attemptRoutes(), d.portableRoutes()...), []rest.Route{
		rest.Op(rest.Route{Method: "POST", Path: "/api/conversations", ID: "createConversation", Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Create a conversation", About: "The response is sent after the conversation has been stored durably."}, d.createConversation),
		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations", ID: "listConversations", Tag: rest.TagConversations, Family: rest.Conversation, Summary: "List your conversations, newest first"}, d.listConversations),
		rest.Raw(rest.Route{Method: "GET", Path: "/api/conversations/stream", ID: "streamConversations", Stream: true, Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Stream changes to your conversation list (server-sent events)", About: aboutListStream}, describeListStream, d.streamConversations),
		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}", ID: "getConversation", Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Get a conversation", About: "Includes the reason if the conversation failed to start or the last turn ended in an error."}, d.getConversation),
		rest.Op(rest.Route{Method: "PATCH", Path: "/api/conversations/{conversation_id}", ID: "patchConversation", Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Rename a conversation"}, d.patchConversation),
		rest.Op(rest.Route{Method: "DELETE", Path: "/api/conversations/{conversation_id}", ID: "deleteConversation", Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Permanently delete a conversation"}, d.deleteConversation),
		rest.Op(rest.Route{Method: "POST", Path: "/api/conversations/{conversation_id}/start", ID: "startConversation", Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Start a stopped conversation"}, d.startConversation),
		rest.Op(rest.Route{Method: "POST", Path: "/api/conversations/{conversation_id}/stop", ID: "stopConversation", Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Stop a conversation", About: "Aborts the model call and interrupts the command in progress."}, d.stopConversation),
		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/overrides", ID: "getOverrides", Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Get the model, effort and budget overrides of a conversation", About: aboutOverrides}, d.getOverrides),
		rest.Op(rest.Route{Method: "PUT", Path: "/api/conversations/{conversation_id}/overrides", ID: "setOverrides", Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Set the model, effort and budget overrides of a conversation", About: aboutOverrides}, d.setOverrides),
		rest.Op(rest.Route{Method: "POST", Path: "/api/conversations/{conversation_id}/fork", ID: "forkConversation", Stream: true, Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Fork a conversation", About: aboutFork}, d.forkConversation),
		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/checkpoints", ID: "listCheckpoints", Tag: rest.TagConversations, Family: rest.Conversation, Summary: "List the checkpoints of a conversation's files", About: aboutCheckpoints}, d.listCheckpoints),
		restores(rest.Op(rest.Route{Method: "POST", Path: "/api/conversations/{conversation_id}/restore", ID: "restoreConversation", Stream: true, Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Restore files or the conversation to an earlier event", About: aboutRestore}, d.restore)),
		restores(rest.Op(rest.Route{Method: "POST", Path: "/api/conversations/{conversation_id}/restore/undo", ID: "undoRestore", Stream: true, Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Undo the last restore", About: aboutUndo}, d.undoRestore)),
		restores(rest.Op(rest.Route{Method: "POST", Path: "/api/conversations/{conversation_id}/restore/redo", ID: "redoRestore", Stream: true, Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Redo the last undone restore", About: aboutUndo}, d.redoRestore)),
		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/compare", ID: "compareConversations", Stream: true, Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Compare the files of two conversations or events", About: aboutCompare}, d.compare),
		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/compare/file", ID: "compareFile", Stream: true, Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Compare a file of two conversations or events", About: aboutCompare}, d.compareFile),
		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/trust", ID: "getTrust", Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Get whether a conversation's repository is trusted", About: aboutTrust}, d.getTrust),
		rest.Op(rest.Route{Method: "PUT", Path: "/api/conversations/{conversation_id}/trust", ID: "setTrust", Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Trust or distrust a conversation's repository", About: aboutTrust}, d.setTrust),
		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/mcp", ID: "getMCP", Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Get the status of a conversation's MCP servers", About: aboutMCP}, d.getMCP),
		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/events", ID: "listEvents", Body: true, Tag: rest.TagEvents, Family: rest.Conversation, Summary: "List stored events", About: aboutEvents}, d.listEvents),
		rest.Op(rest.Route{Method: "POST", Path: "/api/conversations/{conversation_id}/events", ID: "postEvent", Tag: rest.TagEvents, Family: rest.Conversation, Summary: "Send a message or change the agent state"}, d.postEvent),
		rest.Op(rest.Route{Method: "POST", Path: "/api/conversations/{conversation_id}/message", ID: "postMessage", Tag: rest.TagEvents, Family: rest.Conversation, Summary: "Send a message to the agent", About: "The message is stored durably and queued while the agent is working."}, d.postMessage),
		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/approvals", ID: "getApprovals", Tag: rest.TagEvents, Family: rest.Conversation, Summary: "List pending tool calls and always-allow rules"}, d.getApprovals),
		rest.Op(rest.Route{Method: "POST", Path: "/api/conversations/{conversation_id}/approvals", ID: "postApproval", Tag: rest.TagEvents, Family: rest.Conversation, Summary: "Approve, edit or reject a pending tool call", About: "An approval can also allow all similar calls from now on."}, d.postApproval),
		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/queue", ID: "getQueue", Tag: rest.TagEvents, Family: rest.Conversation, Summary: "List queued messages", About: aboutQueue}, d.getQueue),
		rest.Op(rest.Route{Method: "PATCH", Path: "/api/conversations/{conversation_id}/queue/{event_id}", ID: "changeQueuedMessage", Tag: rest.TagEvents, Family: rest.Conversation, Summary: "Update a queued message", About: aboutRequeue}, d.changeQueued),
		rest.Op(rest.Route{Method: "DELETE", Path: "/api/conversations/{conversation_id}/queue/{event_id}", ID: "deleteQueuedMessage", Tag: rest.TagEvents, Family: rest.Conversation, Summary: "Delete a queued message", About: aboutRequeue}, d.deleteQueued),
		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/timeline", ID: "getTimeline", Tag: rest.TagEvents, Family: rest.Conversation, Summary: "Get a time breakdown: queue, sandbox, model, tools, approvals", About: aboutTimeline}, d.getTimeline),
		rest.RawOp(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/trajectory", ID: "getTrajectory", Stream: true, Tag: rest.TagEvents, Family: rest.Conversation, Summary: "Export the trajectory of a conversation", About: aboutTrajectory}, describeTrajectory, d.getTrajectory),
		rest.Raw(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/events/stream", ID: "streamEvents", Stream: true, Tag: rest.TagEvents, Family: rest.Conversation, Summary: "Stream events (server-sent events)", About: "Resume after a disconnect with the header Last-Event-ID."}, describeStream, d.streamEvents),
		rest.Raw(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/events/ws", ID: "socketEvents", Stream: true, Tag: rest.TagEvents, Family: rest.Conversation, Summary: "Stream events over a WebSocket", About: "Resume after a disconnect with the query parameter after."}, describeSocket, d.socketEvents),
		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/microagents", ID: "listMicroagents", Tag: rest.TagWorkspace, Summary: "List microagents available to a conversation", About: aboutMicroagents, May: rest.WorkspaceErrors}, d.listMicroagents),
		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/commands", ID: "listCommands", Tag: rest.TagEvents, Family: rest.Conversation, Summary: "List slash commands", About: aboutCommands}, d.listCommands),
		rest.Op(rest.Route{Method: "POST", Path: "/api/conversations/{conversation_id}/commands", ID: "runCommand", Tag: rest.TagEvents, Family: rest.Conversation, Summary: "Send a slash command", About: "Sends the command's text as a message. " + aboutCommands}, d.runCommand),
		rest.Op(rest.Route{Method: "POST", Path: "/api/conversations/{conversation_id}/compact", ID: "compactConversation", Tag: rest.TagEvents, Family: rest.Conversation, Summary: "Replace the history of a conversation with a summary", About: aboutCompact}, d.compact),
		rest.Op(rest.Route{Method: "GET", Path: "/api/commands", ID: "listOwnCommands", Tag: rest.TagSettings, Summary: "List your own slash commands", About: aboutOwnCommands}, d.listOwnCommands),
		rest.Op(rest.Route{Method: "PUT", Path: "/api/commands/{name}", ID: "setOwnCommand", Tag: rest.TagSettings, Summary: "Store one of your own slash commands", About: aboutOwnCommands}, d.setOwnCommand),
		rest.Op(rest.Route{Method: "DELETE", Path: "/api/commands/{name}", ID: "deleteOwnCommand", Tag: rest.TagSettings, Summary: "Delete one of your own slash commands"}, d.deleteOwnCommand),
		rest.Op(rest.Route{Method: "GET", Path: "/api/microagent-management/conversations", ID: "microagentConversations", Tag: rest.TagGit, Family: rest.Conversation, Summary: "List conversations that write microagents, newest first"}, d.microagentConversations),
		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/remember-prompt", ID: "rememberPrompt", Stream: true, Tag: rest.TagConversations, Family: rest.Conversation, Summary: "Generate a prompt for a microagent from a conversation", About: aboutRemember}, d.rememberPrompt),
		rest.Op(rest.Route{Method: "GET", Path: "/api/trusted-repositories", ID: "getTrustedRepositories", Tag: rest.TagSettings, Summary: "List trusted repositories", About: aboutTrust}, d.getTrusted),
		rest.Op(rest.Route{Method: "PUT", Path: "/api/trusted-repositories", ID: "setTrustedRepositories", Tag: rest.TagSettings, Summary: "Replace the list of trusted repositories", About: aboutTrust}, d.setTrusted),
	}...)
}

// Config is where conversations are, and what is known about them.
type Config struct {
	// Service has the use cases: every rule about conversations is there.
	Service  *usecase.Service
	Sessions *session.Sessions
	Log      session.Log
	Index    session.Index
	Settings *settings.Service
	// Hub has the formats of events that package query names.
	Hub *live.Hub
	// Mask hides the secrets of an event's owner before a client sees it; nil hides nothing.
	Mask func(ctx context.Context, owner string, event []byte) ([]byte, error)
	// RepositoryName is how settings name the repository of a conversation, "" if
	// it has none.
	RepositoryName func(c session.Created, s settings.Settings) string
	// Commands has the use cases for slash commands.
	Commands *command.Runner
	// Microagents finds what tells the agent of a user's conversation how to work; nil for none.
	Microagents func(ctx context.Context, user string, id session.ID) ([]api.Microagent, error)
	// Attempts are the use cases for attempts.
	Attempts Attempts
	// Portable are the use cases for conversations as files.
	Portable Portable
	// MCPStates says where the tool servers of a conversation stand.
	MCPStates func(ctx context.Context, owner string, id session.ID) ([]api.MCPServerStatus, error)
	// Ask puts a question to the user's own model; nil if there is none.
	Ask func(ctx context.Context, user, system, question string) (string, error)
}

// Reader reads these conversations. prefix is the path before ours in the public address.
func (c Config) Reader(prefix string) *query.Reader {
	return &query.Reader{Conversations: c.Service, Hub: c.Hub, Mask: c.Mask, Prefix: prefix}
}

// Handlers serves conversations and their events.
type Handlers struct {
	Config
	Queries *query.Reader
	Life    rest.Lifetime
	Logger  *slog.Logger
	// PageKey is the key that a legacy front end finds in a conversation; nil if none is needed.
	PageKey func(c *rest.Call) *string
	// Stopped is told that a conversation was stopped, and by which event.
	Stopped func(id session.ID, number int64)

	lists *live.Lists
}

// Lists are lists of conversations that are streamed.
type Lists = live.Lists

// Lists are those of all users.
func (d *Handlers) Lists() *Lists { return d.lists }

// New completes d with the lists that it streams.
func New(d Handlers) *Handlers {
	if d.Commands == nil {
		d.Commands = &command.Runner{Conversations: d.Service}
	}
	if d.RepositoryName == nil {
		d.RepositoryName = func(session.Created, settings.Settings) string { return "" }
	}
	if d.lists = live.NewLists(d.Index, d.encodeRow); d.Sessions != nil { // there are none where only the document is wanted
		d.Sessions.Watch(d.lists)
		d.Hub.OnPlace(d.lists.SetPlace)
	}
	return &d
}

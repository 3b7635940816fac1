package mcp

import (
	"context"
	"log/slog"

	usecase "deckhand/internal/conversation"
	"deckhand/internal/conversation/query"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/live"
	"deckhand/internal/session"
	"deckhand/internal/tool"
)

// Routes are those of the MCP server.
func (d *Handlers) Routes() []rest.Route {
	return []rest.Route{
		rest.Raw(rest.Route{Method: "POST", Path: "/mcp", ID: "ownMCP", Stream: true, Tag: rest.TagConversations, Summary: "Call Deckhand as an MCP server", About: aboutOwnMCP}, describeOwnMCP, d.serveOwnMCP),
		rest.Raw(rest.Route{Method: "POST", Path: "/mcp/mcp", ID: "ownMCPAlias", Stream: true, Tag: rest.TagOlder, Summary: "Call Deckhand as an MCP server (legacy path)", About: aboutOwnMCP}, describeOwnMCP, d.serveOwnMCP),
	}
}

// Config is what the tools need beside conversations.
type Config struct {
	// Proposers are the tools that open pull requests for a user, in a conversation
	// of theirs or, if id is "", in none; nil if there are none.
	Proposers func(ctx context.Context, user string, id session.ID) ([]tool.Tool, error)
}

// Handlers lets external agents use conversations as tools.
type Handlers struct {
	Config
	Conversations *usecase.Service
	Sessions      *session.Sessions
	Hub           *live.Hub
	Queries       *query.Reader
	Retries       *rest.Retries
	Schemas       *rest.Schemas
	Life          rest.Lifetime
	Logger        *slog.Logger
	// Stopped is told that a conversation was stopped, and by which event.
	Stopped func(id session.ID, number int64)
}

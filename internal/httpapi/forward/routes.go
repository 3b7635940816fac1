package forward

import (
	"context"
	"log/slog"
	"net/http/httputil"

	"deckhand/internal/access"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/session"
	"deckhand/internal/workspace"
)

// Routes are the ways into sandboxes.
func (d *Handlers) Routes() []rest.Route {
	return []rest.Route{
		rest.RawOp(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/terminal", ID: "terminal", Stream: true, Tag: rest.TagWorkspace, Summary: "Open a terminal in the sandbox over a WebSocket", About: aboutTerminal, May: rest.SandboxErrors}, describeTerminal, d.openTerminal),
		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/web-hosts", ID: "listWebHosts", Tag: rest.TagWorkspace, Summary: "List the URLs of web servers in the sandbox", About: aboutWebHosts, May: rest.SandboxErrors}, d.listWebHosts),
	}
}

// Handlers lets people reach what runs in sandboxes: ports and terminals.
type Handlers struct {
	Forwarding Forwarding
	Workspaces *workspace.Keeper
	Index      session.Index
	Gate       *access.Gate
	Guard      *rest.Guard
	Life       rest.Lifetime
	Logger     *slog.Logger
	// WorkspaceOf finds a conversation of the asker's that may have a workspace.
	WorkspaceOf func(ctx context.Context, c *rest.Call, id string) (session.ID, error)
	// FrontEnd is true where a legacy front end shows the ports.
	FrontEnd bool
	// Via tells that a request was forwarded before.
	Via string

	// proxy carries requests into sandboxes, labels are the names of their ports.
	proxy  *httputil.ReverseProxy
	labels *labels
}

// New completes d with its private state.
func New(d Handlers) *Handlers {
	d.labels = &labels{}
	d.proxy = d.forwarder()
	return &d
}

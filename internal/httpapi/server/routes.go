// Package server serves the state of the server itself: probes and resources for everyone, and its health, the
// sandboxes in use and the log level for administrators.
package server

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"deckhand/api/health"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/session"
)

// Peers are other servers on the same database. Each method passes a request on and returns true if another server has to
// answer it.
type Peers interface {
	// Conversation is for requests that need the workspace of a conversation.
	Conversation(w http.ResponseWriter, r *http.Request, id string) (bool, error)
	// Worker forwards a request that creates a workspace to a server that runs agents, and reports whether it did.
	Worker(w http.ResponseWriter, r *http.Request, user string) (bool, error)
	// Socket is for requests with the ID of a Socket.IO connection.
	Socket(w http.ResponseWriter, r *http.Request, sid string) bool
	// Port is for requests to a port of a sandbox. allow is asked before other servers are.
	Port(w http.ResponseWriter, r *http.Request, label string, port int, allow func() bool) bool
}

// Config is what the routes report.
type Config struct {
	// Peers are nil if there are none.
	Peers   Peers
	Version string
	// Ready returns the reason if the server is not ready.
	Ready func(ctx context.Context) error
	// DataDir is where disk use is measured.
	DataDir string
	// Board is the health of the server for administrators.
	Board Board
	// Temporary means that there may never be a request: the routes are described when the first one comes.
	Temporary bool
	// Level is the log level.
	Level *slog.LevelVar
}

// Board reports the state of the server and ends sandboxes.
type Board interface {
	Look(ctx context.Context) (health.ServerHealth, error)
	// End ends the sandbox of a conversation of any user. It is idempotent; session.ErrNotFound if there is
	// no such conversation.
	End(ctx context.Context, admin string, id session.ID) error
}

// Handlers serves the routes. Make it with New.
type Handlers struct {
	Config
	// LastUsed is when the last request came that was not a probe.
	LastUsed func() time.Time
	Logger   *slog.Logger

	started time.Time
	cpu     cpuMeter
}

// New makes Handlers. The server counts as started now.
func New(c Config, lastUsed func() time.Time, logger *slog.Logger) *Handlers {
	d := &Handlers{Config: c, LastUsed: lastUsed, Logger: logger, started: time.Now()}
	d.cpu.at = d.started // the first measurement covers the time since then
	return d
}

const (
	aboutHealth = "Requires an admin key. Cheap enough to be requested every few seconds. Contains no titles or messages of conversations."
	aboutEnd    = "Requires an admin key. Stops the conversation, which shows the reason, and ends everything that runs in its sandbox. The workspace is kept, and the next message continues the conversation in a new sandbox."
	aboutLevel  = "Requires an admin key. The change applies immediately, until the server is restarted or reloads its configuration."
)

// Routes returns the routes about the server itself.
func (d *Handlers) Routes() []rest.Route {
	return []rest.Route{
		rest.Op(rest.Route{Method: "GET", Path: "/alive", ID: "alive", Tag: rest.TagHealth, Public: true, Summary: "Liveness probe"}, d.alive),
		rest.Op(rest.Route{Method: "GET", Path: "/health", ID: "health", Tag: rest.TagHealth, Public: true, Summary: "Liveness probe (legacy path)"}, d.health),
		rest.Op(rest.Route{Method: "GET", Path: "/ready", ID: "ready", Tag: rest.TagHealth, Public: true, Summary: "Readiness probe", About: "Returns 503 with the reason if the server cannot work."}, d.ready),
		rest.Op(rest.Route{Method: "GET", Path: "/server_info", ID: "serverInfo", Tag: rest.TagHealth, Public: true, Summary: "Get version, uptime and resource usage"}, d.serverInfo),
		rest.Op(rest.Route{Method: "GET", Path: "/api/admin/health", ID: "getServerHealth", Admin: true, Tag: rest.TagHealth, Summary: "Get the health of the server", About: aboutHealth}, d.look),
		rest.Op(rest.Route{Method: "POST", Path: "/api/admin/sandboxes/{conversation_id}/end", ID: "endSandbox", Admin: true, Tag: rest.TagHealth, Summary: "End the sandbox of a conversation", About: aboutEnd}, d.end),
		rest.Op(rest.Route{Method: "PUT", Path: "/api/admin/log-level", ID: "setLogLevel", Admin: true, Tag: rest.TagHealth, Summary: "Set the log level", About: aboutLevel}, d.setLevel),
	}
}

func (d *Handlers) look(ctx context.Context, _ *rest.Call, _ rest.None, _ rest.None) (health.ServerHealth, error) {
	return d.Board.Look(ctx)
}

type sandboxPath struct {
	ID string `path:"conversation_id" minLength:"1" maxLength:"100" pattern:"^[A-Za-z0-9_-]+$"`
}

func (d *Handlers) end(ctx context.Context, c *rest.Call, p sandboxPath, _ rest.None) (health.EndedSandbox, error) {
	return health.EndedSandbox{Status: "ok"}, d.Board.End(ctx, c.Who.User, session.ID(p.ID))
}

func (d *Handlers) setLevel(ctx context.Context, c *rest.Call, _ rest.None, b health.LogLevel) (health.LogLevel, error) {
	if err := d.Level.UnmarshalText([]byte(b.Level)); err != nil {
		return health.LogLevel{}, err
	}
	d.Logger.WarnContext(ctx, "log level changed", "log_level", b.Level, "admin", c.Who.User)
	return b, nil
}

package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"deckhand/internal/httpapi/account"
	"deckhand/internal/httpapi/conversations"
	"deckhand/internal/httpapi/files"
	"deckhand/internal/httpapi/forward"
	"deckhand/internal/httpapi/git"
	"deckhand/internal/httpapi/hooks"
	"deckhand/internal/httpapi/legacy"
	"deckhand/internal/httpapi/mcp"
	"deckhand/internal/httpapi/page"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/httpapi/server"
)

// Config is what the handler needs. What it must not know by import (models,
// stores, the loop) it gets as functions.
type Config struct {
	// Conversations is where conversations are; Account, Files, Git, Hooks, Page, Legacy and MCP
	// are what the routes on their subjects need.
	Conversations conversations.Config
	Account       account.Config
	Files         files.Config
	Git           git.Config
	Hooks         hooks.Config
	Page          page.Config
	Legacy        legacy.Config
	MCP           mcp.Config
	// Forwarding is how browsers reach what listens in a sandbox.
	Forwarding forward.Forwarding
	// Access says who may ask, how often, and at which names.
	Access rest.Admission
	// Retries remembers answers by Idempotency-Key.
	Retries *rest.Retries
	// Bodies bounds the memory of request bodies; zero means the usual bounds.
	Bodies rest.Bodies
	Server Server
	// Telemetry is told of requests.
	Telemetry Telemetry
	Logger    *slog.Logger
}

// Server is what the API tells about the process.
type Server = server.Config

// Telemetry is how requests are observed. The zero value observes nothing.
type Telemetry struct {
	// Metrics serves /metrics on this listener, for admins; nil when it has a listener of its own.
	Metrics http.Handler
	// Observe is told of every finished request.
	Observe func(Finished)
	// Trace begins a span; end is called with the status. nil is no tracing.
	Trace func(ctx context.Context, name string) (context.Context, func(status int))
	// NameTrace gives the span in ctx its route's name.
	NameTrace func(ctx context.Context, name string)
}

// Finished describes a request that was answered.
type Finished struct {
	Route, Method string
	Status        int
	Took          time.Duration
	// Stream is true when the time is the reader's choice.
	Stream bool
}

// Handler answers all HTTP requests.
type Handler struct {
	Config
	mux      *http.ServeMux
	routes   []rest.Route
	document *huma.OpenAPI
	spec     func() []byte
	schemas  *rest.Schemas
	guard    *rest.Guard
	// taken are first parts of paths that a front end cannot have.
	taken         map[string]bool
	lastUsed      atomic.Int64
	pending       atomic.Int64
	intake        *rest.Intake
	files         *files.Handlers
	git           *git.Handlers
	hooks         *hooks.Handlers
	ports         *forward.Handlers
	pages         *page.Handlers
	server        *server.Handlers
	legacy        *legacy.Handlers
	conversations *conversations.Handlers
	account       *account.Handlers
	mcp           *mcp.Handlers
	described     func() // makes the OpenAPI document, with the schemas that requests are checked against
	// life ends with Close, and with it all streams.
	life    rest.Lifetime
	close   context.CancelFunc
	streams rest.Streams
}

// New makes the handler. It panics on a mistake in the route table or the page, which any test finds.
func New(c Config) *Handler {
	d := &Handler{Config: c, mux: http.NewServeMux(), schemas: rest.NewSchemas(),
		intake: rest.NewIntake(c.Bodies)}
	d.life.Gate = c.Access.Gate
	d.life.Closing, d.close = context.WithCancel(context.Background())
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	d.guard = rest.NewGuard(c.Access, d.Logger)
	d.lastUsed.Store(time.Now().UnixNano())
	d.makeHandlers(c)
	d.routes = d.table()
	d.taken = firstParts(d.routes, oursAlone)
	for i := range d.routes {
		r := &d.routes[i]
		if d.Legacy.FrontEnd != nil && r.Yields {
			continue
		}
		d.mux.Handle(r.Method+" "+r.Path, d.handler(r))
	}
	d.mux.HandleFunc(anything, func(w http.ResponseWriter, r *http.Request) { d.noRoute(w.(*recorder), r) })
	d.described = sync.OnceFunc(d.describe)
	if !c.Server.Temporary {
		d.described()
	}
	return d
}

// makeHandlers makes the handlers of all subjects. What one needs of another is passed as a function.
func (d *Handler) makeHandlers(c Config) {
	d.server = server.New(c.Server, func() time.Time { return time.Unix(0, d.lastUsed.Load()) }, d.Logger)
	core, gate, frontEnd, frames := c.Conversations, c.Access.Gate, c.Legacy.FrontEnd != nil, c.Forwarding.Frames()
	d.files = &files.Handlers{Config: c.Files, Conversations: core.Service, Sessions: core.Sessions, Retries: c.Retries, Life: d.life, Logger: d.Logger}
	d.git = &git.Handlers{Config: c.Git, Settings: core.Settings, Redact: c.Account.Redact, Life: d.life, Logger: d.Logger}
	d.hooks = &hooks.Handlers{Config: c.Hooks, Gate: gate, Intake: d.intake}
	d.ports = forward.New(forward.Handlers{Forwarding: c.Forwarding, Workspaces: c.Files.Workspaces, Index: core.Index, Gate: gate, Guard: d.guard, Life: d.life, Logger: d.Logger,
		WorkspaceOf: d.files.WorkspaceOf, FrontEnd: frontEnd, Via: "deckhand-" + requestID()})
	var err error
	if d.pages, err = page.New(page.Handlers{Config: c.Page, Version: c.Server.Version, Gate: gate, Guard: d.guard, Settings: core.Settings, Logger: d.Logger,
		Frames: frames, FrontEnd: frontEnd}); err != nil {
		panic(err)
	}
	d.legacy = legacy.New(legacy.Handlers{Config: c.Legacy, Conversations: core.Service, Log: core.Log, Hub: core.Hub, Gate: gate, Unlimited: c.Access.Unlimited,
		Guard: d.guard, Intake: d.intake, Life: d.life, Logger: d.Logger, Frames: frames,
		Used: func() { d.lastUsed.Store(time.Now().UnixNano()) },
		Identify: func(w http.ResponseWriter, r *http.Request) *rest.Fault {
			_, f := d.identify(w.(*recorder), r)
			return f
		},
		WriteLogin: d.pages.WriteLogin})
	queries := core.Reader(d.guard.Prefix)
	d.conversations = conversations.New(conversations.Handlers{Config: core, Queries: queries, Life: d.life, Logger: d.Logger,
		PageKey: d.legacy.PageKey, Stopped: d.legacy.EndAfter})
	d.account = &account.Handlers{Config: c.Account, Conversations: core.Service, Settings: core.Settings, Gate: gate, Life: d.life, Logger: d.Logger,
		VerifiesEmail: c.Page.SignOn != nil || c.Hooks.Notices.MailsVerification(), CheckTokens: d.git.CheckTokens, FromLegacyPage: d.legacy.FromPage}
	d.mcp = &mcp.Handlers{Config: c.MCP, Conversations: core.Service, Sessions: core.Sessions, Hub: core.Hub, Queries: queries, Retries: c.Retries, Schemas: d.schemas,
		Life: d.life, Logger: d.Logger, Stopped: d.legacy.EndAfter}
}

// Pending is how many requests are being answered, streams not counted.
func (d *Handler) Pending() int { return int(d.pending.Load()) }

// anything is the mux's pattern for what is not in the table.
const anything = "/"

// Close ends all streams, so that the server can stop; other requests are not
// touched. Readers resume elsewhere, from the last event they saw. It waits for the
// streams that an http.Server does not know of.
func (d *Handler) Close() {
	d.close()
	d.legacy.Close()
	d.streams.Wait()
}

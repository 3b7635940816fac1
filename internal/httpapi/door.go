package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"deckhand/api"
	"deckhand/internal/access"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/httpapi/files"
	"deckhand/internal/httpapi/forward"
	"deckhand/internal/httpapi/git"
	"deckhand/internal/httpapi/hooks"
	"deckhand/internal/httpapi/legacy"
	"deckhand/internal/httpapi/page"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/idempotency"
	"deckhand/internal/live"
	"deckhand/internal/session"
	"deckhand/internal/settings"
	"deckhand/internal/tool"
)

// Config is what the door needs. What it must not know by import (models,
// stores, the loop) it gets as functions.
type Config struct {
	// Conversations are the use cases: every rule about conversations is there.
	Conversations *usecase.Service
	Sessions      *session.Sessions
	Log           session.Log
	Index         session.Index
	Settings      *settings.Service
	Gate          *access.Gate
	Hub           *live.Hub
	Answers       idempotency.Store
	// Seal encrypts stored answers.
	Seal usecase.Sealer
	// Models lists the models that are known by name.
	Models func() []string
	// Git is for the routes on git providers.
	Git git.Config
	// Ask puts a question to the user's own model; nil if there is none.
	Ask func(ctx context.Context, user, system, question string) (string, error)
	// Proposers are the tools that open pull requests for a user, in a conversation
	// of theirs or, if id is "", in none; nil if there are none.
	Proposers func(ctx context.Context, user string, id session.ID) ([]tool.Tool, error)
	// Unlimited is true when keys may ask as often as they like.
	Unlimited bool
	// Files is for the routes on workspaces.
	Files files.Config
	// RepositoryName is how settings name the repository of a conversation, "" if
	// it has none.
	RepositoryName func(c session.Created, s settings.Settings) string
	// Microagents finds what tells the agent of a user's conversation how to work; nil for none.
	Microagents func(ctx context.Context, user string, id session.ID) ([]api.Microagent, error)
	// TestModel tries a model out for a user.
	TestModel func(ctx context.Context, user string, in api.TestModel) (api.ModelReport, error)
	// TestMCP tries tool servers out for a user; MCPStates says where those of a conversation stand.
	TestMCP   func(ctx context.Context, user string, m settings.MCP) ([]api.MCPServerStatus, error)
	MCPStates func(ctx context.Context, owner string, id session.ID) ([]api.MCPServerStatus, error)
	// Usage is what it knows of money.
	Usage Usage
	// Hooks is for the routes on webhooks and integrations.
	Hooks hooks.Config
	// Forwarding is how browsers reach what listens in a sandbox.
	Forwarding forward.Forwarding
	Version    string
	Logger     *slog.Logger
	// Ready says what keeps the server from working, or nil.
	Ready func(ctx context.Context) error
	// Hosts are names a request may be addressed to, beside IP addresses and localhost.
	Hosts []string
	// Origins are foreign web origins that may call, e.g. https://tools.example.org.
	Origins []string
	// PublicURL is the address people use, if it was given: its origin is our own,
	// and requests may have its path before theirs. See PublicPath.
	PublicURL string
	// Page is for the pages.
	Page page.Config
	// Legacy is for clients and front ends of the legacy server.
	Legacy legacy.Config
	// Metrics serves /metrics on this listener, for admins; nil when it has a listener of its own.
	Metrics http.Handler
	// Observe is told of every finished request.
	Observe func(Finished)
	// Trace begins a span; end is called with the status. nil is no tracing.
	Trace func(ctx context.Context, name string) (context.Context, func(status int))
	// NameTrace gives the span in ctx its route's name.
	NameTrace func(ctx context.Context, name string)
	// Redact learns secrets that must not reach a log.
	Redact func(values ...string)
	// Mask hides the secrets of an event's owner before a client sees it; nil hides nothing.
	Mask func(ctx context.Context, owner string, event []byte) ([]byte, error)
	// Bodies bounds the memory of request bodies; zero means the usual bounds.
	Bodies rest.Bodies
	// DataDir is where disk use is measured.
	DataDir string
}

// Finished describes a request that was answered.
type Finished struct {
	Route, Method string
	Status        int
	Took          time.Duration
	// Stream is true when the time is the reader's choice.
	Stream bool
}

// Door is the HTTP handler.
type Door struct {
	Config
	mux      *http.ServeMux
	routes   []rest.Route
	document *huma.OpenAPI
	spec     func() []byte
	schemas  *rest.Schemas
	guard    *rest.Guard
	// taken are first parts of paths that a front end cannot have.
	taken    map[string]bool
	started  time.Time
	lastUsed atomic.Int64
	pending  atomic.Int64
	retries  *rest.Retries
	intake   *rest.Intake
	files    *files.Door
	git      *git.Door
	hooks    *hooks.Door
	ports    *forward.Door
	pages    *page.Door
	cpu      cpuMeter
	legacy   *legacy.Door
	lists    *live.Lists
	// life ends with Close, and with it all streams.
	life  rest.Lifetime
	close context.CancelFunc
}

// New makes the door. It panics on a mistake in the route table or the page, which any test finds.
func New(c Config) *Door {
	d := &Door{Config: c, mux: http.NewServeMux(), schemas: rest.NewSchemas(), started: time.Now(),
		retries: &rest.Retries{Store: c.Answers, Seal: c.Seal}, intake: rest.NewIntake(c.Bodies)}
	d.life.Gate = c.Gate
	d.life.Closing, d.close = context.WithCancel(context.Background())
	d.cpu.at = d.started // the first look says how busy we were since then
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	if d.RepositoryName == nil {
		d.RepositoryName = func(session.Created, settings.Settings) string { return "" }
	}
	d.guard = rest.NewGuard(rest.Admission{Gate: c.Gate, Unlimited: c.Unlimited, Hosts: c.Hosts, Origins: c.Origins, PublicURL: c.PublicURL}, d.Logger)
	d.files = &files.Door{Config: c.Files, Conversations: c.Conversations, Sessions: c.Sessions, Retries: d.retries, Life: d.life, Logger: d.Logger}
	d.git = &git.Door{Config: c.Git, Settings: c.Settings, Redact: c.Redact, Life: d.life, Logger: d.Logger}
	d.hooks = &hooks.Door{Config: c.Hooks, Gate: c.Gate, Intake: d.intake}
	d.lastUsed.Store(time.Now().UnixNano())
	if d.lists = live.NewLists(d.Index, d.encodeRow); d.Sessions != nil { // there are none where only the document is wanted
		d.Sessions.Watch(d.lists)
	}
	d.ports = forward.New(forward.Door{Forwarding: c.Forwarding, Workspaces: c.Files.Workspaces, Index: c.Index, Gate: c.Gate, Guard: d.guard, Life: d.life, Logger: d.Logger,
		WorkspaceOf: d.files.WorkspaceOf, FrontEnd: c.Legacy.FrontEnd != nil, Via: "deckhand-" + requestID()})
	var err error
	if d.pages, err = page.New(page.Door{Config: c.Page, Version: c.Version, Gate: c.Gate, Guard: d.guard, Settings: c.Settings, Logger: d.Logger,
		Frames: c.Forwarding.Frames(), FrontEnd: c.Legacy.FrontEnd != nil}); err != nil {
		panic(err)
	}
	d.legacy = legacy.New(legacy.Door{Config: c.Legacy, Conversations: c.Conversations, Log: c.Log, Hub: c.Hub, Gate: c.Gate, Unlimited: c.Unlimited,
		Guard: d.guard, Intake: d.intake, Life: d.life, Logger: d.Logger, Frames: c.Forwarding.Frames(),
		Used: func() { d.lastUsed.Store(time.Now().UnixNano()) },
		Identify: func(w http.ResponseWriter, r *http.Request) *rest.Fault {
			_, f := d.identify(w.(*recorder), r)
			return f
		},
		WriteLogin: d.pages.WriteLogin})
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
	d.describe()
	return d
}

// Pending is how many requests are being answered, streams not counted.
func (d *Door) Pending() int { return int(d.pending.Load()) }

// anything is the mux's pattern for what is not in the table.
const anything = "/"

// Close ends all streams, so that the server can stop; other requests are not
// touched. Readers resume elsewhere, from the last event they saw.
func (d *Door) Close() {
	d.close()
	d.legacy.Close()
}

package httpapi

import (
	"context"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"deckhand/api"
	"deckhand/internal/access"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/feedback"
	"deckhand/internal/gitprovider"
	"deckhand/internal/idempotency"
	"deckhand/internal/live"
	"deckhand/internal/notify"
	"deckhand/internal/oidc"
	"deckhand/internal/sandbox/egress"
	"deckhand/internal/session"
	"deckhand/internal/settings"
	"deckhand/internal/socketio"
	"deckhand/internal/solvable"
	"deckhand/internal/tool"
	"deckhand/internal/trigger"
	"deckhand/internal/workspace"
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
	// SignOn lets people in whom an identity provider vouches for; nil if there is none.
	SignOn  *oidc.SignOn
	Hub     *live.Hub
	Answers idempotency.Store
	// Feedback keeps what users say of the agent's work; nil if nothing does.
	Feedback feedback.Store
	// Seal encrypts stored answers.
	Seal usecase.Sealer
	// Models lists the models that are known by name.
	Models func() []string
	// Forge opens a git provider with what a user stored for it; nil if there are none.
	Forge func(ctx context.Context, provider string, t settings.ProviderToken) (gitprovider.Provider, error)
	// Ask puts a question to the user's own model; nil if there is none.
	Ask func(ctx context.Context, user, system, question string) (string, error)
	// Rater says how likely an agent solves an issue; nil if nobody does.
	Rater *solvable.Rater
	// Proposers are the tools that open pull requests for a user, in a conversation
	// of theirs or, if id is "", in none; nil if there are none.
	Proposers func(ctx context.Context, user string, id session.ID) ([]tool.Tool, error)
	// Unlimited is true when keys may ask as often as they like.
	Unlimited bool
	// Workspaces keeps the sandboxes; nil if there are none.
	Workspaces *workspace.Keeper
	// Egress is the way out of the sandboxes, nil if there is none, and
	// ServerPolicy the policy that holds for all of them.
	Egress *egress.Proxy
	// RepositoryName is how settings name the repository of a conversation, "" if
	// it has none.
	RepositoryName func(c session.Created, s settings.Settings) string
	ServerPolicy   egress.Policy
	// Microagents finds what tells the agent of a user's conversation how to work; nil for none.
	Microagents func(ctx context.Context, user string, id session.ID) ([]api.Microagent, error)
	// TestModel tries a model out for a user.
	TestModel func(ctx context.Context, user string, in api.TestModel) (api.ModelReport, error)
	// TestMCP tries tool servers out for a user; MCPStates says where those of a conversation stand.
	TestMCP   func(ctx context.Context, user string, m settings.MCP) ([]api.MCPServerStatus, error)
	MCPStates func(ctx context.Context, owner string, id session.ID) ([]api.MCPServerStatus, error)
	// Usage is what it knows of money.
	Usage Usage
	// Webhooks are told what happens in their users' conversations; nil if there are none.
	Webhooks *notify.Hooks
	// Integrations let git providers start conversations, and Arrivals takes what
	// they tell; nil if there are none.
	Integrations *trigger.Integrations
	Arrivals     *trigger.Receiver
	// Forwarding is how browsers reach what listens in a sandbox.
	Forwarding Forwarding
	// Sockets are the limits of the Socket.IO connections of legacy clients; zero means the usual ones.
	Sockets socketio.Options
	Version string
	Logger  *slog.Logger
	// Ready says what keeps the server from working, or nil.
	Ready func(ctx context.Context) error
	// Hosts are names a request may be addressed to, beside IP addresses and localhost.
	Hosts []string
	// Origins are foreign web origins that may call, e.g. https://tools.example.org.
	Origins []string
	// PublicURL is the address people use, if it was given: its origin is our own,
	// and requests may have its path before theirs. See PublicPath.
	PublicURL string
	// Page is the web page as it was built; without index.html, or nil, it was not.
	Page fs.FS
	// FrontEnd is served at / in place of our own page; nil for none.
	FrontEnd *FrontEnd
	// FrontEndHosts are the hosts from which it may load scripts, styles and fonts.
	FrontEndHosts []string
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
	Bodies Bodies
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
	routes   []route
	registry huma.Registry
	document *huma.OpenAPI
	spec     func() []byte
	page     func() []byte
	ui       *page
	schemas  map[string]*huma.Schema
	hosts    map[string]bool
	origins  map[string]bool
	// origin and prefix are the parts of the public address; empty if there is none.
	origin, prefix string
	// taken are first parts of paths that a front end cannot have.
	taken    map[string]bool
	csrf     *http.CrossOriginProtection
	started  time.Time
	lastUsed atomic.Int64
	pending  atomic.Int64
	inflight inflight
	arriving arriving
	intake   *intake
	cpu      cpuMeter
	sockets  *sockets
	lists    *live.Lists
	// ports carries requests into sandboxes, labels are the names of their ports,
	// and via tells that such a request was one before.
	ports  *httputil.ReverseProxy
	labels labels
	via    string
	// closing ends with Close, and with it all streams.
	closing context.Context
	close   context.CancelFunc
}

// New makes the door. It panics on a mistake in the route table or the page, which any test finds.
func New(c Config) *Door {
	d := &Door{Config: c, mux: http.NewServeMux(), registry: newRegistry(), started: time.Now(),
		schemas: map[string]*huma.Schema{}, hosts: map[string]bool{"localhost": true}, origins: map[string]bool{},
		csrf: http.NewCrossOriginProtection(), inflight: inflight{busy: map[string]chan struct{}{}}, intake: newIntake(c.Bodies)}
	d.closing, d.close = context.WithCancel(context.Background())
	d.cpu.at = d.started // the first look says how busy we were since then
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	if d.RepositoryName == nil {
		d.RepositoryName = func(session.Created, settings.Settings) string { return "" }
	}
	for _, h := range c.Hosts {
		d.hosts[canonicalHost(h)] = true
	}
	for _, o := range c.Origins {
		d.origins[o] = true
	}
	d.lastUsed.Store(time.Now().UnixNano())
	d.sockets = newSockets(d)
	if d.lists = live.NewLists(d.Index, d.encodeRow); d.Sessions != nil { // there are none where only the document is wanted
		d.Sessions.Watch(d.lists)
	}
	d.ports, d.via = d.forwarder(), "deckhand-"+requestID()
	d.settlePublic()
	var err error
	if d.ui, err = newPage(c.Page); err != nil {
		panic(err)
	}
	d.routes = table()
	d.taken = firstParts(d.routes, oursAlone)
	for i := range d.routes {
		r := &d.routes[i]
		if d.FrontEnd != nil && r.yields {
			continue
		}
		d.mux.Handle(r.method+" "+r.path, d.handler(r))
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
	d.sockets.server.Close()
}

// bodySchema is found once per route, when the document is made.
func (d *Door) bodySchema(id string, t reflect.Type) *huma.Schema {
	if s := d.schemas[id]; s != nil {
		return s
	}
	return d.registry.Schema(t, true, "")
}

// inflight makes requests with the same Idempotency-Key wait for each other.
type inflight struct {
	mu   sync.Mutex
	busy map[string]chan struct{}
}

func (f *inflight) enter(ctx context.Context, key string) (leave func(), err error) {
	for {
		f.mu.Lock()
		other := f.busy[key]
		if other == nil {
			mine := make(chan struct{})
			f.busy[key] = mine
			f.mu.Unlock()
			return func() {
				f.mu.Lock()
				delete(f.busy, key)
				f.mu.Unlock()
				close(mine)
			}, nil
		}
		f.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

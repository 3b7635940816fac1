package legacy

import (
	"context"
	"log/slog"
	"net/http"
	"slices"

	"deckhand/internal/access"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/feedback"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/live"
	"deckhand/internal/session"
	"deckhand/internal/socketio"
)

// Routes are the rows of the table that are there for older clients alone.
func (d *Handlers) Routes() []rest.Route {
	return slices.Concat([]rest.Route{
		rest.Op(rest.Route{Method: "POST", Path: "/api/conversations/{conversation_id}/submit-feedback", ID: "submitFeedback", Tag: rest.TagFeedback, Summary: "Submit feedback on a conversation", About: aboutFeedback}, d.submitFeedback),
		rest.Op(rest.Route{Method: "POST", Path: "/feedback/conversation", ID: "rateConversation", Tag: rest.TagFeedback, Summary: "Rate an event or a conversation", About: aboutFeedback + " A new rating replaces your previous one."}, d.rateConversation),
		rest.Op(rest.Route{Method: "GET", Path: "/feedback/conversation/{conversation_id}/batch", ID: "listRatings", Tag: rest.TagFeedback, Summary: "List your event ratings in a conversation"}, d.listRatings),
		rest.Op(rest.Route{Method: "GET", Path: "/feedback/conversation/{conversation_id}/{event_id}", ID: "getRating", Tag: rest.TagFeedback, Summary: "Get your rating of an event"}, d.getRating),
		rest.Op(rest.Route{Method: "GET", Path: "/api/feedback", ID: "listFeedback", Tag: rest.TagFeedback, Admin: true, Summary: "List all feedback, newest first", About: "Requires an admin key."}, d.listFeedback),

		rest.Op(rest.Route{Method: "GET", Path: "/api/conversations/{conversation_id}/vscode-url", ID: "getVSCodeURL", Tag: rest.TagOlder, Summary: "Get the editor URL (always null)"}, d.getVSCodeURL),
		rest.Op(rest.Route{Method: "POST", Path: "/api/conversations/{conversation_id}/exp-config", ID: "setExperiment", Tag: rest.TagOlder, Family: rest.Conversation, Summary: "Set experiment configuration (ignored)", About: aboutExperiment}, d.setExperiment),
		rest.Op(rest.Route{Method: "POST", Path: "/api/authenticate", ID: "authenticate", Tag: rest.TagOlder, Summary: "Check that the key is valid"}, d.authenticate),
		rest.Op(rest.Route{Method: "POST", Path: "/api/accept_tos", ID: "acceptTerms", Tag: rest.TagOlder, Summary: "Accept the terms of service (no effect)"}, d.acceptTerms),
		rest.Op(rest.Route{Method: "GET", Path: "/api/keys/llm/byor", ID: "getModelKey", Tag: rest.TagOlder, Summary: "Get a model key (not supported, always 404)"}, d.noModelKey),
		rest.Op(rest.Route{Method: "POST", Path: "/api/keys/llm/byor/refresh", ID: "refreshModelKey", Tag: rest.TagOlder, Summary: "Refresh a model key (not supported, always 404)"}, d.noModelKey),

		rest.Raw(rest.Route{Method: "GET", Path: "/socket.io/{$}", ID: "socketIO", Stream: true, Public: true, Tag: rest.TagEvents, Summary: "Stream events over Socket.IO", About: aboutSocketIO}, describeSocketIO, d.serveSocketIO),
		rest.Raw(rest.Route{Method: "POST", Path: "/socket.io/{$}", ID: "socketIOSend", Stream: true, Public: true, Upload: true, Tag: rest.TagEvents, Summary: "Send Socket.IO packets (long-polling)", About: aboutSocketIO}, describeSocketIO, d.serveSocketIO),
		rest.Raw(rest.Route{Method: "GET", Path: "/socket.io", ID: "socketIOBare", Stream: true, Public: true, Tag: rest.TagEvents, Summary: "Stream events over Socket.IO (path without trailing slash)", About: aboutSocketIO}, describeSocketIO, d.serveSocketIO),
		rest.Raw(rest.Route{Method: "POST", Path: "/socket.io", ID: "socketIOBareSend", Stream: true, Public: true, Upload: true, Tag: rest.TagEvents, Summary: "Send Socket.IO packets (path without trailing slash)", About: aboutSocketIO}, describeSocketIO, d.serveSocketIO),
	},
		security("/api/conversations/{conversation_id}/security/{path}", "conversationSecurity", d.noAnalyzerHere, "GET", "POST", "PUT", "DELETE"),
		security("/api/security/policy", "securityPolicy", d.noAnalyzer, "GET", "POST"),
		security("/api/security/settings", "securitySettings", d.noAnalyzer, "GET", "POST"),
		security("/api/security/export-trace", "securityTrace", d.noAnalyzer, "GET"))
}

// Config is what only legacy clients need.
type Config struct {
	// Feedback keeps what users say of the agent's work; nil if nothing does.
	Feedback feedback.Store
	// Sockets are the limits of the Socket.IO connections of legacy clients; zero means the usual ones.
	Sockets socketio.Options
	// FrontEnd is served at / in place of our own page; nil for none.
	FrontEnd *FrontEnd
	// FrontEndHosts are the hosts from which it may load scripts, styles and fonts.
	FrontEndHosts []string
}

// Handlers serves clients and front ends of the legacy server.
type Handlers struct {
	Config
	Conversations *usecase.Service
	Log           session.Log
	Hub           *live.Hub
	Gate          *access.Gate
	// Unlimited is true when keys may ask as often as they like.
	Unlimited bool
	Guard     *rest.Guard
	Intake    *rest.Intake
	Life      rest.Lifetime
	Logger    *slog.Logger
	// Frames are the sources of what a front end may show in a frame.
	Frames string
	// Used is called when a client acts over a socket.
	Used func()
	// Identify finds out who asks for a page, and whether they may.
	Identify func(w http.ResponseWriter, r *http.Request) *rest.Fault
	// WriteLogin sends the login page.
	WriteLogin func(w http.ResponseWriter, r *http.Request, status int) error

	sockets *sockets
}

// New completes d with its sockets.
func New(d Handlers) *Handlers {
	d.sockets = newSockets(&d)
	return &d
}

// Close ends all sockets.
func (d *Handlers) Close() { d.sockets.server.Close() }

// ServeSocketIO answers a request that no route takes in the words of the protocol.
func (d *Handlers) ServeSocketIO(w http.ResponseWriter, r *http.Request) {
	d.sockets.server.ServeHTTP(w, r)
}

// Open is how many sockets there are, and Waiting how many of them have not sent a key yet.
func (d *Handlers) Open() int { return d.sockets.server.Len() }

// Waiting is described at Open.
func (d *Handlers) Waiting() int { return d.sockets.waiting.len() }

// EndAfter disconnects the sockets of a conversation, each when it has been sent the event of this number.
func (d *Handlers) EndAfter(id session.ID, number int64) { d.sockets.endAfter(id, number) }

// row finds a conversation of the asker's.
func (d *Handlers) row(ctx context.Context, c *rest.Call, id string) (session.Row, error) {
	return d.Conversations.Row(ctx, c.Who.User, session.ID(id))
}

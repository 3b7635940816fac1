package socketio

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"time"

	"deckhand/internal/socketio/engine"
	"deckhand/internal/socketio/wire"
)

// Server meets clients at an address.
type Server struct {
	engine         *engine.Server
	namespaces     map[string]Handler
	connectTimeout time.Duration
	limits         wire.Limits
	log            *slog.Logger
}

// New makes a server with these namespaces; "/" is the one that clients ask for
// if they are not told otherwise. A client that asks for another one is refused
// with "Invalid namespace".
func New(o Options, namespaces map[string]Handler) *Server {
	if o.ConnectTimeout <= 0 {
		o.ConnectTimeout = 45 * time.Second
	}
	if o.MaxAttachments <= 0 {
		o.MaxAttachments = 10
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Engine.Logger == nil {
		o.Engine.Logger = o.Logger
	}
	if o.Engine.MaxPayload <= 0 {
		o.Engine.MaxPayload = 4 << 20
	}
	s := &Server{
		namespaces:     maps.Clone(namespaces),
		connectTimeout: o.ConnectTimeout,
		limits:         wire.Limits{Attachments: o.MaxAttachments, Bytes: o.Engine.MaxPayload},
		log:            o.Logger,
	}
	s.engine = engine.New(o.Engine, func(ctx context.Context, e *engine.Conn) {
		newConnection(ctx, s, e).serve()
	})
	return s
}

// ServeHTTP answers at any path: where the server is mounted decides.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.engine.ServeHTTP(w, r) }

// Close ends all connections and waits until their handlers have returned.
// Clients are not told to stay away, so they come back when there is a server
// again.
func (s *Server) Close() { s.engine.Close() }

// Len is the number of connections.
func (s *Server) Len() int { return s.engine.Len() }

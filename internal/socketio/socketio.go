// Package socketio is a small Socket.IO server: revision 5 of the protocol, over
// Engine.IO v4. It keeps nothing for a client that is gone. What such a client
// missed is read by its handler from where it is stored, so a client can go on
// after a restart of the server as well as after a moment without network.
//
// A client that reads slowly is waited for, not buffered for: Emit returns when
// there is room. A client that sends faster than its handler works is slowed
// down by the transport.
package socketio

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"deckhand/internal/socketio/engine"
	"deckhand/internal/socketio/wire"
)

// Options are the limits of a server. Zero means the default.
type Options struct {
	Engine         engine.Options
	ConnectTimeout time.Duration // how long a connection may stay without any namespace, 45 s by default
	MaxAttachments int           // binary attachments of one packet, 10 by default
	Logger         *slog.Logger
}

// Handler meets a client that asks for a namespace. An error refuses it: a
// *Refusal with its own words, anything else as "internal error".
//
// The client is told that it is in before Serve.Run starts, so that nothing
// travels ahead of that answer. Emit and Call may not be used in the Handler.
type Handler func(ctx context.Context, s *Socket) (Serve, error)

// Serve is what happens to a socket once it is in.
type Serve struct {
	// Run is optional. Its context ends with the socket, and the cause is why.
	// The socket goes on when Run returns.
	Run func(ctx context.Context)
	// Event is called in order of arrival, one at a time. It may be nil. A client
	// may send something and leave at once, so what came before it left is worked
	// on all the same: the context ends a few seconds after the socket.
	Event func(ctx context.Context, e Event)
}

// Event is what a client emitted.
type Event struct {
	Name        string
	Args        []json.RawMessage // what follows the name; placeholders of attachments are left as they are
	Attachments [][]byte
	// Ack answers the event. It is nil if the client asked for no answer, and
	// fails when it is called again.
	Ack func(ctx context.Context, args ...any) error
}

// Binary is the attachment that argument i stands for.
func (e Event) Binary(i int) ([]byte, bool) {
	if i < 0 || i >= len(e.Args) {
		return nil, false
	}
	n, ok := wire.Placeholder(e.Args[i])
	if !ok || n >= len(e.Attachments) {
		return nil, false
	}
	return e.Attachments[n], true
}

// Refusal is the answer to a client that may not enter a namespace.
type Refusal struct {
	Message string
	Data    any
}

// Error is the message.
func (r *Refusal) Error() string { return r.Message }

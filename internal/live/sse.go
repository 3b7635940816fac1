package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"deckhand/internal/session"
)

// ErrNotStarted wraps what went wrong before anything was written: the caller still owes an answer.
var ErrNotStarted = errors.New("the stream did not begin")

// Options are how a stream is served. The zero value is good.
type Options struct {
	// Format chooses an encoder of the Hub.
	Format Format
	// Heartbeat is after how long a silence shows that the connection lives (15 s).
	Heartbeat time.Duration
	// WriteTimeout is how long a client may take to accept what is sent, or a
	// part of it if it is much, before it is dropped (10 s).
	WriteTimeout time.Duration
	// Close tells a WebSocket client why its request's context ended (code
	// and reason of the close frame). By default it is told that the server goes away.
	Close func(cause error) (code int, reason string)
	// Detach takes over a stream that goes on without its handler: it calls run,
	// once and in a goroutine of its own. A detached stream needs a fraction of the
	// memory. Set it only for GET over HTTP/1.1, with a request whose context does not
	// end with the handler. nil serves the stream in its handler.
	Detach func(run func() error)
}

func (o Options) withDefaults() Options {
	if o.Heartbeat <= 0 {
		o.Heartbeat = 15 * time.Second
	}
	if o.WriteTimeout <= 0 {
		o.WriteTimeout = 10 * time.Second
	}
	return o
}

// Position is from where the client wants to go on: the last event it has seen.
// The header wins over the query, because a browser that reconnects sends the
// header with the address it began with. Legacy clients say -1 for the beginning.
func Position(r *http.Request) (int64, error) {
	value := r.Header.Get("Last-Event-ID")
	for _, name := range []string{"after", "last_event_id"} {
		if value == "" {
			value = r.URL.Query().Get(name)
		}
	}
	if value == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < -1 {
		return 0, fmt.Errorf("a position must be an event number, not %.40q", value)
	}
	return max(n, 0), nil
}

// ServeSSE answers the request with the session as server-sent events. It
// returns nil after the session was deleted, else why it stopped; the client
// comes back by itself. With ErrNotStarted the caller still owes an answer. If the
// stream was detached, ServeSSE returns nil at once, and o.Detach learns the rest.
func ServeSSE(w http.ResponseWriter, r *http.Request, h *Hub, id session.ID, after int64, o Options) error {
	o = o.withDefaults()
	f := h.join(id, o.Format, after)
	if err := f.begin(r.Context()); err != nil {
		h.leave(f)
		return fmt.Errorf("%w: %w", ErrNotStarted, err)
	}
	return serveStream(w, r, o, func() { h.leave(f) }, func(ctx context.Context, out sink) error {
		return f.run(ctx, o.Heartbeat, out)
	})
}

// beginSSE sends the header of a stream.
func beginSSE(w http.ResponseWriter, r *http.Request, o Options) (*sseWriter, error) {
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // nginx would hold events back
	if r.ProtoMajor == 1 {
		header.Set("Connection", "close") // the write deadlines must not meet another request
	}
	control := http.NewResponseController(w)
	out := &sseWriter{w: w, control: control, timeout: o.WriteTimeout}
	_ = control.SetReadDeadline(time.Time{}) // the server's limit for requests is not one for streams
	w.WriteHeader(http.StatusOK)
	out.write(sseRetry)
	return out, out.flush()
}

// sliceBytes is how much may be written under one deadline.
const sliceBytes = 64 << 10

// sseWriter writes frames in the format of server-sent events.
type sseWriter struct {
	w       io.Writer
	control interface {
		SetWriteDeadline(time.Time) error
		Flush() error
	}
	timeout time.Duration
	written int // under the current deadline; 0 is none
	head    []byte
	err     error
}

// What goes around frames.
var (
	sseRetry = []byte("retry: 1000\n\n")
	ssePing  = []byte(": ping\n\n")
	sseEnd   = []byte("\n\n")
)

func (s *sseWriter) frame(f Frame) error {
	if f.Event == EventPing {
		s.write(ssePing)
		return s.err
	}
	b := s.head[:0]
	if f.Number > 0 {
		b = append(strconv.AppendInt(append(b, "id: "...), f.Number, 10), '\n')
	}
	if f.Event != "" {
		b = append(append(append(b, "event: "...), f.Event...), '\n')
	}
	s.head = append(b, "data: "...)
	s.write(s.head)
	s.write(f.Data)
	s.write(sseEnd)
	return s.err
}

// write gives a client time for every slice, so that a large event is a
// matter of patience, and a client that reads nothing is still dropped soon.
func (s *sseWriter) write(b []byte) {
	for len(b) > 0 && s.err == nil {
		if s.written == 0 || s.written >= sliceBytes {
			s.deadline()
		}
		var n int
		n, s.err = s.w.Write(b[:min(len(b), sliceBytes)])
		s.written += n
		b = b[n:]
	}
}

func (s *sseWriter) deadline() {
	// Not every writer has deadlines (a test's recorder); those do not block either.
	_ = s.control.SetWriteDeadline(time.Now().Add(s.timeout))
	s.written = 0
}

func (s *sseWriter) flush() error {
	if s.err != nil {
		return s.err
	}
	s.deadline()
	s.err = s.control.Flush()
	return s.err
}

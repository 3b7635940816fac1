package live

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/coder/websocket"

	"deckhand/internal/session"
)

// readLimit is for a client that has nothing to say.
const readLimit = 512

// Why a client's connection ends that did not wait for us to.
var (
	errClientLeft = errors.New("the client left")
	errSpoke      = errors.New("the client sent a message")
)

// ServeWS answers the request with the session on a WebSocket: each frame is a
// text message {"type","id","data"}. It returns as ServeSSE does. What a
// client sends is against the rules and closes the connection.
func ServeWS(w http.ResponseWriter, r *http.Request, h *Hub, id session.ID, after int64, o Options) error {
	o = o.withDefaults()
	f := h.join(id, o.Format, after)
	if err := f.begin(r.Context()); err != nil {
		h.leave(f)
		return fmt.Errorf("%w: %w", ErrNotStarted, err)
	}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		// The API handler has checked the origin before the key, for every kind of
		// stream alike; a second check with other rules would only differ.
		InsecureSkipVerify: true,
		CompressionMode:    websocket.CompressionDisabled, // its buffers cost more than all the rest of a reader
	})
	if err != nil {
		h.leave(f)
		return err // Accept has answered
	}
	ctx := r.Context()
	run := func() error {
		defer h.leave(f)
		return f.runWS(ctx, conn, o)
	}
	if o.Detach != nil {
		o.Detach(run)
		return nil
	}
	return run()
}

// runWS gives a WebSocket everything, and tells it why that ends.
func (f *follower) runWS(request context.Context, conn *websocket.Conn, o Options) error {
	conn.SetReadLimit(readLimit)
	ctx, cancel := context.WithCancelCause(request)
	defer cancel(nil)
	left, leave := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		cancel(listen(conn))
		leave()
	}()
	defer func() {
		_ = conn.CloseNow()
		<-done
	}()

	err := f.run(ctx, o.Heartbeat, &wsWriter{conn: conn, left: left, timeout: o.WriteTimeout})
	switch {
	case err == nil:
		_ = conn.Close(websocket.StatusNormalClosure, "the conversation was deleted")
	case errors.Is(err, errWrite), errors.Is(err, errClientLeft):
	case errors.Is(err, errSpoke):
		_ = conn.Close(websocket.StatusPolicyViolation, "this stream does not accept messages")
	case request.Err() != nil:
		code, reason := int(websocket.StatusGoingAway), "the server is stopping"
		if o.Close != nil {
			code, reason = o.Close(context.Cause(request))
		}
		_ = conn.Close(websocket.StatusCode(code), reason)
	default:
		_ = conn.Close(websocket.StatusInternalError, "the conversation cannot be read")
	}
	return err
}

// listen waits until the client leaves or says something, and answers its
// pings. It is the library's CloseRead, but for two things: it is not ended by
// the request's context, which would drop the connection before the client is
// told why; and it does not close the connection itself, because the library
// then waits 15 s for its own goroutine.
func listen(conn *websocket.Conn) error {
	if _, _, err := conn.Reader(context.Background()); err != nil {
		return fmt.Errorf("%w: %w", errClientLeft, err)
	}
	return errSpoke
}

// errWrite says the client did not take what was sent, or did not answer.
var errWrite = errors.New("the client does not read")

// keptBuffer is the largest buffer that a quiet reader keeps.
const keptBuffer = 4 << 10

// wsWriter writes frames as messages.
type wsWriter struct {
	conn    *websocket.Conn
	left    context.Context // ends when the client is gone and cannot answer a ping
	timeout time.Duration
	buf     []byte
}

func (s *wsWriter) frame(f Frame) error {
	timeout := s.timeout + time.Duration(len(f.Data)/sliceBytes)*time.Second // a large event is a matter of patience
	ctx := context.Background()
	if f.Event == EventPing {
		ctx = s.left
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var err error
	if f.Event == EventPing {
		err = s.conn.Ping(ctx)
	} else {
		s.buf = appendMessage(s.buf[:0], f)
		err = s.conn.Write(ctx, websocket.MessageText, s.buf)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errWrite, err)
	}
	return nil
}

func (s *wsWriter) flush() error {
	if cap(s.buf) > keptBuffer {
		s.buf = nil
	}
	return nil
}

// appendMessage wraps a frame. Its parts need no escaping.
func appendMessage(b []byte, f Frame) []byte {
	b = append(b, `{"type":"`...)
	if f.Event == "" {
		b = append(b, "event"...)
	}
	b = append(append(b, f.Event...), '"')
	if f.Number > 0 {
		b = strconv.AppendInt(append(b, `,"id":`...), f.Number, 10)
	}
	b = append(b, `,"data":`...)
	return append(append(b, f.Data...), '}')
}

package forward

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/danielgtaylor/huma/v2"

	"deckhand/api"
	"deckhand/internal/access"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/sandbox"
)

const aboutTerminal = "Binary frames carry terminal input and output. A text frame from the client is a command: {\"resize\":{\"rows\":24,\"cols\":80}}. " +
	"Starts the sandbox if it is not running; the sandbox of a stopped conversation ends with the terminal. A terminal stays open when the connection ends, and replays its recent output to the next connection with the same name. " +
	"Close codes: 1000 the shell has ended, 1001 the server is stopping, 1008 invalid command in a text frame, 1009 frame larger than 64 KiB, 1012 the sandbox has ended, 4001 the key was revoked or has expired."

type terminalQuery struct {
	ID   string `path:"conversation_id" minLength:"1" maxLength:"100" pattern:"^[A-Za-z0-9_-]+$"`
	Name string `query:"name" default:"main" pattern:"^[A-Za-z0-9_-]{1,32}$" doc:"Name of the terminal. If it is already open, the connection joins it."`
	Rows int64  `query:"rows" default:"24" minimum:"1" maximum:"1000"`
	Cols int64  `query:"cols" default:"80" minimum:"1" maximum:"1000"`
}

// openTerminal joins a WebSocket and a terminal in the sandbox.
func (d *Handlers) openTerminal(w http.ResponseWriter, r *http.Request, c *rest.Call, q terminalQuery) error {
	id, err := d.WorkspaceOf(r.Context(), c, q.ID)
	if err != nil {
		return err
	}
	if !rest.Upgrades(r) {
		return rest.UpgradeRequired("This path needs a WebSocket connection.")
	}
	ctx, release := d.Life.Hold(r.Context(), c.Who)
	defer release()
	box, done, err := d.Workspaces.Use(ctx, id)
	if err != nil {
		return rest.WhyEnded(ctx, err)
	}
	defer done()
	term, err := box.Terminal(ctx, sandbox.TerminalParams{Name: q.Name, Rows: uint16(q.Rows), Cols: uint16(q.Cols)})
	if err != nil {
		return rest.WhyEnded(ctx, err)
	}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		InsecureSkipVerify: true, // the API handler has checked the origin, for every route alike
		CompressionMode:    websocket.CompressionDisabled,
	})
	if err != nil { // Accept has answered
		term.Close()
		return nil
	}
	d.Logger.InfoContext(r.Context(), "terminal opened", "user", c.Who.User, "key", c.Who.KeyID, "session", id, "terminal", q.Name, "from", r.RemoteAddr)
	begun := time.Now()
	code, reason := (&terminal{conn: conn, term: term, box: box}).serve(ctx)
	d.Logger.InfoContext(r.Context(), "terminal closed", "user", c.Who.User, "session", id, "terminal", q.Name, "took", time.Since(begun), "code", int(code), "reason", reason)
	return nil
}

const (
	// MaxFrame bounds what a client sends at once, and shownPiece what it is shown at once.
	MaxFrame   = 64 << 10
	shownPiece = 32 << 10
	// typeTime is how long a client may take to accept a piece, and to answer a ping.
	typeTime  = 15 * time.Second
	pingEvery = 20 * time.Second
)

// terminal is one connection to a terminal. Nothing is kept for a client that
// does not read: the sandbox waits, and then the client is dropped.
type terminal struct {
	conn *websocket.Conn
	term *sandbox.Terminal
	box  *sandbox.Sandbox
	// typing is true while the sandbox takes its time with what was typed; pings
	// cannot be answered then.
	typing atomic.Bool
}

// Why a terminal's connection ends.
var (
	errClientGone = errors.New("the client left")
	errShellEnded = errors.New("the shell has ended")
	errNoCommand  = errors.New(`a text frame must be a command such as {"resize":{"rows":24,"cols":80}}`)
)

// serve carries bytes until one side has had enough, and says why it ended.
func (t *terminal) serve(ctx context.Context) (websocket.StatusCode, string) {
	t.conn.SetReadLimit(MaxFrame)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan struct{}, 3)
	for _, part := range []func(context.Context) error{t.show, t.listen, t.ping} {
		go func() {
			cancel(part(ctx))
			ended <- struct{}{}
		}()
	}
	<-ctx.Done()
	code, reason := t.why(context.Cause(ctx))
	if !errors.Is(context.Cause(ctx), errClientGone) {
		_ = t.conn.Close(code, reason)
	}
	_ = t.conn.CloseNow()
	t.term.Close()
	for range 3 {
		<-ended
	}
	return code, reason
}

func (t *terminal) why(cause error) (websocket.StatusCode, string) {
	switch {
	case errors.Is(cause, access.ErrRevoked):
		return 4001, "the key was revoked or has expired"
	case errors.Is(cause, errClientGone):
		return websocket.StatusNormalClosure, errClientGone.Error()
	case errors.Is(cause, errNoCommand):
		return websocket.StatusPolicyViolation, errNoCommand.Error()
	case errors.Is(cause, errShellEnded):
		select {
		case <-t.box.Done():
			return websocket.StatusServiceRestart, "the sandbox has ended"
		default:
			return websocket.StatusNormalClosure, errShellEnded.Error()
		}
	}
	return websocket.StatusGoingAway, "the server is stopping; the terminal stays open in the sandbox"
}

// show sends what the terminal shows. The write is not bound to ctx, since then
// the client would not be told why it ends.
func (t *terminal) show(context.Context) error {
	buf := make([]byte, shownPiece)
	for {
		n, err := t.term.Read(buf)
		if n > 0 {
			patience, cancel := context.WithTimeout(context.Background(), typeTime)
			err := t.conn.Write(patience, websocket.MessageBinary, buf[:n])
			cancel()
			if err != nil {
				return errClientGone
			}
		}
		if err != nil {
			return errShellEnded
		}
	}
}

// listen passes on what the client types and commands.
func (t *terminal) listen(ctx context.Context) error {
	for {
		kind, b, err := t.conn.Read(context.Background())
		if err != nil {
			return errClientGone
		}
		if kind == websocket.MessageText {
			if err := t.command(ctx, b); err != nil {
				return err
			}
			continue
		}
		t.typing.Store(true)
		_, err = t.term.Write(b)
		t.typing.Store(false)
		if err != nil {
			return errShellEnded
		}
	}
}

// command does what a text frame says.
func (t *terminal) command(ctx context.Context, b []byte) error {
	var in api.TerminalControl
	if json.Unmarshal(b, &in) != nil || in.Resize == nil || !sane(in.Resize.Rows) || !sane(in.Resize.Cols) {
		return errNoCommand
	}
	_ = t.term.Resize(ctx, in.Resize.Rows, in.Resize.Cols) // a terminal that is gone ends the connection anyway
	return nil
}

func sane(n uint16) bool { return n >= 1 && n <= 1000 }

// ping notices a client that is gone without saying so.
func (t *terminal) ping(ctx context.Context) error {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if t.typing.Load() {
			continue
		}
		patience, cancel := context.WithTimeout(context.Background(), typeTime)
		err := t.conn.Ping(patience)
		cancel()
		if err != nil && !t.typing.Load() {
			return errClientGone
		}
	}
}

func describeTerminal(_ huma.Registry, o *huma.Operation) {
	o.Responses["101"] = &huma.Response{Description: "WebSocket"}
}

package legacy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"

	"deckhand/internal/access"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/socketio/engine"
)

// errSocketKey is the error for a Socket.IO client without a valid key.
var errSocketKey = errors.New("invalid_session_api_key")

// socketAuth ties a Socket.IO connection to its user: the connection ID appears in URLs, so it
// must not be enough to read or write.
type socketAuth struct {
	// user is the owner of the key in the handshake (query, header or cookie). Clients send
	// that key with every request. Empty if the key comes in a packet.
	user string
	// wrong is set if the key in the handshake was not valid.
	wrong bool

	mu sync.Mutex
	// in is the user authenticated by a key in a packet; valid checks that key again.
	in    string
	valid func(ctx context.Context) error
	// conn is the connection, and leave takes it out of the waiting room.
	conn  *engine.Conn
	leave func()
}

type socketAuthKey struct{}

// socketAuthOf returns the socketAuth of a connection, by its handshake.
func socketAuthOf(first *http.Request) *socketAuth {
	b, _ := first.Context().Value(socketAuthKey{}).(*socketAuth)
	if b == nil { // the request bypassed serveSocketIO
		return &socketAuth{user: "\x00"}
	}
	return b
}

// enter records the authenticated user.
func (b *socketAuth) enter(user string, valid func(ctx context.Context) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.in, b.valid = user, valid
	if b.conn != nil {
		b.conn.Admit()
		b.leave()
	}
}

// Connections without a key that are kept until they send one. A client sends it at once, so that the oldest ones are the
// least likely to be a client's: they make room for new ones.
const (
	MaxWaiting     = 1024
	MaxWaitingFrom = 128 // from one address, which many may share behind a proxy
)

// waitingRoom holds connections without a key, oldest first.
type waitingRoom struct {
	mu    sync.Mutex
	conns []*engine.Conn
}

// enter adds a connection, and returns the connection evicted for it, if any.
func (w *waitingRoom) enter(c *engine.Conn) (evicted *engine.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	from, same, oldest := rest.Stranger(c.Request()), 0, -1
	for i, other := range w.conns {
		if rest.Stranger(other.Request()) != from {
			continue
		}
		if same++; oldest < 0 {
			oldest = i
		}
	}
	switch {
	case same >= MaxWaitingFrom:
	case len(w.conns) >= MaxWaiting:
		oldest = 0
	default:
		oldest = -1
	}
	if oldest >= 0 {
		evicted = w.conns[oldest]
		w.conns = slices.Delete(w.conns, oldest, oldest+1)
	}
	w.conns = append(w.conns, c)
	return evicted
}

func (w *waitingRoom) len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.conns)
}

func (w *waitingRoom) leave(c *engine.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.conns, c); i >= 0 {
		w.conns = slices.Delete(w.conns, i, i+1)
	}
}

// opened handles a new connection. One without a key goes to the waiting room, with a small send limit.
func (d *Handlers) opened(c *engine.Conn) (ended func()) {
	b := socketAuthOf(c.Request())
	if b.user != "" {
		c.Admit()
		return func() {}
	}
	room := &d.sockets.waiting
	if evicted := room.enter(c); evicted != nil {
		evicted.Drop("too many connections wait for a key")
	}
	leave := func() { room.leave(c) }
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conn, b.leave = c, leave
	if b.valid != nil { // authenticated since
		c.Admit()
		leave()
	}
	return leave
}

func (b *socketAuth) entered() (user string, valid func(ctx context.Context) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.in, b.valid
}

// continues checks a request that belongs to a connection: a key that it has must be valid and of the same user, and it
// must have one if the handshake had.
func (d *Handlers) continues(first, next *http.Request) error {
	b := socketAuthOf(first)
	in, valid := b.entered()
	owner := b.user
	if owner == "" {
		owner = in
	}
	if body, ok := next.Body.(*meteredBody); ok {
		body.user = rest.Payer(next, owner)
	}
	who, err := d.socketKey(next.Context(), next, "")
	switch {
	case err == nil && (owner == "" || who.User == owner):
		return nil
	case err != nil && !errors.Is(err, access.ErrUnauthorized):
		d.Logger.ErrorContext(next.Context(), "keys cannot be read", "error", err)
		return errSocketKey
	case err != nil && b.user == "" && (b.wrong || !d.carriesKey(next)):
		if valid == nil || valid(next.Context()) == nil {
			return nil
		}
	}
	if err != nil && d.carriesKey(next) {
		d.Gate.AllowFailure(next.RemoteAddr)
	}
	return errSocketKey
}

// meteredBody counts the memory of a body while it is read, and until release.
type meteredBody struct {
	io.ReadCloser
	intake *rest.Intake
	user   string // whose memory it is
	held   int64
}

// Read fails when there is no memory left; the connection ends, and the client comes back.
func (b *meteredBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	need := 2 * int64(n) // as sent, and decoded
	if f := b.intake.Take(b.user, need); f != nil {
		return 0, f
	}
	b.held += need
	return n, err
}

func (b *meteredBody) release() { b.intake.Give(b.user, b.held) }

// carriesKey reports whether a request has a key, valid or not, where socketKey looks for one.
func (d *Handlers) carriesKey(r *http.Request) bool {
	if key, _ := rest.Presented(r); key != "" || keyInQuery(r) != "" {
		return true
	}
	_, err := d.Guard.LoginOf(r)
	return err == nil
}

func keyInQuery(r *http.Request) string {
	key := r.URL.Query().Get("session_api_key")
	if key == "null" || key == "undefined" { // sent by scripts without a key
		return ""
	}
	return key
}

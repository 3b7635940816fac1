package legacy

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"deckhand/api"
	"deckhand/internal/access"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/httpapi/status"
	"deckhand/internal/session"
	"deckhand/internal/socketio"
)

// Legacy clients follow a conversation over Socket.IO. Who connects names the
// conversation and the last event it has; it is told what it missed and then what
// is new, and what it sends is what it could post. The log is the queue here too:
// a client that reads slowly holds up nothing but itself.

// sockets are the connections of legacy clients.
type sockets struct {
	server  *socketio.Server
	waiting waitingRoom

	mu   sync.Mutex
	open map[session.ID]map[*listener]struct{}
}

func newSockets(d *Handlers) *sockets {
	o := d.Sockets
	o.Engine.Continue, o.Engine.Opened = d.continues, d.opened
	o.Engine.GuestPayload = rest.MaxPublicBody
	if o.Logger == nil {
		o.Logger = d.Logger
	}
	return &sockets{server: socketio.New(o, map[string]socketio.Handler{"/": d.greet}), open: map[session.ID]map[*listener]struct{}{}}
}

func (s *sockets) add(l *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[l.id] == nil {
		s.open[l.id] = map[*listener]struct{}{}
	}
	s.open[l.id][l] = struct{}{}
}

func (s *sockets) remove(l *listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.open[l.id], l); len(s.open[l.id]) == 0 {
		delete(s.open, l.id)
	}
}

// endAfter disconnects the clients of a conversation, each when it has been sent
// the event of this number: the one that says why.
func (s *sockets) endAfter(id session.ID, number int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.open[id] {
		l.endAfter(number)
	}
}

const aboutSocketIO = "Engine.IO 4 and Socket.IO 5, over WebSocket or long-polling. Connect to the namespace / with the query parameters conversation_id and latest_event_id. " +
	"Send the key as session_api_key in the query or in the auth payload, or in the usual header. docs/events.md describes the messages."

func describeSocketIO(o *huma.Operation) {
	for _, name := range []string{"EIO", "transport", "sid", "conversation_id", "latest_event_id", "providers_set", "session_api_key"} {
		o.Parameters = append(o.Parameters, &huma.Param{Name: name, In: "query", Required: name == "EIO" || name == "transport", Schema: &huma.Schema{Type: huma.TypeString}})
	}
	o.Responses["200"] = &huma.Response{Description: "Engine.IO packets", Content: map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}}}}
	if o.Method == http.MethodGet {
		o.Responses["101"] = &huma.Response{Description: "WebSocket"}
	}
	o.Responses["429"] = &huma.Response{Description: "Too many connections with an invalid key."}
}

// serveSocketIO passes requests on. One that begins a connection may come without a key,
// which can still come with the first packet; few such connections are kept, see
// waitingRoom. Those that belong to a connection are checked in continues.
func (d *Handlers) serveSocketIO(w http.ResponseWriter, r *http.Request, _ *rest.Call) error {
	if !r.URL.Query().Has("sid") {
		b := &socketAuth{}
		switch who, err := d.socketKey(r.Context(), r, ""); {
		case errors.Is(err, access.ErrUnauthorized):
			if b.wrong = d.carriesKey(r); !b.wrong {
				break
			}
			if a := d.Gate.AllowFailure(r.RemoteAddr); !a.OK {
				return rest.TooMany(a, "Too many connections with an invalid key.")
			}
		case err != nil:
			return err
		default:
			b.user = who.User
		}
		r = r.WithContext(context.WithValue(r.Context(), socketAuthKey{}, b))
	} else if r.Method == http.MethodPost {
		body := &meteredBody{ReadCloser: r.Body, intake: d.Intake, user: rest.Stranger(r)}
		r.Body = body
		defer body.release()
	}
	d.sockets.server.ServeHTTP(w, r)
	return nil
}

// socketKey finds out who connects. The key may stand in the address here, where
// legacy clients have no other place for it; the address is not logged.
func (d *Handlers) socketKey(ctx context.Context, r *http.Request, auth string) (access.Identity, error) {
	key := keyInQuery(r)
	if key == "" {
		key = auth
	}
	if key == "" {
		key, _ = rest.Presented(r)
	}
	if key != "" {
		return d.Gate.Authenticate(ctx, key)
	}
	return d.Guard.Browser(r)
}

// keyIn is the key in the payload that a client connects with.
func keyIn(auth json.RawMessage) string {
	var in struct {
		Key   any `json:"session_api_key"`
		Token any `json:"token"`
	}
	_ = json.Unmarshal(auth, &in) // one that is something else holds no key
	for _, v := range []any{in.Key, in.Token} {
		if s, ok := v.(string); ok && s != "" {
			return s
		}
	}
	return ""
}

// greet meets a client: who is it, what does it want to follow, and from where?
func (d *Handlers) greet(ctx context.Context, s *socketio.Socket) (socketio.Serve, error) {
	l, err := d.listener(ctx, s)
	if err != nil {
		f := status.Of(err)
		if f.Status >= 500 {
			d.Logger.ErrorContext(s.Request().Context(), "socket failed", "error", err)
		}
		d.Logger.InfoContext(s.Request().Context(), "socket refused", "from", s.Request().RemoteAddr, "reason", f.Msg)
		return socketio.Serve{}, &socketio.Refusal{Message: f.Msg, Data: map[string]string{"msg_id": f.Code}}
	}
	return socketio.Serve{Run: l.run, Event: l.event}, nil
}

func (d *Handlers) listener(ctx context.Context, s *socketio.Socket) (*listener, error) {
	r := s.Request()
	auth := keyIn(s.Auth())
	who, err := d.socketKey(ctx, r, auth)
	if errors.Is(err, access.ErrUnauthorized) {
		if auth != "" || !socketAuthOf(r).wrong { // others were counted when they connected
			d.Gate.AllowFailure(r.RemoteAddr)
		}
		return nil, rest.Fail(http.StatusUnauthorized, api.CodeUnauthorized, errSocketKey.Error())
	}
	if err != nil {
		return nil, err
	}
	query := r.URL.Query()
	id := session.ID(query.Get("conversation_id"))
	if id == "" {
		return nil, rest.Fail(http.StatusBadRequest, api.CodeBadRequest, "No conversation_id in query params")
	}
	if id.Check() != nil {
		return nil, session.ErrNotFound
	}
	l := &listener{api: d, socket: s, who: who, from: r.RemoteAddr, id: id}
	l.valid = func(ctx context.Context) error { _, err := d.socketKey(ctx, r, auth); return err }
	socketAuthOf(r).enter(who.User, l.valid)
	row, err := d.Conversations.Row(ctx, who.User, id)
	if err != nil {
		return nil, err
	}
	l.end, l.after = row.Last, position(query.Get("latest_event_id"), row.Last)
	at, sentAway, ok := lostAt(s, id, row.Last)
	if ok {
		s.Recover()
		l.after = max(l.after, at)
	}
	if ok && !sentAway {
		return l, nil
	}
	return l, l.start(ctx, row)
}

// start opens a stopped conversation when a client joins it. A client that lost its connection
// and returns does not start it: it may have stopped the conversation itself. A client that the
// server disconnected only reconnects on the user's request.
func (l *listener) start(ctx context.Context, row session.Row) error {
	err := l.api.Conversations.CheckSettings(ctx, l.who.User, nil)
	if err == nil && row.Status == session.Halted {
		_, err = l.api.Conversations.Start(ctx, l.who.User, l.id)
	}
	if refused := usecase.RefusalOf(err); refused != nil && refused.Kind == usecase.Unmet && refused.Code != api.CodeSettingsNotFound {
		if row.Status == session.Halted { // it can be read all the same
			l.problem = refused
		}
		return nil
	}
	return err
}

// position is the last event that a client has. What is no number, or beyond the
// end, is that of another log, of a server that was restored from a backup, say:
// the client gets everything.
func position(text string, last int64) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > last {
		return 0
	}
	return n
}

// Offset is what a client remembers for us: the conversation and the last event of it.
func Offset(id session.ID, number int64) string {
	return string(id) + ":" + strconv.FormatInt(number, 10)
}

// away ends the offset of a client that is sent away because the conversation stops.
const away = ":away"

// lostAt is where a client was that lost its connection, or was sent away; false if
// it says none, or one that means nothing here.
func lostAt(s *socketio.Socket, id session.ID, last int64) (at int64, sentAway, ok bool) {
	text, _ := s.Lost()
	text, sentAway = strings.CutSuffix(text, away)
	of, number, _ := strings.Cut(text, ":")
	at, err := strconv.ParseInt(number, 10, 64)
	return at, sentAway, err == nil && of == string(id) && at >= 0 && at <= last
}

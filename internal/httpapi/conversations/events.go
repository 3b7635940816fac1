package conversations

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"deckhand/api"
	"deckhand/internal/access"
	"deckhand/internal/conversation/query"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/live"
	"deckhand/internal/session"
	v0 "deckhand/internal/v0"
)

const aboutEvents = "Filters are applied before pagination: limit counts matching events. Filters may also be sent in a JSON body, as some legacy clients do; query parameters take precedence. " +
	"A type is the value of action or observation, such as run or agent_state_changed, or with format=deckhand the value of kind. An imported event is also found by the kinds, tools and contents of the events in its as. " +
	"Dates without a time zone are UTC; a date without a time means the start of the day."

// listEvents pages through the log.
func (d *Handlers) listEvents(ctx context.Context, c *rest.Call, q query.Events, b api.Opt[api.EventFilter]) (api.EventPage, error) {
	page, err := d.Queries.Events(ctx, c.Who.User, q, b.Value)
	if err == nil && rest.IsNative(q.Format) {
		rest.StateEventVersion(c.Header)
	}
	return page, err
}

// rawEvent is a body that the dialect checks, because it is the dialect's.
type rawEvent map[string]any

func (d *Handlers) postEvent(ctx context.Context, c *rest.Call, p rest.InConversation, _ rawEvent) (api.Accepted, error) {
	in, err := v0.ParseIntent(c.Raw)
	if err != nil {
		return api.Accepted{}, err
	}
	in.Message.Key = c.RetryKey
	return accepted(d.Service.Act(ctx, c.Who.User, session.ID(p.ID), in))
}

func (d *Handlers) postMessage(ctx context.Context, c *rest.Call, p rest.InConversation, b api.PostMessage) (api.Accepted, error) {
	_, err := d.Service.Say(ctx, c.Who.User, session.ID(p.ID), session.UserSaid{Text: b.Message, Images: b.ImageURLs.Value, Key: c.RetryKey})
	return accepted(err)
}

func accepted(err error) (api.Accepted, error) { return api.Accepted{Success: err == nil}, err }

// streamer is one of live's two ways to serve a reader.
type streamer func(w http.ResponseWriter, r *http.Request, h *live.Hub, id session.ID, after int64, o live.Options) error

func (d *Handlers) streamEvents(w http.ResponseWriter, r *http.Request, c *rest.Call) error {
	return d.follow(w, r, c, live.ServeSSE)
}

func (d *Handlers) socketEvents(w http.ResponseWriter, r *http.Request, c *rest.Call) error {
	return d.follow(w, r, c, serveSocket)
}

// serveSocket tells those who did not ask for an upgrade so, in our words.
func serveSocket(w http.ResponseWriter, r *http.Request, h *live.Hub, id session.ID, after int64, o live.Options) error {
	if !rest.Upgrades(r) {
		return rest.UpgradeRequired("This path needs a WebSocket connection. For server-sent events, use events/stream.")
	}
	return live.ServeWS(w, r, h, id, after, o)
}

// follow checks who follows what from where, and ends with the key or the server.
func (d *Handlers) follow(w http.ResponseWriter, r *http.Request, c *rest.Call, serve streamer) error {
	row, err := d.row(r.Context(), c, r.PathValue("conversation_id"))
	if err != nil {
		return err
	}
	after, err := live.Position(r)
	if err != nil {
		return badPosition(r, "int_parsing", "Must be the number of the last event seen.")
	}
	format, err := rest.StreamFormat(w.Header(), r)
	if err != nil {
		return err
	}
	ctx, detach, release := d.Life.HoldStream(w, r, c)
	defer release()
	err = serve(w, r.WithContext(ctx), d.Hub, row.ID, after, live.Options{Format: format, Close: whyClosed, Detach: detach})
	var f *rest.Fault
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, live.ErrAhead):
		return badPosition(r, "greater_than_end", "The position is beyond the newest event of the conversation. Reconnect without a position.")
	}
	return streamError(ctx, err)
}

// streamError returns the error to respond with. A stream that has started has sent its
// status already, so there is none.
func streamError(ctx context.Context, err error) error {
	switch {
	case !errors.Is(err, live.ErrNotStarted):
		return nil
	case errors.Is(context.Cause(ctx), access.ErrRevoked):
		return rest.Unauthorized()
	}
	return err
}

// whyClosed is what a WebSocket client is told.
func whyClosed(cause error) (code int, reason string) {
	if errors.Is(cause, access.ErrRevoked) {
		return 4001, "the key was revoked or has expired"
	}
	return 1001, "the server is stopping; resume from the last event"
}

// badPosition complains where the client said it: live.Position looks in the same order.
func badPosition(r *http.Request, typ, msg string) error {
	loc := []any{"query", "after"}
	switch q := r.URL.Query(); {
	case r.Header.Get("Last-Event-ID") != "":
		loc = []any{"header", "Last-Event-ID"}
	case q.Get("after") == "" && q.Get("last_event_id") != "":
		loc = []any{"query", "last_event_id"}
	}
	return &api.ValidationError{Detail: []api.FieldError{{Loc: loc, Type: typ, Msg: msg}}}
}

func describeStream(o *huma.Operation) {
	resumable(o)
	o.Responses["200"] = &huma.Response{Description: "Server-sent events, as described in docs/events.md. With format=deckhand, the data of each message is an Event, and that of the type delta is {call, offset, text}.",
		Content: map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}}}}
}

func describeSocket(o *huma.Operation) {
	resumable(o)
	o.Responses["101"] = &huma.Response{Description: "WebSocket with one JSON text frame {type, id, data} per event. With format=deckhand, the data of the type event is an Event, and that of the type delta is {call, offset, text}."}
}

func resumable(o *huma.Operation) {
	o.Parameters = append(o.Parameters,
		rest.FormatParam(),
		&huma.Param{Name: "after", In: "query", Description: "Number of the last event seen. The stream continues after it.", Schema: &huma.Schema{Type: huma.TypeInteger, Minimum: new(-1.0)}},
		&huma.Param{Name: "last_event_id", In: "query", Description: "Alias of after.", Schema: &huma.Schema{Type: huma.TypeInteger, Minimum: new(-1.0)}},
		&huma.Param{Name: "Last-Event-ID", In: "header", Description: "Same as after; sent by browsers when they reconnect.", Schema: &huma.Schema{Type: huma.TypeString}})
}

package conversations

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"deckhand/api"
	"deckhand/internal/access"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/live"
	"deckhand/internal/session"
	v0 "deckhand/internal/v0"
)

type eventQuery struct {
	ID      string `path:"conversation_id" minLength:"1" maxLength:"100" pattern:"^[A-Za-z0-9_-]+$"`
	StartID int64  `query:"start_id" default:"0" minimum:"0" doc:"First event number, inclusive."`
	EndID   *int64 `query:"end_id" minimum:"0" doc:"Last event number, inclusive. Default: the newest."`
	Reverse bool   `query:"reverse" default:"false" doc:"Newest first."`
	Limit   int64  `query:"limit" default:"20" minimum:"0" maximum:"100"`

	ExcludeHidden *bool  `query:"exclude_hidden" doc:"Leave out hidden commands and their results."`
	Text          string `query:"query" maxLength:"1000" doc:"Only events whose JSON contains this text, ignoring case."`
	IncludeTypes  string `query:"include_types" maxLength:"5000" doc:"Only events of these action and observation types, separated by commas."`
	ExcludeTypes  string `query:"exclude_types" maxLength:"5000" doc:"No events of these action and observation types, separated by commas."`
	Tools         string `query:"tools" maxLength:"5000" doc:"Only calls and results of these tools, separated by commas. Needs format=deckhand."`
	Display       string `query:"display" maxLength:"1000" doc:"Only calls and results whose display has one of these contents, separated by commas, such as page. Needs format=deckhand."`
	Source        string `query:"source" maxLength:"100" doc:"Only events from this source: agent, user or environment."`
	StartDate     string `query:"start_date" maxLength:"100" doc:"Only events at or after this time."`
	EndDate       string `query:"end_date" maxLength:"100" doc:"Only events at or before this time."`
	Format        string `query:"format" default:"legacy" enum:"legacy,deckhand" doc:"Format of the events: legacy, or deckhand for the events as logged (schema Event)."`
	Statuses      bool   `query:"statuses" default:"false" doc:"Also return statuses, each as {id, timestamp, status}. Filters do not apply to them. Has no effect with format=deckhand, which lists every event."`
}

// listEvents pages through the log. Events without a counterpart on the wire leave gaps in the numbers.
func (d *Handlers) listEvents(ctx context.Context, c *rest.Call, q eventQuery, b api.Opt[api.EventFilter]) (api.EventPage, error) {
	row, err := d.row(ctx, c, q.ID)
	if err != nil {
		return api.EventPage{}, err
	}
	filter, err := d.eventsWanted(ctx, row, q, b.Value)
	if err != nil {
		return api.EventPage{}, err
	}
	if filter.native {
		rest.StateEventVersion(c.Header)
	}
	first, last := max(q.StartID, 1), row.Last
	if q.EndID != nil {
		last = min(last, *q.EndID)
	}
	want := int(q.Limit) + 1
	var found []json.RawMessage
	if q.Reverse {
		found, err = d.eventsDown(ctx, row, filter, first, last, want)
	} else {
		found, err = d.eventsUp(ctx, row, filter, first, last, want)
	}
	page := api.EventPage{Events: found[:min(len(found), want-1)], HasMore: len(found) >= want}
	if page.Events == nil {
		page.Events = []json.RawMessage{}
	}
	return page, err
}

func (d *Handlers) eventsUp(ctx context.Context, row session.Row, filter *eventFilter, first, last int64, want int) ([]json.RawMessage, error) {
	var out []json.RawMessage
	if first > last {
		return out, nil
	}
	for e, err := range d.Log.Read(ctx, row.ID, first-1) {
		if err != nil {
			return nil, err
		}
		if e.Number > last || len(out) >= want {
			break
		}
		if filter.native {
			f, shown, err := d.Hub.Encode(rest.NativeEvents, row.ID, e)
			if err != nil {
				return nil, err
			}
			if shown && filter.wants(e, f.Data) {
				out = append(out, f.Data)
			}
			continue
		}
		f, err := v0.Encode(row.ID, e)
		if err != nil {
			return nil, err
		}
		if f.Kind != v0.Event && (f.Kind != v0.Status || !filter.statuses) {
			continue
		}
		event, err := d.masked(ctx, row.Owner, f.JSON)
		switch {
		case err != nil:
			return nil, err
		case f.Kind == v0.Status:
			out = append(out, statusOf(e, event))
		case filter.wants(e, event):
			out = append(out, event)
		}
	}
	return out, nil
}

// statusOf is a status as a page of events tells it: beside a number and a time, which a
// stream tells in another way.
func statusOf(e session.Event, status json.RawMessage) json.RawMessage {
	out, err := json.Marshal(struct {
		ID        int64           `json:"id"`
		Timestamp time.Time       `json:"timestamp"`
		Status    json.RawMessage `json:"status"`
	}{e.Number, e.At, status})
	if err != nil {
		panic(err) // it is JSON already
	}
	return out
}

// eventsDown reads the log in short stretches from the end, since logs are read upwards.
func (d *Handlers) eventsDown(ctx context.Context, row session.Row, filter *eventFilter, first, last int64, want int) ([]json.RawMessage, error) {
	var out []json.RawMessage
	for last >= first && len(out) < want {
		from := max(first, last-127)
		part, err := d.eventsUp(ctx, row, filter, from, last, 1<<30)
		if err != nil {
			return nil, err
		}
		slices.Reverse(part)
		out = append(out, part...)
		last = from - 1
	}
	return out[:min(len(out), want)], nil
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

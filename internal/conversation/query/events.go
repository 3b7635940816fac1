package query

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"deckhand/api"
	"deckhand/internal/live"
	"deckhand/internal/session"
	v0 "deckhand/internal/v0"
)

// The formats of events, in the order of the encoders of the server's hub.
const (
	LegacyEvents live.Format = iota
	NativeEvents
)

// Events asks for a page of the events of a conversation. The tags are the limits that every entry point checks.
type Events struct {
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

// Events pages through the log. Events without a counterpart on the wire leave gaps in the numbers. A filter may come
// beside the query, which takes precedence.
func (r *Reader) Events(ctx context.Context, user string, q Events, more api.EventFilter) (api.EventPage, error) {
	row, err := r.Conversations.Row(ctx, user, session.ID(q.ID))
	if err != nil {
		return api.EventPage{}, err
	}
	filter, err := r.eventsWanted(ctx, row, q, more)
	if err != nil {
		return api.EventPage{}, err
	}
	first, last := max(q.StartID, 1), row.Last
	if q.EndID != nil {
		last = min(last, *q.EndID)
	}
	want := int(q.Limit) + 1
	var found []json.RawMessage
	if q.Reverse {
		found, err = r.eventsDown(ctx, row, filter, first, last, want)
	} else {
		found, err = r.eventsUp(ctx, row, filter, first, last, want)
	}
	page := api.EventPage{Events: found[:min(len(found), want-1)], HasMore: len(found) >= want}
	if page.Events == nil {
		page.Events = []json.RawMessage{}
	}
	return page, err
}

func (r *Reader) eventsUp(ctx context.Context, row session.Row, filter *eventFilter, first, last int64, want int) ([]json.RawMessage, error) {
	var out []json.RawMessage
	if first > last {
		return out, nil
	}
	for e, err := range r.Conversations.Log.Read(ctx, row.ID, first-1) {
		if err != nil {
			return nil, err
		}
		if e.Number > last || len(out) >= want {
			break
		}
		if filter.native {
			f, shown, err := r.Hub.Encode(NativeEvents, row.ID, e)
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
		event, err := r.Masked(ctx, row.Owner, f.JSON)
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
func (r *Reader) eventsDown(ctx context.Context, row session.Row, filter *eventFilter, first, last int64, want int) ([]json.RawMessage, error) {
	var out []json.RawMessage
	for last >= first && len(out) < want {
		from := max(first, last-127)
		part, err := r.eventsUp(ctx, row, filter, from, last, 1<<30)
		if err != nil {
			return nil, err
		}
		slices.Reverse(part)
		out = append(out, part...)
		last = from - 1
	}
	return out[:min(len(out), want)], nil
}

// HiddenCalls are the numbers of the calls whose results say that they are hidden.
func (r *Reader) HiddenCalls(ctx context.Context, row session.Row) (map[int64]bool, error) {
	hidden := map[int64]bool{}
	for e, err := range r.Conversations.Log.Read(ctx, row.ID, 0) {
		if err != nil {
			return nil, err
		}
		if e.Number > row.Last {
			break
		}
		if call, ok := v0.HiddenCall(e); ok {
			hidden[call], hidden[e.Number] = true, true
		}
	}
	return hidden, nil
}

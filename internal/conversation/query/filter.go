package query

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"deckhand/api"
	"deckhand/internal/native"
	"deckhand/internal/session"
)

// eventFilter selects events of a conversation.
type eventFilter struct {
	query            []byte // in lower case
	include, exclude []string
	tools, contents  []string
	source           string
	from, until      time.Time
	hidden           map[int64]bool // by number
	statuses         bool
	native           bool // events are in the format deckhand
}

// newEventFilter joins what the query and the body say.
func newEventFilter(q Events, body api.EventFilter) (eventFilter, error) {
	faults := &api.ValidationError{}
	choose := func(name, asked string, in api.Opt[string]) (string, []any) {
		if asked != "" {
			return asked, []any{"query", name}
		}
		return in.Value, []any{"body", name}
	}
	day := func(name, asked string, in api.Opt[string]) time.Time {
		text, loc := choose(name, asked, in)
		t, err := parseDate(text)
		if err != nil {
			faults.Detail = append(faults.Detail, api.FieldError{Loc: loc, Type: "datetime_parsing", Msg: "Must be a date such as 2026-03-01 or 2026-03-01T12:00:00Z."})
		}
		return t
	}
	isNative := q.Format == native.Format
	kinds := func(name, asked string, in api.Opt[[]string]) []string {
		all, loc := in.Value, []any{"body", name}
		if asked != "" {
			all, loc = strings.Split(asked, ","), []any{"query", name}
		}
		for _, kind := range all {
			if isNative && !native.Shown(session.Kind(kind)) {
				faults.Detail = append(faults.Detail, api.FieldError{Loc: loc, Type: "value_error",
					Msg: fmt.Sprintf("Unknown kind %q. The schema Event in the OpenAPI document lists all kinds.", kind)})
			}
		}
		return all
	}
	f := eventFilter{statuses: q.Statuses, native: isNative,
		include: kinds("include_types", q.IncludeTypes, body.IncludeTypes), exclude: kinds("exclude_types", q.ExcludeTypes, body.ExcludeTypes),
		from: day("start_date", q.StartDate, body.StartDate), until: day("end_date", q.EndDate, body.EndDate)}
	var loc []any
	if f.source, loc = choose("source", q.Source, body.Source); f.native && f.source != "" {
		faults.Detail = append(faults.Detail, api.FieldError{Loc: loc, Type: "value_error", Msg: "Events in the format deckhand have no source. Filter by kind with include_types."})
	}
	if q.Tools != "" {
		f.tools = strings.Split(q.Tools, ",")
	}
	if q.Display != "" {
		f.contents = strings.Split(q.Display, ",")
	}
	for _, content := range f.contents {
		if f.native && !native.IsContent(content) {
			faults.Detail = append(faults.Detail, api.FieldError{Loc: []any{"query", "display"}, Type: "value_error",
				Msg: fmt.Sprintf("Unknown content %q. The schema Display in the OpenAPI document lists all contents.", content)})
		}
	}
	for name, value := range map[string]string{"tools": q.Tools, "display": q.Display} {
		if !f.native && value != "" {
			faults.Detail = append(faults.Detail, api.FieldError{Loc: []any{"query", name}, Type: "value_error", Msg: "Needs format=deckhand."})
		}
	}
	text, _ := choose("query", q.Text, body.Query)
	f.query = []byte(strings.ToLower(text))
	if len(faults.Detail) > 0 {
		return f, faults
	}
	return f, nil
}

// dates are how clients write them; the reference writes none with a zone.
var dates = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02T15:04", time.DateOnly}

func parseDate(text string) (t time.Time, err error) {
	if text == "" {
		return t, nil
	}
	for _, layout := range dates {
		if t, err = time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return t, err
}

// wants reports whether an event, and the JSON made of it, is one of those.
func (f *eventFilter) wants(e session.Event, event []byte) bool {
	if f.hidden[e.Number] || !f.from.IsZero() && e.At.Before(f.from) || !f.until.IsZero() && e.At.After(f.until) {
		return false
	}
	if len(f.query) > 0 && !bytes.Contains(bytes.ToLower(event), f.query) {
		return false
	}
	if f.source == "" && len(f.include)+len(f.exclude)+len(f.tools)+len(f.contents) == 0 {
		return true
	}
	if f.native {
		return f.wantsNative(event)
	}
	var head struct{ Source, Action, Observation string }
	if json.Unmarshal(event, &head) != nil {
		return false
	}
	is := func(kind string) bool { return kind != "" && (kind == head.Action || kind == head.Observation) }
	return (f.source == "" || f.source == head.Source) &&
		(len(f.include) == 0 || slices.ContainsFunc(f.include, is)) && !slices.ContainsFunc(f.exclude, is)
}

// wantsNative reports whether a native event has a wanted kind, tool and content. For an
// imported event, one of the events that it stands for is enough.
func (f *eventFilter) wantsNative(event []byte) bool {
	type payload struct {
		Name    string
		Display struct{ Content string }
	}
	type head struct {
		Kind    string
		Payload payload
	}
	var e struct {
		Kind    string
		Payload struct {
			payload
			As []head
		}
	}
	if json.Unmarshal(event, &e) != nil || slices.Contains(f.exclude, e.Kind) {
		return false
	}
	one := func(wanted []string, has string) bool { return len(wanted) == 0 || slices.Contains(wanted, has) }
	return slices.ContainsFunc(append(e.Payload.As, head{e.Kind, e.Payload.payload}), func(h head) bool {
		return one(f.include, h.Kind) && one(f.tools, h.Payload.Name) && one(f.contents, h.Payload.Display.Content)
	})
}

// eventsWanted makes the filter of a request. Which calls are hidden is known from
// their results, which come later, so the log is read for it.
func (r *Reader) eventsWanted(ctx context.Context, row session.Row, q Events, body api.EventFilter) (*eventFilter, error) {
	f, err := newEventFilter(q, body)
	if err != nil {
		return nil, err
	}
	exclude := body.ExcludeHidden.Value
	if q.ExcludeHidden != nil {
		exclude = *q.ExcludeHidden
	}
	if exclude {
		f.hidden, err = r.HiddenCalls(ctx, row)
	}
	return &f, err
}

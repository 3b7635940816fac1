package takeover

import (
	"encoding/json"
	"slices"
	"time"

	"deckhand/internal/session"
	v0 "deckhand/internal/v0"
)

// Trajectory is a conversation as another installation of Deckhand has exported it.
type Trajectory struct {
	Title string
	// Began is when it was created; zero if that is unknown.
	Began time.Time
	// Events are its events in the dialect of the legacy server, in order.
	Events [][]byte
}

// Convert makes a log for a user. Everything in a trajectory may be forged, so its events are stored as imported ones, which carry no authority: they give
// no approvals, trust or money, belong to no repository, and their cost counts nowhere. Events that cannot be read are skipped.
func (t Trajectory) Convert(user string, now time.Time) (events []session.Event, skipped int) {
	head := []session.Event{{Payload: session.Created{Owner: user}}, {Payload: session.Titled{Title: title(t.Title), ByUser: true}}}
	conv := newConverter(len(head), time.UTC, now)
	for i, raw := range t.Events {
		var of struct {
			ID *int64 `json:"id"`
		}
		past, err := v0.ReadPast(raw)
		if err == nil && json.Unmarshal(raw, &of) == nil {
			id := int64(i)
			if of.ID != nil {
				id = *of.ID
			}
			err = conv.add(id, past)
		}
		if err != nil {
			skipped++
		}
	}
	conv.settle()
	now = now.UTC().Truncate(time.Microsecond)
	began := t.Began.UTC().Truncate(time.Microsecond)
	if began.IsZero() || began.After(now) {
		began = now
	}
	head[0].Payload = session.Created{Owner: user, Instructions: conv.instructions}
	for i := range conv.events {
		if conv.events[i].At.IsZero() {
			conv.events[i].At = began
		}
	}
	head[0].At, head[1].At = began, began
	end := session.Event{At: now, Payload: session.Stopped{Reason: "The conversation was imported from a file."}}
	return slices.Concat(head, conv.events, []session.Event{end}), skipped
}

// CleanTitle is a title as an import stores it: one line, of bounded length.
func CleanTitle(s string) string { return title(s) }

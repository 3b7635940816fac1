package httpapi

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"deckhand/api"
	"deckhand/internal/session"
)

func TestGetTimeline(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := begin
	r := newRig(t, tune{clock: func() time.Time { return now }})
	r.settle("ada", "bob")
	id := r.create(`{}`)
	r.happens(id, session.UserSaid{Text: "hello"})
	after := func(second int, p ...session.Payload) {
		now = begin.Add(time.Duration(second) * time.Second)
		r.happens(id, p...)
	}
	after(2, session.Claimed{By: "loop"}, session.WorkspaceReady{})
	after(3, session.TurnBegan{})
	after(4, session.ModelAsked{Call: "m", Model: "acme/one", UpTo: 5})
	after(9, session.ModelAnswered{Call: "m", Text: "Done.", Final: true}, session.TurnEnded{UpTo: 5, State: session.AgentAwaitingUser})
	path := toCreate + "/" + id + "/timeline"
	a := r.do("GET", path, "").want(t, 200)
	want := []string{"queue start 0s-2s #1", "queue message 0s-3s #2", "model acme/one 4s-9s #6"}
	got := decoded[api.Timeline](t, a)
	var spans []string
	for _, s := range got.Spans {
		spans = append(spans, fmt.Sprintf("%s %s %v-%v #%d", s.Kind, s.Name, s.StartedAt.Sub(begin), s.EndedAt.Sub(begin), s.EventID))
	}
	if !slices.Equal(spans, want) || len(got.Turns) != 1 || got.Turns[0].EventID != 5 || got.Totals != (api.TimelineTotals{Queue: 3000, Model: 5000}) {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(a.body, `"started_at":"2026-01-01T00:00:00Z","ended_at":"2026-01-01T00:00:02Z"`) {
		t.Error(a.body)
	}
	if got := decoded[api.Timeline](t, r.do("GET", path+"?after=5&limit=1", "").want(t, 200)); len(got.Turns)+len(got.Spans) != 0 || got.Totals.Model != 5000 {
		t.Errorf("%+v", got)
	}
	if body := r.do("GET", path+"?after=5", "").body; !strings.HasPrefix(body, `{"spans":[],"totals":{`) || !strings.Contains(body, `"turns":[]`) {
		t.Error(body)
	}
	r.as("bob", "GET", path, "").want(t, 404)
	for _, query := range []string{"limit=0", "limit=501", "limit=x", "after=-1"} {
		r.do("GET", path+"?"+query, "").want(t, 422)
	}
}

// happens changes a conversation as a loop would, by its rules and its clock.
func (r *rig) happens(id string, p ...session.Payload) session.State {
	r.t.Helper()
	st, err := r.sessions.Update(r.t.Context(), session.ID(id), func(session.State) ([]session.Payload, error) { return p, nil })
	if err != nil {
		r.t.Fatal(err)
	}
	return st
}

package httpapi

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/internal/session"
)

// filterable makes a conversation in which a command was run, and another one
// hidden. What the loop did is from 1970, what its user did from today.
func (r *rig) filterable() (id string) {
	r.t.Helper()
	r.settle("ada", "bob")
	id = r.create(`{}`)
	r.happens(id, session.UserSaid{Text: "Say Grüße"})
	row, err := r.log.Row(r.t.Context(), session.ID(id))
	if err != nil {
		r.t.Fatal(err)
	}
	runs := func(call, args string) session.ToolCalled {
		return session.ToolCalled{ToolCall: session.ToolCall{ID: call, Name: "execute_bash", Args: json.RawMessage(args)}, Answer: 1, InAnswer: 1}
	}
	r.append(id, runs("a", `{"command":"ls"}`),
		session.ToolReturned{ID: "a", Name: "execute_bash", Cause: row.Last + 1, Outcome: session.Succeeded, Output: "one.txt", Details: json.RawMessage(`{"exit_code":0}`)},
		runs("b", `{"command":"id"}`),
		session.ToolReturned{ID: "b", Name: "execute_bash", Cause: row.Last + 3, Outcome: session.Succeeded, Output: "root", Details: json.RawMessage(`{"exit_code":0,"hidden":true}`)},
		session.ModelAnswered{Text: "Done.", Final: true})
	return id
}

// briefly is who did what in a page of events.
func briefly(t *testing.T, a answer) string {
	t.Helper()
	var out []string
	for _, raw := range decoded[api.EventPage](t, a).Events {
		var e api.LegacyEvent
		if err := json.Unmarshal(raw, &e); err != nil {
			t.Fatal(err)
		}
		out = append(out, e.Source+":"+e.Action+e.Observation)
	}
	return strings.Join(out, " ")
}

const everyEvent = "environment:agent_state_changed user:message agent:run agent:run agent:run agent:run agent:message"

// Events are chosen before pages are cut, by the query or by a body.
func TestEventFilter(t *testing.T) {
	r := newRig(t)
	id := r.filterable()
	to := "/api/conversations/" + id + "/events"
	if got := briefly(t, r.do("GET", to, "").want(t, 200)); got != everyEvent {
		t.Fatalf("the conversation is %s", got)
	}
	for _, c := range []struct{ query, body, want string }{
		{"include_types=run", `{"include_types":["run"]}`, "agent:run agent:run agent:run agent:run"},
		{"include_types=message,agent_state_changed", `{"include_types":["message","agent_state_changed"]}`, "environment:agent_state_changed user:message agent:message"},
		{"exclude_types=run,message", `{"exclude_types":["run","message"]}`, "environment:agent_state_changed"},
		{"include_types=nothing", `{"include_types":["nothing"]}`, ""},
		{"source=user", `{"source":"user"}`, "user:message"},
		{"source=agent&exclude_types=run", `{"source":"agent","exclude_types":["run"]}`, "agent:message"},
		{"query=GRÜSSE", `{"query":"GRÜSSE"}`, ""},
		{"query=gRÜße", `{"query":"gRÜße"}`, "user:message"},
		{"query=ONE.TXT", `{"query":"ONE.TXT"}`, "agent:run"},
		{"exclude_hidden=true", `{"exclude_hidden":true}`, "environment:agent_state_changed user:message agent:run agent:run agent:message"},
		{"exclude_hidden=false", `{"exclude_hidden":false}`, everyEvent},
		{"start_date=2020-01-01", `{"start_date":"2020-01-01T00:00:00Z"}`, "environment:agent_state_changed user:message"},
		{"end_date=1970-01-01T00:00:01", `{"end_date":"1970-01-01T00:00:01.000000"}`, "agent:run agent:run agent:run agent:run agent:message"},
		{"end_date=1970-01-01", `{"end_date":"1970-01-01 00:00:00"}`, ""},
		{"start_date=1970-01-01T02:00:00%2B02:00&source=agent&query=done", `{"start_date":"1970-01-01T02:00:00+02:00","source":"agent","query":"done"}`, "agent:message"},
		{"", `{}`, everyEvent}, {"", `null`, everyEvent}, {"", `{"query":null,"include_types":null,"source":null}`, everyEvent},
	} {
		if got := briefly(t, r.do("GET", to+"?"+c.query, "").want(t, 200)); got != c.want {
			t.Errorf("?%s: %s", c.query, got)
		}
		if got := briefly(t, r.do("GET", to, c.body, "Content-Type", "application/json").want(t, 200)); got != c.want {
			t.Errorf("%s: %s", c.body, got)
		}
	}
	if got := briefly(t, r.do("GET", to+"?source=user", `{"source":"agent"}`)); got != "user:message" {
		t.Errorf("the query does not go first: %s", got)
	}
	first := r.do("GET", to+"?include_types=message&limit=1", "").want(t, 200, `"has_more":true`, "Grüße")
	last := r.do("GET", to+"?include_types=message&limit=1&reverse=true", "").want(t, 200, `"has_more":true`, "Done.")
	if both := r.do("GET", to+"?include_types=message&limit=2", ""); strings.Contains(both.body, `"has_more":true`) || briefly(t, first) == briefly(t, last) {
		t.Errorf("pages are cut before the choice: %s", both.body)
	}
}

func TestEventFilterRefuses(t *testing.T) {
	r := newRig(t)
	to := "/api/conversations/" + r.filterable() + "/events"
	for _, name := range []string{"start_date", "end_date"} {
		for _, bad := range []string{"yesterday", "2026-13-01", "2026-03-01T25:00:00", "5"} {
			r.do("GET", to+"?"+name+"="+url.QueryEscape(bad), "").want(t, 422, `["query","`+name+`"]`)
			r.do("GET", to, `{"`+name+`":"`+bad+`"}`).want(t, 422, `["body","`+name+`"]`)
		}
	}
	r.do("GET", to+"?exclude_hidden=maybe", "").want(t, 422, `["query","exclude_hidden"]`)
	r.do("GET", to, `{"include_types":"run"}`).want(t, 422, `["body","include_types"]`)
	r.do("GET", to, `{"surprise":1}`).want(t, 422, `["body","surprise"]`)
	r.do("GET", to, `[]`).want(t, 422, `["body"]`)
	r.as("bob", "GET", to+"?source=user", "").want(t, 404)
}

// Statuses are told in their place only to clients that ask for them.
func TestEventsWithStatuses(t *testing.T) {
	r := newRig(t)
	id := r.filterable()
	r.append(id, session.Titled{Title: "Greetings"}, session.ModelAnswered{Text: "And more.", Final: true})
	to := "/api/conversations/" + id + "/events?reverse=true&limit=3"
	if got := briefly(t, r.do("GET", to, "").want(t, 200)); got != "agent:message agent:message agent:run" {
		t.Errorf("without: %s", got)
	}
	page := decoded[api.EventPage](t, r.do("GET", to+"&statuses=true", "").want(t, 200))
	if len(page.Events) != 3 || !page.HasMore {
		t.Fatalf("%s", page.Events)
	}
	var told struct {
		ID        int64
		Timestamp string
		Status    struct {
			Title string `json:"conversation_title"`
		}
	}
	if err := json.Unmarshal(page.Events[1], &told); err != nil || told.ID == 0 || told.Timestamp == "" || told.Status.Title != "Greetings" {
		t.Errorf("%s: %v", page.Events[1], err)
	}
}

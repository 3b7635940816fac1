package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/internal/session"
)

// waits is what the queue says, as the texts of its messages.
func (r *rig) waits(id string) string {
	r.t.Helper()
	var out []string
	for _, m := range decoded[api.MessageQueue](r.t, r.do("GET", toCreate+"/"+id+"/queue", "").want(r.t, 200)).Messages {
		out = append(out, m.Content)
	}
	return strings.Join(out, " ")
}

// A story is told step by step, and after each it is asked what waits.
func TestQueue(t *testing.T) {
	say := func(text string) session.UserSaid { return session.UserSaid{Text: text} }
	began, claim, ready := session.TurnBegan{}, session.Claimed{By: "loop"}, session.WorkspaceReady{}
	type step struct {
		happens []session.Payload
		waits   string
	}
	is := func(waits string, happens ...session.Payload) step { return step{happens, waits} }
	ask := func(upTo int64) session.ModelAsked {
		return session.ModelAsked{Call: fmt.Sprint("m", upTo), UpTo: upTo}
	}
	answer := func(upTo int64) session.ModelAnswered {
		return session.ModelAnswered{Call: fmt.Sprint("m", upTo), Final: true}
	}
	done := func(upTo int64) session.TurnEnded {
		return session.TurnEnded{UpTo: upTo, State: session.AgentAwaitingUser}
	}
	for _, c := range []struct {
		name, create string
		story        []step
	}{
		{"nothing was said", `{}`, []step{is("", claim, ready)}},
		{"until a turn begins", `{}`, []step{is("one", say("one")), is("one two", say("two")), is("one two", claim, ready), is("", began), is("", ask(6)), is("", answer(6), done(6))}},
		{"during a turn, until the next call", `{}`, []step{
			is("", say("one"), claim, ready, began, ask(5)), is("two", say("two")), is("two three", say("three")),
			is("two three", session.ModelAnswered{Call: "m5", ToolCalls: []session.ToolCall{{ID: "a", Name: "bash"}}}),
			is("", session.ToolCalled{ToolCall: session.ToolCall{ID: "a", Name: "bash"}, Answer: 9}, session.ToolReturned{ID: "a", Name: "bash", Cause: 10, Outcome: session.Succeeded}, ask(11)),
		}},
		{"too late for a turn", `{}`, []step{
			is("two", say("one"), claim, ready, began, ask(5), say("two")), is("two", answer(5), done(5)), is("", began),
		}},
		{"a stop makes history of it", `{}`, []step{
			is("two", say("one"), claim, ready, began, ask(5), say("two")), is("", session.ModelFailed{Call: "m5"}, session.Stopped{}), is("three", say("three"), session.StartRequested{}),
		}},
		{"a start that failed is tried again", `{}`, []step{
			is("one", say("one"), claim, session.Failed{ID: "E", Reason: "no"}), is("one", session.StartRequested{}), is("", claim, ready, began),
			is("one", session.Failed{ID: "E", Reason: "the sandbox died"}), // in the turn, which therefore did not take place
		}},
		{"during a replay, until its end", `{"initial_user_msg":"last","replay_json":"[{\"action\":\"message\",\"source\":\"user\",\"args\":{\"content\":\"first\"}}]"}`, []step{
			is("", claim, ready), is("mine", say("mine")), is("mine", session.UserSaid{Text: "first", Key: "replay:0"}, session.Replayed{Next: 1}, began),
			is("mine", ask(7)), is("mine", answer(7), done(7)), is("mine last", session.Replayed{Next: 1, Done: true}, say("last")), is("", began),
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.settle("ada")
			id := r.create(c.create)
			for i, s := range c.story {
				if len(s.happens) > 0 {
					r.happens(id, s.happens...)
				}
				if got := r.waits(id); got != s.waits {
					t.Errorf("after step %d %q waits, want %q", i, got, s.waits)
				}
			}
		})
	}
}

func TestQueueShape(t *testing.T) {
	const hush = "opensesame"
	r := newRig(t, pairs(), tune{config: func(c *Config) {
		c.Conversations.Mask = func(_ context.Context, owner string, b []byte) ([]byte, error) {
			if owner != "ada" {
				t.Errorf("masked for %s", owner)
			}
			return bytes.ReplaceAll(b, []byte(hush), []byte("***")), nil
		}
	}})
	r.settle("ada", "bob")
	id := r.create(`{}`)
	path := toCreate + "/" + id + "/queue"
	if a := r.do("GET", path, "").want(t, 200); a.body != `{"messages":[],"has_more":false}` {
		t.Error(a.body)
	}
	r.do("POST", toCreate+"/"+id+"/message", `{"message":"say opensesame"}`).want(t, 200)
	r.do("POST", toCreate+"/"+id+"/message", `{"message":"look","image_urls":["https://example.org/a.png"]}`).want(t, 200)
	want := `{"messages":[{"event_id":2,"content":"say ***","image_urls":[],"said_at":"2026-01-01T00:00:01Z"},` +
		`{"event_id":4,"content":"look","image_urls":["https://example.org/a.png"],"said_at":"2026-01-01T00:00:01Z"}],"has_more":false}`
	if a := r.do("GET", path, "").want(t, 200); a.body != want {
		t.Errorf("%s, want %s", a.body, want)
	}
	r.as("bob", "GET", path, "").want(t, 404)
	const most = 100 // in one answer
	for range most {
		r.happens(id, session.UserSaid{Text: "more"})
	}
	if q := decoded[api.MessageQueue](t, r.do("GET", path, "").want(t, 200)); len(q.Messages) != most || !q.HasMore || q.Messages[0].EventID != 2 {
		t.Errorf("%d messages, more %t", len(q.Messages), q.HasMore)
	}
}

// Queued messages are edited, moved and deleted until the agent reads them, in one step each.
func TestQueueChanges(t *testing.T) {
	r := newRig(t, pairs())
	r.settle("ada", "bob")
	id := r.create(`{}`)
	path := toCreate + "/" + id + "/queue/"
	for _, m := range []string{"one", "two", "three"} {
		r.do("POST", toCreate+"/"+id+"/message", `{"message":"`+m+`"}`).want(t, 200)
	}
	numbers := func() []string {
		var out []string
		for _, m := range decoded[api.MessageQueue](t, r.do("GET", toCreate+"/"+id+"/queue", "").want(t, 200)).Messages {
			out = append(out, strconv.FormatInt(m.EventID, 10))
		}
		return out
	}
	for _, c := range []struct {
		at           int
		method, body string
		want         string
	}{
		{1, "PATCH", `{"content":"zwei"}`, "one zwei three"},
		{2, "PATCH", `{"position":0}`, "three one zwei"},
		{0, "PATCH", `{"position":9}`, "one zwei three"},
		{0, "PATCH", `{}`, "one zwei three"},
		{1, "DELETE", ``, "one three"},
		{0, "PATCH", `{"send_now":true,"content":"uno"}`, "uno three"},
	} {
		at := numbers()[c.at]
		r.as("bob", c.method, path+at, c.body).want(t, 404)
		r.do(c.method, path+at, c.body).want(t, 200)
		if got := r.waits(id); got != c.want {
			t.Fatalf("after %s %s %q waits, want %q", c.method, c.body, got, c.want)
		}
	}
	r.do("PATCH", path+numbers()[0], `{"content":" "}`).want(t, 422)
	r.do("DELETE", path+"1", ``).want(t, 409)
	first := numbers()[0]
	r.happens(id, session.Claimed{By: "m"}, session.WorkspaceReady{}, session.TurnBegan{})
	if a := r.do("DELETE", path+first, ``); a.status != 409 || !strings.Contains(a.body, "read this message") {
		t.Errorf("a message that was read: %d %s", a.status, a.body)
	}
}

package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"deckhand/api"
	"deckhand/internal/access"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/session"
)

const toUnknown = `44{"message":"Conversation not found","data":{"msg_id":"CONVERSATION$NOT_FOUND"}}`

func TestSocketRefusals(t *testing.T) {
	r := newSocketRig(t)
	id := r.create(`{"initial_user_msg":"x"}`)
	gone := r.create(`{}`)
	r.do("DELETE", "/api/conversations/"+gone, "").want(t, 200)
	if _, err := r.sessions.Create(t.Context(), "unsettled", session.Created{Owner: "admin"}, nil); err != nil {
		t.Fatal(err)
	}
	before := r.events(id)
	noKey := `44{"message":"invalid_session_api_key","data":{"msg_id":"AUTH$UNAUTHORIZED"}}`
	noKey = strings.Replace(noKey, "AUTH$UNAUTHORIZED", api.CodeUnauthorized, 1)
	for name, c := range map[string]struct {
		join
		want string
	}{
		"no key":                    {join{query: q(id)}, noKey},
		"a wrong key":               {join{query: q(id, "session_api_key", wrongKey)}, noKey},
		"a wrong key, a good one":   {join{query: q(id, "session_api_key", wrongKey), auth: map[string]string{"token": r.keys["ada"]}}, noKey},
		"a wrong key in auth":       {join{query: q(id), auth: map[string]string{"session_api_key": wrongKey}}, noKey},
		"auth without a key":        {join{query: q(id), auth: map[string]any{"session_api_key": 7, "token": []int{1}}}, noKey},
		"a wrong key in the header": {join{query: q(id), header: []string{"X-Session-API-Key", wrongKey}}, noKey},
		"a forged cookie":           {join{query: q(id), header: []string{"Cookie", rest.CookieName + "=v1.x.y"}}, noKey},
		"no conversation":           {join{user: "ada", query: url.Values{}}, `44{"message":"No conversation_id in query params","data":{"msg_id":"` + api.CodeBadRequest + `"}}`},
		"an unknown conversation":   {join{user: "ada", query: q("nothing")}, toUnknown},
		"another user's":            {join{user: "bob", query: q(id)}, toUnknown},
		"a deleted one":             {join{user: "ada", query: q(gone)}, toUnknown},
		"a path":                    {join{user: "ada", query: q("../" + id)}, toUnknown},
		"a long id":                 {join{user: "ada", query: q(strings.Repeat("x", 5000))}, toUnknown},
		"bytes":                     {join{user: "ada", query: q(id + "\x00")}, toUnknown},
		"no settings":               {join{user: "admin", query: q("unsettled")}, `44{"message":"Settings not found","data":{"msg_id":"CONFIGURATION$SETTINGS_NOT_FOUND"}}`},
	} {
		for _, transport := range []string{"websocket", "polling"} {
			t.Run(name+" over "+transport, func(t *testing.T) {
				r := *r
				r.t = t
				c.transport = transport
				if _, answer := r.connect(c.join); answer != c.want {
					t.Errorf("%s, want %s", answer, c.want)
				}
			})
		}
	}
	if n := len(r.rows("ada")) + len(r.rows("bob")) + len(r.rows("admin")); n != 2 {
		t.Errorf("%d conversations, want the two that there were", n)
	}
	if after := r.events(id); len(after) != len(before) {
		t.Errorf("a refused client changed the conversation: %v", after)
	}
	for _, key := range r.keys {
		if strings.Contains(r.logs.String(), key) {
			t.Error("the log shows a key")
		}
	}
}

func TestSocketKeys(t *testing.T) {
	r := newSocketRig(t, tune{config: func(c *Config) { c.Access.Origins = []string{"https://tools.example.org"} }})
	id := r.create(`{}`)
	login := r.do("POST", "/api/login", `{"key":"`+r.keys["ada"]+`"}`, "X-Session-API-Key", "").want(t, 200)
	cookie, _, _ := strings.Cut(login.header.Get("Set-Cookie"), ";")
	for name, c := range map[string]struct {
		join
		in bool
	}{
		"query":                        {join{user: "ada", query: q(id)}, true},
		"auth":                         {join{query: q(id), auth: map[string]string{"session_api_key": r.keys["ada"]}}, true},
		"token":                        {join{query: q(id), auth: map[string]string{"token": r.keys["ada"]}}, true},
		"header":                       {join{query: q(id), header: []string{"X-Session-API-Key", r.keys["ada"]}}, true},
		"bearer":                       {join{query: q(id), header: []string{"Authorization", "Bearer " + r.keys["ada"]}}, true},
		"cookie":                       {join{query: q(id), header: []string{"Cookie", cookie}}, true},
		"cookie of our page":           {join{query: q(id, "session_api_key", "null"), header: []string{"Cookie", cookie, "Origin", r.base, "Sec-Fetch-Site", "same-origin"}}, true},
		"a key that is undefined":      {join{query: q(id, "session_api_key", "undefined"), header: []string{"Cookie", cookie}}, true},
		"cookie of an allowed page":    {join{query: q(id), header: []string{"Cookie", cookie, "Origin", "https://tools.example.org"}}, false},
		"key of an allowed page":       {join{user: "ada", query: q(id), header: []string{"Origin", "https://tools.example.org"}}, true},
		"cookie of another site":       {join{query: q(id), header: []string{"Cookie", cookie, "Sec-Fetch-Site", "cross-site"}}, false},
		"providers that are not known": {join{user: "ada", query: q(id, "providers_set", "github,nosuch,,")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := *r
			r.t = t
			if c, answer := r.connect(c.join); (c.pid != "") != (answer[:2] == "40") {
				t.Error(answer)
			}
			if _, answer := r.connect(c.join); strings.HasPrefix(answer, "40") != c.in {
				t.Error(answer)
			}
		})
	}
}

// Pages of others do not get as far as a handshake.
func TestSocketOrigins(t *testing.T) {
	r := newSocketRig(t)
	for _, path := range []string{"/socket.io/", "/socket.io"} {
		for _, transport := range []string{"polling", "websocket"} {
			at := path + "?EIO=4&transport=" + transport + "&session_api_key=" + r.keys["ada"]
			r.do("GET", at, "", "Origin", "http://evil.test").want(t, http.StatusForbidden)
			r.do("GET", at, "", "Host", "evil.test").want(t, http.StatusMisdirectedRequest)
		}
		r.do("GET", path+"?EIO=4&transport=polling&session_api_key="+r.keys["ada"], "").want(t, 200, `0{"sid":"`)
	}
}

func TestSocketTooManyWrongKeys(t *testing.T) {
	r := newSocketRig(t)
	ask := func(key string) answer {
		return r.direct("10.9.9.9", "GET", "/socket.io/?EIO=4&transport=polling&session_api_key="+key)
	}
	limited := 0
	for range 60 {
		switch a := ask(wrongKey); a.status {
		case http.StatusOK: // it is told when it asks for the namespace
		case http.StatusTooManyRequests:
			if limited++; a.header.Get("Retry-After") == "" {
				t.Errorf("%v", a.header)
			}
		default:
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	if limited < 20 {
		t.Errorf("only %d of 60 were slowed down", limited)
	}
	for range 60 {
		if a := ask(r.keys["ada"]); a.status != 200 {
			t.Fatalf("a good key from the same address: %d", a.status)
		}
	}
}

// Polling is many requests, and none of them counts: only what a client does.
func TestSocketRateLimit(t *testing.T) {
	r := newSocketRig(t, tune{gate: access.Options{RatePerSecond: 0.001, Burst: 5}})
	id := r.create(`{}`)
	c := r.joined(join{user: "ada", transport: "polling", query: q(id)})
	for i := range 8 {
		ack := c.ask("oh_user_action", message("x"))
		if want := `[{"success":true}]`; i < 3 && ack != want {
			t.Errorf("message %d: %s", i, ack)
		}
		if i >= 3 && !strings.HasPrefix(ack, `[{"error":true,"message":"Too many requests with this key.`) {
			t.Errorf("message %d: %s", i, ack)
		}
	}
}

// follows is the ids of what a client is heard, statuses left out.
func ids(events []heard) []int64 {
	var out []int64
	for _, e := range events {
		if e.ID >= 0 {
			out = append(out, e.ID)
		}
	}
	return out
}

// history makes a conversation whose events are known:
//
//	1 loading, 2 said, 3 claimed (nothing), 4 ready (status), 5 running, 6 asked (nothing), 7 answered
//	(nothing), 8 run, 9 awaiting, 10 confirmed, 11 said
func (r *rig) history() string {
	r.t.Helper()
	id := r.create(`{}`)
	r.say(id, "begin")
	r.awaits(id)
	r.update(id, func(s session.State) ([]session.Payload, error) {
		return s.Decide(session.ApprovalGiven{Approved: true})
	})
	if last := r.say(id, "and").Last; last != 12 {
		r.t.Fatalf("the history has %d events", last)
	}
	return id
}

func TestSocketReplay(t *testing.T) {
	r := newSocketRig(t)
	id := r.history()
	all := []int64{2, 9, 11, 12, 13}
	for after, want := range map[string][]int64{
		"-1": all, "": all, "0": all, "nonsense": all, "1.5": all, "-7": all,
		"2": all[1:], "7": all[1:], "8": all[1:], "9": all[2:], "10": all[2:], "11": all[3:], "12": all[4:],
		"99": all, "99999999999999999999": all, // another log's: everything
	} {
		for _, transport := range []string{"websocket", "polling"} {
			t.Run(after+" over "+transport, func(t *testing.T) {
				r := *r
				r.t = t
				id := r.history()
				c := r.joined(join{user: "ada", transport: transport, query: q(id, "latest_event_id", after)})
				r.say(id, "new")
				if got := ids(c.untilID(13)); !slices.Equal(got, want) {
					t.Errorf("%v, want %v", got, want)
				}
			})
		}
	}
	c := r.joined(join{user: "ada", query: q(id)})
	events := c.untilID(12)
	if e := events[2]; e.Observation != "run" && e.Action != "run" {
		t.Errorf("%s", e.whole)
	}
	var ready bool
	for _, e := range events {
		ready = ready || e.Status && strings.Contains(e.whole, "STATUS$READY")
		if e.Observation == "agent_state_changed" && (e.Source != "agent" || e.Extras.State != "user_confirmed") {
			t.Errorf("%s", e.whole)
		}
	}
	if !ready {
		t.Error("the replay has no status")
	}
	r.do("PATCH", "/api/conversations/"+id, `{"title":"New name"}`).want(t, 200)
	r.update(id, session.State.PauseNow)
	live := c.untilState(session.AgentPaused)
	if e := live[0]; e.Title != "New name" || e.Message != id {
		t.Errorf("%s", e.whole)
	}
	if e := live[len(live)-1]; e.Source != "agent" {
		t.Errorf("%s", e.whole)
	}
}

// Joining starts a stopped conversation and leaves others as they are.
func TestSocketJoinStarts(t *testing.T) {
	r := newSocketRig(t)
	id := r.create(`{}`)
	count := func() int { return len(r.events(id)) }
	before := count()
	r.joined(join{user: "ada", query: q(id)}).untilState(session.AgentLoading)
	if count() != before {
		t.Error("joining changed a conversation that was not stopped")
	}
	stopped := func() {
		r.update(id, func(s session.State) ([]session.Payload, error) { return s.Stop("for the test") })
	}
	stopped()
	c := r.joined(join{user: "ada", query: q(id)})
	if got := c.untilState(session.AgentLoading); len(got) != 2 || got[0].Extras.State != "stopped" {
		t.Errorf("%v", got)
	}
	r.do("GET", "/api/conversations/"+id, "").want(t, 200, `"status":"STARTING"`)
	stopped()
	r.do("POST", "/api/settings", `{"llm_model":"`+priced+`"}`).want(t, 200) // which needs a key, and there is none
	c = r.joined(join{user: "ada", query: q(id)})
	if e := c.event(); !e.Error || !strings.Contains(e.Message, "API key") {
		t.Errorf("%s", e.whole)
	}
	c.untilState(session.AgentStopped)
	r.do("GET", "/api/conversations/"+id, "").want(t, 200, `"status":"STOPPED"`)
}

func TestSocketConfirmAndReject(t *testing.T) {
	r := newSocketRig(t)
	for _, c := range []struct {
		name, event string
		want        session.AgentState
	}{{"confirm", "oh_user_action", session.AgentUserYes}, {"reject", "oh_action", session.AgentUserNo}} {
		t.Run(c.name, func(t *testing.T) {
			r := *r
			r.t = t
			id := r.create(`{"initial_user_msg":"x"}`)
			r.awaits(id)
			one, two := r.joined(join{user: "ada", query: q(id)}), r.joined(join{user: "ada", transport: "polling", query: q(id)})
			one.untilState(session.AgentAwaitingYes)
			two.untilState(session.AgentAwaitingYes)
			two.emit(c.event, wants(c.want))
			one.untilState(c.want)
			two.untilState(c.want)
			if ack := one.ask("oh_user_action", wants(c.want)); !strings.Contains(ack, `"error":true`) || !strings.Contains(ack, "no call is waiting for approval") {
				t.Errorf("a second answer: %s", ack)
			}
		})
	}
}

// A stop over the socket leaves the socket; one over HTTP or by a tool ends it.
func TestSocketStop(t *testing.T) {
	r := newSocketRig(t)
	id, other := r.create(`{"initial_user_msg":"x"}`), r.create(`{}`)
	claim := r.awaits(id)
	for _, transport := range []string{"websocket", "polling"} {
		c := r.joined(join{user: "ada", transport: transport, query: q(id)})
		aside := r.joined(join{user: "ada", query: q(other)})
		if got := decoded[api.Conversation](t, r.do("GET", "/api/conversations/"+other, "")); got.NumConnections < 1 {
			aside.untilState(session.AgentLoading) // it follows when it has read something
		}
		c.emit("oh_user_action", wants(session.AgentStopped))
		c.untilState(session.AgentStopped)
		c.emit("oh_user_action", message("continue"))
		c.untilState(session.AgentLoading)
		if s := r.update(id, func(s session.State) ([]session.Payload, error) { return s.Take("loop") }); s.Claim <= claim {
			t.Errorf("claim %d", s.Claim)
		}
		r.do("POST", "/api/conversations/"+id+"/stop", "").want(t, 200, `"conversation_status":"STOPPED"`)
		c.untilState(session.AgentStopped)
		c.left()
		if ack := aside.ask("oh_user_action", message("still there")); ack != `[{"success":true}]` {
			t.Errorf("another conversation's client: %s", ack)
		}

		// A client that stopped it by its button is disconnected all the same.
		c = r.joined(join{user: "ada", transport: transport, query: q(id)})
		c.untilState(session.AgentLoading)
		c.emit("oh_user_action", wants(session.AgentStopped))
		c.untilState(session.AgentStopped)
		r.do("POST", "/api/conversations/"+id+"/stop", "").want(t, 200, "was not running")
		c.left()
		r.say(id, "x")

		c = r.joined(join{user: "ada", transport: transport, query: q(id)})
		c.untilState(session.AgentLoading)
		if s := used[api.ConversationResponse](r, r.agentOf("ada"), "stop_conversation", object{"conversation_id": id}); *s.Message != "Conversation stopped successfully" {
			t.Errorf("%+v", s)
		}
		c.untilState(session.AgentStopped)
		c.left()
		r.say(id, "x")
	}
}

// left reads up to the packet that says the server ended it.
func (c *legacyClient) left() {
	c.r.t.Helper()
	for {
		switch p := c.packet(); {
		case p == "41":
			return
		case p == "":
			c.r.t.Fatal("the connection ended without a word")
		}
	}
}

func TestSocketEnds(t *testing.T) {
	r := newSocketRig(t)
	for _, transport := range []string{"websocket", "polling"} {
		for name, c := range map[string]struct {
			do   func(id, key string)
			want string
		}{
			"the key is revoked": {func(_, key string) {
				if _, err := r.gate.Revoke(t.Context(), key, true); err != nil {
					t.Error(err)
				}
			}, ""},
			"the conversation is deleted": {func(id, _ string) { r.do("DELETE", "/api/conversations/"+id, "").want(t, 200) }, "The conversation was deleted."},
		} {
			t.Run(name+" over "+transport, func(t *testing.T) {
				r := *r
				r.t = t
				id := r.create(`{}`)
				plain, key, err := r.gate.Create(t.Context(), "ada", "second", false, 0)
				if err != nil {
					t.Fatal(err)
				}
				client := r.joined(join{transport: transport, query: q(id, "session_api_key", plain)})
				client.untilState(session.AgentLoading)
				c.do(id, key.ID)
				if c.want == "" {
					client.revoked()
					return
				}
				if e := client.event(); !e.Error || e.Message != c.want {
					t.Errorf("%s", e.whole)
				}
				client.left()
			})
		}
	}
}

// unreadable is a log that cannot be read once.
type unreadable struct {
	session.Log
	once *atomic.Bool
}

func (u unreadable) Read(ctx context.Context, id session.ID, after int64) iter.Seq2[session.Event, error] {
	if u.once.CompareAndSwap(true, false) {
		return func(yield func(session.Event, error) bool) { yield(session.Event{}, io.ErrUnexpectedEOF) }
	}
	return u.Log.Read(ctx, id, after)
}

// A client of a log that cannot be read is cut off, and comes back by itself.
func TestSocketBrokenLog(t *testing.T) {
	var once atomic.Bool
	r := newSocketRig(t, tune{config: func(c *Config) { c.Conversations.Log = unreadable{c.Conversations.Log, &once} }})
	id := r.create(`{}`)
	once.Store(true)
	if p := r.joined(join{user: "ada", query: q(id)}).packet(); p != "" {
		t.Errorf("it is told %q", p)
	}
	r.joined(join{user: "ada", query: q(id)}).untilState(session.AgentLoading)
	if !strings.Contains(r.logs.String(), io.ErrUnexpectedEOF.Error()) {
		t.Error("the reason is missing")
	}
}

// A client is not told to stay away when the server stops, so it comes back by itself.
func TestSocketServerStops(t *testing.T) {
	r := newSocketRig(t)
	id := r.create(`{}`)
	clients := []*legacyClient{r.joined(join{user: "ada", query: q(id)}), r.joined(join{user: "ada", transport: "polling", query: q(id)})}
	for _, c := range clients {
		c.untilState(session.AgentLoading)
	}
	r.api.Close()
	for _, c := range clients {
		for p := c.packet(); p != ""; p = c.packet() {
			if p == "41" {
				t.Error("it is told to stay away")
			}
		}
	}
	if strings.Contains(r.logs.String(), "cannot be followed") {
		t.Error("that is no error")
	}
}

func TestSocketNumConnections(t *testing.T) {
	r := newSocketRig(t)
	id := r.create(`{}`)
	for n := 1; n <= 3; n++ {
		r.joined(join{user: "ada", query: q(id)}).untilState(session.AgentLoading)
		r.do("GET", "/api/conversations/"+id, "").want(t, 200, fmt.Sprintf(`"num_connections":%d`, n))
	}
}

// Front ends draw the buttons of a call when the call arrives, so they must know by then
// that it waits: live, and after a reload.
func TestSocketTellsThatACallWaitsBeforeTheCall(t *testing.T) {
	r := newSocketRig(t)
	id := r.create(`{"initial_user_msg":"go"}`)
	live := r.joined(join{user: "ada", query: q(id)})
	r.awaits(id)
	for name, c := range map[string]*legacyClient{"live": live, "reloaded": r.joined(join{user: "ada", query: q(id)})} {
		events := c.until(func(e heard) bool { return e.Action == "run" })
		last := ""
		for _, e := range events {
			if e.Extras.State != "" {
				last = e.Extras.State
			}
		}
		if last != string(session.AgentAwaitingYes) || !strings.Contains(events[len(events)-1].whole, `"confirmation_state":"awaiting_confirmation"`) {
			t.Errorf("%s: the state is %q when %s arrives", name, last, events[len(events)-1].whole)
		}
	}
}

// A command that the owner types is recorded as theirs, and its result comes back.
func TestSocketRunsCommandsOfTheOwner(t *testing.T) {
	r := newSocketRig(t)
	id := r.create(`{}`)
	claim := r.take(id)
	c := r.joined(join{user: "ada", query: q(id)})
	c.emit("oh_user_action", `{"action":"run","args":{"command":"ls","hidden":false}}`)
	said := c.until(func(e heard) bool { return e.Action == "run" })
	typed := said[len(said)-1]
	if typed.Source != "user" || !strings.Contains(typed.whole, `"command":"ls"`) {
		t.Error(typed.whole)
	}
	r.update(id, func(s session.State) ([]session.Payload, error) {
		return s.TypedEnded(claim, session.CommandEnded{Cause: typed.ID, Command: "ls", Outcome: session.Succeeded, Output: "a", Details: json.RawMessage(`{"exit_code":0}`)})
	})
	got := c.until(func(e heard) bool { return e.Observation == "run" })
	if e := got[len(got)-1]; e.Source != "user" || !strings.Contains(e.whole, `"cause":`+strconv.FormatInt(typed.ID, 10)) || !strings.Contains(e.whole, `"content":"a"`) {
		t.Error(e.whole)
	}
	for _, p := range r.events(id) {
		if _, asked := p.(session.ModelAsked); asked {
			t.Error("the model was asked")
		}
	}
}

package httpapi

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"deckhand/api"
	"deckhand/internal/session"
)

// keyed sends a user's key with every request.
type keyed struct {
	base http.RoundTripper
	key  string
}

func (k keyed) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+k.key)
	return k.base.RoundTrip(req)
}

// agentOf connects the official client as somebody.
func (r *rig) agentOf(user string) *sdk.ClientSession {
	r.t.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "elsewhere"}, nil)
	s, err := c.Connect(r.t.Context(), &sdk.StreamableClientTransport{Endpoint: r.base + "/mcp", HTTPClient: &http.Client{Transport: keyed{r.client.Transport, r.keys[user]}}}, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = s.Close() })
	return s
}

// use calls a tool and returns its text.
func (r *rig) use(s *sdk.ClientSession, name string, args any) (text string, failed bool) {
	r.t.Helper()
	res, err := s.CallTool(r.t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		r.t.Fatal(err)
	}
	return res.Content[0].(*sdk.TextContent).Text, res.IsError
}

func used[T any](r *rig, s *sdk.ClientSession, name string, args any) T {
	r.t.Helper()
	var v T
	text, failed := r.use(s, name, args)
	if err := json.Unmarshal([]byte(text), &v); err != nil || failed {
		r.t.Fatalf("%s: %s %v", name, text, err)
	}
	return v
}

type object = map[string]any

func TestOwnToolServer(t *testing.T) {
	r := newRig(t)
	r.settle("ada", "bob")
	ada, bob := r.agentOf("ada"), r.agentOf("bob")
	list, err := ada.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tl := range list.Tools {
		names = append(names, tl.Name)
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "create_bitbucket_pr create_conversation create_gitea_pr create_mr create_pr get_conversation list_conversations read_events send_message stop_conversation wait_for_turn" {
		t.Error(got)
	}
	made := used[api.ConversationResponse](r, ada, "create_conversation", object{"message": "fix it", "repository": "acme/site", "branch": "main", "instructions": "be kind", "request_id": "r1"})
	again := used[api.ConversationResponse](r, ada, "create_conversation", object{"message": "fix it", "repository": "acme/site", "branch": "main", "instructions": "be kind", "request_id": "r1"})
	id := made.ConversationID
	if again.ConversationID != id || len(r.rows("ada")) != 1 {
		t.Errorf("%+v and %+v", made, again)
	}
	created := r.events(id)[0].(session.Created)
	if created.Owner != "ada" || created.Repository != "acme/site" || created.Branch != "main" || created.Instructions != "be kind" || created.Trigger != "openhands_api" {
		t.Errorf("%+v", created)
	}
	for range 2 {
		used[api.Accepted](r, ada, "send_message", object{"conversation_id": id, "message": "and that", "request_id": "r2"})
	}
	if got := said(r.events(id)); len(got) != 2 || got[0].Text != "fix it" || got[1].Text != "and that" {
		t.Errorf("%+v", got)
	}
	page := used[api.EventPage](r, ada, "read_events", object{"conversation_id": id, "limit": 1})
	if len(page.Events) != 1 || !page.HasMore {
		t.Errorf("%+v", page)
	}
	var first, second api.LegacyEvent
	_ = json.Unmarshal(page.Events[0], &first)
	page = used[api.EventPage](r, ada, "read_events", object{"conversation_id": id, "after": first.ID})
	if _ = json.Unmarshal(page.Events[0], &second); second.ID <= first.ID {
		t.Errorf("%s", page.Events)
	}
	if c := used[api.Conversation](r, ada, "get_conversation", object{"conversation_id": id}); c.ConversationID != id || *c.SelectedRepository != "acme/site" {
		t.Errorf("%+v", c)
	}
	if l := used[api.ConversationPage](r, ada, "list_conversations", object{"limit": 5, "status": "STARTING"}); len(l.Results) != 1 {
		t.Errorf("%+v", l)
	}
	r.foreigner(bob, id)
	if s := used[api.ConversationResponse](r, ada, "stop_conversation", object{"conversation_id": id}); *s.ConversationStatus != "STOPPED" {
		t.Errorf("%+v", s)
	}
	if c := used[api.Conversation](r, ada, "wait_for_turn", object{"conversation_id": id}); c.Status != "STOPPED" {
		t.Errorf("%+v", c)
	}
}

// foreigner tries everything on somebody else's conversation.
func (r *rig) foreigner(s *sdk.ClientSession, id string) {
	r.t.Helper()
	before := len(r.events(id))
	for _, name := range []string{"send_message", "read_events", "get_conversation", "stop_conversation", "wait_for_turn"} {
		args := object{"conversation_id": id}
		if name == "send_message" {
			args["message"] = "hello"
		}
		if text, failed := r.use(s, name, args); !failed || text != "Conversation not found" {
			r.t.Errorf("%s: %s", name, text)
		}
	}
	if l := used[api.ConversationPage](r, s, "list_conversations", nil); len(l.Results) != 0 {
		r.t.Errorf("%+v", l)
	}
	if n := len(r.events(id)); n != before {
		r.t.Errorf("%d events after %d", n, before)
	}
}

// What the routes refuse is refused here, with words.
func TestOwnToolServerRefuses(t *testing.T) {
	r := newRig(t)
	s := r.agentOf("ada")
	if text, failed := r.use(s, "create_conversation", object{"message": "x"}); !failed || text != "Settings not found" {
		t.Error(text)
	}
	r.settle("ada")
	id := r.create(`{}`)
	for _, c := range []struct {
		tool  string
		args  object
		words string
	}{
		{"create_conversation", object{"message": "x", "repository": "../etc"}, "owner/name"},
		{"create_conversation", object{}, "message"},
		{"get_conversation", object{"conversation_id": "../../x"}, "conversation_id"},
		{"get_conversation", object{"conversation_id": ""}, "conversation_id"},
		{"read_events", object{"conversation_id": id, "limit": 1000}, "limit"},
		{"list_conversations", object{"page_id": "junk"}, "page_id"},
		{"list_conversations", object{"status": "GONE"}, "status"},
		{"wait_for_turn", object{"conversation_id": id, "timeout_s": 4000}, "timeout_s"},
		{"send_message", object{"conversation_id": id, "message": "x", "request_id": "a\nb"}, "Idempotency-Key"},
	} {
		if text, failed := r.use(s, c.tool, c.args); !failed || !strings.Contains(text, c.words) {
			t.Errorf("%s %v: %s", c.tool, c.args, text)
		}
	}
	if n := len(r.rows("ada")); n != 1 {
		t.Errorf("%d conversations", n)
	}
}

// wait_for_turn ends when there is nothing more to wait for.
func TestOwnToolServerWaits(t *testing.T) {
	r := newRig(t)
	r.settle("ada")
	s := r.agentOf("ada")
	id := r.create(`{"initial_user_msg":"work"}`)
	if c := used[api.Conversation](r, s, "wait_for_turn", object{"conversation_id": id, "timeout_s": 1}); c.Status == "STOPPED" { // nobody works here, so it takes the whole second
		t.Errorf("%+v", c)
	}
	done := make(chan api.Conversation)
	go func() {
		done <- used[api.Conversation](r, s, "wait_for_turn", object{"conversation_id": id, "timeout_s": 300})
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for r.api.Conversations.Hub.Following(session.ID(id)) == 0 { // until it listens
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("nobody waits")
		}
	}
	r.do("POST", "/api/conversations/"+id+"/stop", "").want(t, 200)
	if c := <-done; c.Status != "STOPPED" {
		t.Errorf("%+v", c)
	}
}

// The tool server is behind the same checks as every other route.
func TestOwnToolServerIsGuarded(t *testing.T) {
	r := newRig(t)
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	r.do("POST", "/mcp", ping).want(t, 200, `"result":{}`)
	r.do("POST", "/mcp", ping, "X-Session-API-Key", "").want(t, 401)
	r.do("POST", "/mcp", ping, "X-Session-API-Key", wrongKey).want(t, 401)
	r.do("POST", "/mcp", ping, "Host", "evil.test").want(t, http.StatusMisdirectedRequest)
	r.do("POST", "/mcp", ping, "Origin", "http://evil.test").want(t, 403)
	r.do("GET", "/mcp", "").want(t, 405)
	r.do("DELETE", "/mcp", "").want(t, 405)
	r.do("POST", "/mcp", `{`).want(t, 400)
	r.do("POST", "/mcp", ``).want(t, 400)
	r.do("POST", "/mcp", `[]`).want(t, 400)
	r.do("POST", "/mcp", "\xff").want(t, 400, "\ufffd") // what cannot be said in an answer is not said
	r.do("POST", "/mcp", ping, "Content-Type", "text/plain").want(t, 415)
	r.do("POST", "/mcp", ping, "Mcp-Protocol-Version", "1999-01-01").want(t, 400)
	// There are no sessions, so none can be taken over.
	a := r.do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`).want(t, 200, `"deckhand"`)
	if a.header.Get("Mcp-Session-Id") != "" {
		t.Errorf("%v", a.header)
	}
	r.do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen").want(t, 404, "method not found")
	// Somebody else's page cannot use a browser's login.
	login := r.do("POST", "/api/login", `{"key":"`+r.keys["ada"]+`"}`, "X-Session-API-Key", "").want(t, 200)
	cookie, _, _ := strings.Cut(login.header.Get("Set-Cookie"), ";")
	r.do("POST", "/mcp", ping, "X-Session-API-Key", "", "Cookie", cookie, "Sec-Fetch-Site", "cross-site").want(t, 401)
}

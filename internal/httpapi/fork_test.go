package httpapi

import (
	"strings"
	"testing"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/sandbox"
	"deckhand/internal/session"
)

// fork makes a copy of a conversation of ada's.
func (r *rig) fork(id, body string, header ...string) string {
	r.t.Helper()
	a := r.do("POST", "/api/conversations/"+id+"/fork", body, header...).want(r.t, 200, `"conversation_status":"STOPPED"`)
	return decoded[api.ConversationResponse](r.t, a).ConversationID
}

func (r *rig) beginning(id string) session.Created {
	r.t.Helper()
	c, _ := r.events(id)[0].(session.Created)
	return c
}

// The copy is a conversation of its own, with the history up to the event and what
// was chosen for the original.
func TestFork(t *testing.T) {
	r := newRig(t)
	r.settle("ada", "bob")
	id := r.create(`{"initial_user_msg":"first","conversation_instructions":"Be brief."}`)
	for _, text := range []string{"second", "third"} {
		r.do("POST", "/api/conversations/"+id+"/message", `{"message":"`+text+`"}`).want(t, 200)
	}
	r.do("PUT", "/api/conversations/"+id+"/overrides", `{"llm_model":"acme/priced"}`).want(t, 200)
	whole, part := r.fork(id, `{}`), r.fork(id, `{"event_id":4,"title":" Another way "}`)
	if a, b := said(r.events(whole)), said(r.events(part)); len(a) != 3 || len(b) != 2 || b[1].Text != "second" {
		t.Errorf("%+v and %+v", a, b)
	}
	c := r.beginning(part)
	if c.Forked == nil || c.Forked.From != session.ID(id) || c.Forked.Number != 4 || c.Instructions != "Be brief." {
		t.Errorf("%+v", c)
	}
	r.do("GET", "/api/conversations/"+part, "").want(t, 200, `"title":"Another way"`)
	r.do("GET", "/api/conversations/"+whole, "").want(t, 200, `(copy)"`)
	r.do("GET", "/api/conversations/"+part+"/overrides", "").want(t, 200, `"llm_model":"acme/priced"`)
	if l := asked[api.ConversationPage](r, "/api/conversations"); len(l.Results) != 3 || l.Results[2].ConversationID != id {
		t.Errorf("%+v", l)
	}
	r.do("POST", "/api/conversations/"+part+"/message", `{"message":"go on"}`).want(t, 200)
	if n := len(said(r.events(id))); n != 3 {
		t.Errorf("the original has %d messages", n)
	}
	r.do("POST", "/api/conversations/"+id+"/fork", `{"event_id":99}`).want(t, 422, "event_id")
	r.do("POST", "/api/conversations/"+id+"/fork", `{"event_id":0}`).want(t, 422, "event_id")
	r.do("POST", "/api/conversations/"+id+"/fork", `{"title":" "}`).want(t, 422, "title")
	r.as("bob", "POST", "/api/conversations/"+id+"/fork", `{}`).want(t, 404)
}

// A request that is repeated makes one copy, also if its answer was lost.
func TestForkOnce(t *testing.T) {
	r := newRig(t)
	r.settle("ada")
	id := r.create(`{"initial_user_msg":"first"}`)
	r.answers.failing = 1
	r.do("POST", "/api/conversations/"+id+"/fork", `{}`, "Idempotency-Key", "once").want(t, 500)
	a, b := r.fork(id, `{}`, "Idempotency-Key", "once"), r.fork(id, `{}`, "Idempotency-Key", "once")
	if a != b || len(r.rows("ada")) != 2 {
		t.Errorf("%s and %s, of %d", a, b, len(r.rows("ada")))
	}
	r.do("POST", "/api/conversations/"+id+"/fork", `{"event_id":1}`, "Idempotency-Key", "once").want(t, 422)
}

// The tool servers that a conversation was made with may hold keys: they are sealed
// for it alone, so the copy has them sealed anew.
func TestForkSealsToolServersAnew(t *testing.T) {
	r := newRig(t)
	r.settle("ada")
	id := r.create(`{"mcp_config":{"sse_servers":[{"url":"https://tools.example.org/sse","api_key":"k-secret"}],"stdio_servers":[],"shttp_servers":[]}}`)
	copied := r.fork(id, `{}`)
	if string(r.beginning(copied).MCP) == string(r.beginning(id).MCP) {
		t.Fatal("the copy has what was sealed for the original")
	}
	for _, one := range []string{id, copied} {
		plain, err := r.api.Retries.Seal.Open(t.Context(), "ada", usecase.SealedMCP(session.ID(one)), r.beginning(one).MCP)
		if err != nil || !strings.Contains(string(plain), "k-secret") {
			t.Errorf("%s: %v", one, err)
		}
	}
}

// Without a sandbox every workspace has a name of its own, which its history is full
// of: a copy would work in the original's.
func TestForkWithoutSandbox(t *testing.T) {
	h := newSandboxRig(t)
	id := h.create(`{}`)
	copied := h.fork(id, `{}`) // nothing to copy yet
	if _, err := h.client.Upload(t.Context(), id, "", up("a.txt", "a")); err != nil {
		t.Fatal(err)
	}
	h.do("POST", "/api/conversations/"+id+"/fork", `{}`).want(t, 409, "without a sandbox")
	if n := len(h.rows("ada")); n != 2 {
		t.Errorf("%d conversations", n)
	}
	if _, err := h.driver.View(t.Context(), sandbox.Handle{ID: copied}); err == nil {
		t.Error("the copy has a workspace")
	}
}

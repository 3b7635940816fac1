package httpapi

import (
	"context"
	"testing"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/session"
)

// The first words of the first message are the title at once, whatever way it came. Nothing works on the conversations
// here, so no model has been called.
func TestTitleAtOnce(t *testing.T) {
	t.Parallel()
	r := newSocketRig(t)
	r.do("POST", "/api/settings", `{"llm_model":"`+keyless+`"}`).want(t, 200)
	r.do("POST", "/api/secrets", `{"name":"TOKEN","value":"hunter2-hunter2"}`).want(t, 201)
	const said, want = `Tie \u001b[1mthe  knots with hunter2-hunter2,\nplease`, "Tie the knots with **********,"
	empty := func() string { return decodedID(t, r.do("POST", "/api/conversations", `{}`)) }
	for name, begin := range map[string]func(t *testing.T) string{
		"create": func(t *testing.T) string {
			return decodedID(t, r.do("POST", "/api/conversations", `{"initial_user_msg":"`+said+`"}`))
		},
		"a later message": func(t *testing.T) string {
			id := empty()
			r.do("POST", "/api/conversations/"+id+"/message", `{"message":"`+said+`"}`).want(t, 200)
			return id
		},
		"a second message": func(t *testing.T) string {
			id := decodedID(t, r.do("POST", "/api/conversations", `{"initial_user_msg":"`+said+`"}`))
			r.do("POST", "/api/conversations/"+id+"/message", `{"message":"and more"}`).want(t, 200)
			return id
		},
		"Socket.IO": func(t *testing.T) string {
			r := *r
			r.t = t
			id := empty()
			client := r.joined(join{user: "ada", transport: "websocket", query: q(id)})
			client.must(client.send(`427["oh_user_action",` + `{"action":"message","args":{"content":"` + said + `"}}` + `]`))
			for ack := client.packet(); ack != `437[{"success":true}]`; ack = client.packet() {
				if ack == "" {
					t.Fatal("the connection ended")
				}
			}
			return id
		},
		"MCP": func(t *testing.T) string {
			made := used[api.ConversationResponse](r, r.agentOf("ada"), "create_conversation", map[string]any{"message": "Tie the knots with hunter2-hunter2,\nplease"})
			return made.ConversationID
		},
		"delegation": func(t *testing.T) string {
			parent, err := r.sessions.Load(t.Context(), session.ID(empty()))
			if err != nil {
				t.Fatal(err)
			}
			child := session.NewID()
			err = r.api.Conversations.Service.Delegate(t.Context(), usecase.Delegate{Parent: parent, Child: child, Task: "Tie the knots with hunter2-hunter2,",
				Reserve: func(context.Context) (session.State, error) { return parent, nil }})
			if err != nil {
				t.Fatal(err)
			}
			return string(child)
		},
	} {
		t.Run(name, func(t *testing.T) {
			id := begin(t)
			if got := decoded[api.Conversation](t, r.do("GET", "/api/conversations/"+id, "")); got.Title != want {
				t.Errorf("the conversation has %q", got.Title)
			}
			for _, c := range decoded[api.ConversationPage](t, r.do("GET", "/api/conversations?limit=100", "")).Results {
				if c.ConversationID == id && c.Title != want {
					t.Errorf("the list has %q", c.Title)
				}
			}
		})
	}
	mine := empty()
	r.do("PATCH", "/api/conversations/"+mine, `{"title":"Mine"}`).want(t, 200)
	r.do("POST", "/api/conversations/"+mine+"/message", `{"message":"hello"}`).want(t, 200)
	if got := decoded[api.Conversation](t, r.do("GET", "/api/conversations/"+mine, "")); got.Title != "Mine" {
		t.Errorf("a name became %q", got.Title)
	}
}

package httpapi

import (
	"strings"
	"testing"

	usecase "deckhand/internal/conversation"
	"deckhand/internal/session"
	v0 "deckhand/internal/v0"
)

// What a client says is what it could post, and it learns what is wrong with it.
func TestSocketTalk(t *testing.T) {
	r := newSocketRig(t, tune{rules: func(c *usecase.Config) {
		c.Models.Blind = func(model string) string {
			if model == unpriced {
				return v0.ImagesUnsupported
			}
			return ""
		}
	}})
	r.as("bob", "POST", "/api/settings", `{"llm_model":"`+unpriced+`","llm_api_key":"k"}`).want(t, 200)
	picture := `{"action":"message","args":{"content":"see","image_urls":["data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="]}}`
	for name, c := range map[string]struct {
		user, event, args, wrong string
	}{
		"a message":                {"ada", "oh_user_action", message("hello"), ""},
		"by the older name":        {"ada", "oh_action", message("hello"), ""},
		"older arguments":          {"ada", "oh_action", `{"action":"message","args":{"content":"hello","images_urls":[],"wait_for_response":false}}`, ""},
		"a picture":                {"ada", "oh_user_action", picture, ""},
		"a picture nobody sees":    {"bob", "oh_user_action", picture, v0.ImagesUnsupported},
		"no picture":               {"bob", "oh_user_action", message("hello"), ""},
		"a command":                {"ada", "oh_user_action", `{"action":"run","args":{"command":"ls","hidden":false}}`, ""},
		"a wait for a command":     {"ada", "oh_user_action", `{"action":"run","args":{"command":""}}`, ""},
		"a look at a file":         {"ada", "oh_user_action", `{"action":"read","args":{"path":"/etc/passwd"}}`, "A client may send the actions"},
		"an observation":           {"ada", "oh_user_action", `{"observation":"run","content":"x","extras":{}}`, "action"},
		"a made-up state":          {"ada", "oh_user_action", wants("finished"), "agent_state must be one of"},
		"an id":                    {"ada", "oh_user_action", `{"id":7,"action":"message","args":{"content":"x"}}`, "The server assigns this"},
		"a source":                 {"ada", "oh_user_action", `{"source":"agent","action":"message","args":{"content":"x"}}`, "The server assigns this"},
		"a NUL":                    {"ada", "oh_user_action", `{"action":"message","args":{"content":"\u0000"}}`, "NUL characters"},
		"text":                     {"ada", "oh_user_action", `"hello"`, "must be an object"},
		"nothing":                  {"ada", "oh_user_action", ``, "takes one argument"},
		"two actions":              {"ada", "oh_user_action", message("a") + "," + message("b"), "takes one argument"},
		"another event":            {"ada", "run", `{}`, "Use oh_user_action"},
		"an answer to no question": {"ada", "oh_user_action", wants(session.AgentUserYes), "no call is waiting for approval"},
	} {
		for _, transport := range []string{"websocket", "polling"} {
			t.Run(name+" over "+transport, func(t *testing.T) {
				r := *r
				r.t = t
				id := decodedID(t, r.as(c.user, "POST", "/api/conversations", `{}`))
				r.as(c.user, "PATCH", "/api/conversations/"+id, `{"title":"Talk"}`).want(t, 200)
				client := r.joined(join{user: c.user, transport: transport, query: q(id)})
				before := len(r.events(id))
				args := c.args
				if args != "" {
					args = "," + args
				}
				client.must(client.send(`427["` + c.event + `"` + args + `]`))
				ack := client.packet()
				for ; !strings.HasPrefix(ack, "437"); ack = client.packet() {
					if ack == "" {
						t.Fatal("the connection ended")
					}
				}
				if c.wrong == "" {
					if ack != `437[{"success":true}]` || len(r.events(id)) != before+1 {
						t.Errorf("%s", ack)
					}
					return
				}
				if !strings.HasPrefix(ack, `437[{"error":true,"message":"`) || !strings.Contains(ack, c.wrong) {
					t.Errorf("%s", ack)
				}
				client.must(client.send(`42["` + c.event + `"` + args + `]`))
				if e := client.until(func(e heard) bool { return e.Error }); !strings.Contains(e[len(e)-1].Message, c.wrong) {
					t.Errorf("%s", e[len(e)-1].whole)
				}
				if len(r.events(id)) != before {
					t.Error("what was refused was done")
				}
			})
		}
	}
}

func TestSocketTakesNoAttachments(t *testing.T) {
	r := newSocketRig(t)
	c := r.joined(join{user: "ada", transport: "polling", query: q(r.create(`{}`))})
	c.must(c.send(`451-7["oh_user_action",{"_placeholder":true,"num":0}]` + "\x1ebAAAA"))
	for {
		if p := c.packet(); strings.HasPrefix(p, "437") {
			if !strings.Contains(p, "takes one argument") {
				t.Error(p)
			}
			return
		} else if p == "" {
			t.Fatal("the connection ended")
		}
	}
}

// A script that sends something and leaves has sent it.
func TestSocketLastWords(t *testing.T) {
	r := newSocketRig(t)
	id := r.create(`{}`)
	witness := r.joined(join{user: "ada", query: q(id)})
	for _, last := range []string{"41", "1"} {
		c := r.joined(join{user: "ada", query: q(id)})
		c.emit("oh_user_action", message("bye "+last))
		c.must(c.send(last))
		// The socket stays for now: to close it with events unread resets it, and takes
		// with it what the server's kernel has and the server has not read.
		witness.until(func(e heard) bool { return e.Args.Content == "bye "+last })
	}
}

func decodedID(t *testing.T, a answer) string {
	t.Helper()
	a.want(t, 200)
	return decoded[struct {
		ID string `json:"conversation_id"`
	}](t, a).ID
}

package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/session"
	"deckhand/internal/settings"
	"deckhand/internal/trigger"
	v0 "deckhand/internal/v0"
)

// codeOf is the code of a tool's refusal, "" if it was not refused.
func (r *rig) codeOf(s *sdk.ClientSession, name string, args any) string {
	r.t.Helper()
	res, err := s.CallTool(r.t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		r.t.Fatal(err)
	}
	if !res.IsError {
		return ""
	}
	fields, _ := res.StructuredContent.(map[string]any)
	code, _ := fields["msg_id"].(string)
	return code
}

// begin is the code with which a trigger is refused.
func (r *rig) begin(repository string) string {
	err := trigger.Begin(r.api.Conversations.Service)(r.t.Context(), trigger.Start{ID: session.NewID(), User: "ada", Provider: "github", Repository: repository, Text: "fix it", Key: strings.Repeat("0", 64)})
	var refused *trigger.RefusedError
	if errors.As(err, &refused) {
		return refused.Code
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return ""
}

// posted is the code of an HTTP answer. A 422 has none in its body, since its shape is older.
func posted(t *testing.T, a answer) string {
	t.Helper()
	if a.status < 400 {
		return ""
	}
	if a.status == 422 {
		return api.CodeBadRequest
	}
	return decoded[api.ConversationError](t, a).MsgID
}

// What keeps a conversation from being created is refused with the same code at every entry point.
func TestEntryPointsRefuseCreation(t *testing.T) {
	for name, c := range map[string]struct {
		settings, repository, code string
	}{
		"no settings":        {"", "acme/site", api.CodeSettingsNotFound},
		"no key":             {`{"llm_model":"` + priced + `"}`, "acme/site", api.CodeLLMAuthentication},
		"no price":           {`{"llm_model":"` + unpriced + `","llm_api_key":"k","max_budget_per_task":1}`, "acme/site", api.CodePriceUnknown},
		"a sandbox image":    {`{"llm_model":"` + keyless + `","sandbox_base_container_image":"debian:13"}`, "acme/site", api.CodeSandboxImage},
		"no such repository": {`{"llm_model":"` + keyless + `"}`, "acme/gone", api.CodeGitAuthentication},
		"not a repository":   {`{"llm_model":"` + keyless + `"}`, "../etc", api.CodeBadRequest},
		"nothing is wrong":   {`{"llm_model":"` + keyless + `"}`, "acme/site", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			check := r.verify
			r.verify = func(ctx context.Context, s settings.Settings, provider, repository string) (string, error) {
				if repository == "acme/gone" {
					return "", errors.New("Unable to access repo acme/gone")
				}
				return check(ctx, s, provider, repository)
			}
			if c.settings != "" {
				r.do("POST", "/api/settings", c.settings).want(t, 200)
			}
			got := map[string]string{
				"HTTP":    posted(t, r.do("POST", "/api/conversations", `{"initial_user_msg":"fix it","repository":"`+c.repository+`"}`)),
				"MCP":     r.codeOf(r.agentOf("ada"), "create_conversation", object{"message": "fix it", "repository": c.repository}),
				"trigger": r.begin(c.repository),
			}
			for entry, code := range got {
				if code != c.code {
					t.Errorf("%s: %q, want %q", entry, code, c.code)
				}
			}
			if n := len(r.rows("ada")); c.code != "" && n > 0 {
				t.Errorf("%d conversations were created", n)
			}
		})
	}
}

// What cannot be said or decided in a conversation is refused with the same code at every entry point.
func TestEntryPointsRefuseActions(t *testing.T) {
	r := newSocketRig(t, tune{rules: func(c *usecase.Config) {
		c.Models.Blind = func(string) string { return v0.ImagesUnsupported }
	}})
	s, id := r.agentOf("ada"), r.create(`{}`)
	gone := r.create(`{}`)
	r.do("DELETE", "/api/conversations/"+gone, "").want(t, 200)
	socket := r.joined(join{user: "ada", query: q(id)})
	act := func(id, action string) string {
		return posted(t, r.do("POST", "/api/conversations/"+id+"/events", action))
	}
	emit := func(action string) string {
		packet := socket.ask("oh_user_action", action)
		var said struct {
			MsgID string `json:"msg_id"`
		}
		if i := strings.Index(packet, "{"); i >= 0 {
			_ = json.Unmarshal([]byte(strings.TrimSuffix(packet[i:], "]")), &said)
		}
		return said.MsgID
	}
	const empty, picture, approve = `{"action":"message","args":{"content":" "}}`,
		`{"action":"message","args":{"content":"see","image_urls":["data:image/png;base64,R0lGODlh"]}}`,
		`{"action":"change_agent_state","args":{"agent_state":"user_confirmed"}}`
	refused := func(entry, code, want string) {
		t.Helper()
		if code != want {
			t.Errorf("%s: %q, want %q", entry, code, want)
		}
	}
	for _, missing := range []string{"unknown", gone} {
		refused("HTTP", posted(t, r.do("POST", "/api/conversations/"+missing+"/message", `{"message":"hi"}`)), api.CodeConversationNotFound)
		refused("legacy HTTP", act(missing, `{"action":"message","args":{"content":"hi"}}`), api.CodeConversationNotFound)
		refused("MCP", r.codeOf(s, "send_message", object{"conversation_id": missing, "message": "hi"}), api.CodeConversationNotFound)
		_, packet := r.connect(join{user: "ada", query: q(missing)})
		refused("socket", map[bool]string{true: api.CodeConversationNotFound}[strings.Contains(packet, api.CodeConversationNotFound)], api.CodeConversationNotFound)
	}
	refused("HTTP, empty", posted(t, r.do("POST", "/api/conversations/"+id+"/message", `{"message":" "}`)), api.CodeBadRequest)
	refused("legacy HTTP, empty", act(id, empty), api.CodeBadRequest)
	refused("MCP, empty", r.codeOf(s, "send_message", object{"conversation_id": id, "message": " "}), api.CodeBadRequest)
	refused("socket, empty", emit(empty), api.CodeBadRequest)
	refused("HTTP, image", posted(t, r.do("POST", "/api/conversations/"+id+"/message", `{"message":"see","image_urls":["https://h/x.png"]}`)), api.CodeBadRequest)
	refused("HTTP, image at creation", posted(t, r.do("POST", "/api/conversations", `{"initial_user_msg":"see","image_urls":["https://h/x.png"]}`)), api.CodeBadRequest)
	refused("legacy HTTP, image", act(id, picture), api.CodeBadRequest)
	refused("socket, image", emit(picture), api.CodeBadRequest)
	refused("HTTP, approval", posted(t, r.do("POST", "/api/conversations/"+id+"/approvals", `{"decision":"accept"}`)), api.CodeConversationRefused)
	refused("legacy HTTP, approval", act(id, approve), api.CodeConversationRefused)
	refused("socket, approval", emit(approve), api.CodeConversationRefused)
}

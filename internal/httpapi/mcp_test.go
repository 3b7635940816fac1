package httpapi

import (
	"context"
	"errors"
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

// as is a client of somebody's.
func (r *rig) clientOf(user string) *client.Client {
	c := client.New(r.base, r.keys[user])
	c.HTTP = r.client
	return c
}

func TestToolServerStates(t *testing.T) {
	asked := ""
	r := newRig(t, tune{config: func(c *Config) {
		c.Conversations.MCPStates = func(_ context.Context, owner string, id session.ID) ([]api.MCPServerStatus, error) {
			asked = string(id)
			if owner != "ada" {
				t.Errorf("asked for %s", owner)
			}
			return []api.MCPServerStatus{{Name: "srv", Kind: "sse", State: "ready", OK: true, Tools: []string{"echo"}}}, nil
		}
	}})
	r.settle("ada", "bob")
	id := r.create(`{}`)
	got, err := r.clientOf("ada").ToolServers(t.Context(), id)
	if err != nil || len(got) != 1 || got[0].Name != "srv" || asked != id {
		t.Errorf("%+v %v %s", got, err, asked)
	}
	asked = ""
	if _, err := r.clientOf("bob").ToolServers(t.Context(), id); !client.IsNotFound(err) || asked != "" {
		t.Errorf("%v %q", err, asked)
	}
	plain := newRig(t)
	plain.settle("ada")
	plain.do("GET", "/api/conversations/"+plain.create(`{}`)+"/mcp", "").want(t, 200, `{"servers":[]}`)
}

func TestTryToolServers(t *testing.T) {
	var tried []settings.MCP
	var answer error
	r := newRig(t, tune{config: func(c *Config) {
		c.Account.TestMCP = func(_ context.Context, user string, m settings.MCP) ([]api.MCPServerStatus, error) {
			tried = append(tried, m)
			return []api.MCPServerStatus{{Name: user, Kind: "shttp", State: "failed", Error: new("It did not answer.")}}, answer
		}
	}})
	const path = "/api/settings/test-mcp"
	r.do("POST", path, "").want(t, 400, api.CodeSettingsNotFound)
	// What is given can be tried before anything is stored.
	got, err := r.clientOf("ada").TestToolServers(t.Context(), &api.MCPConfig{SHTTPServers: []api.MCPServer{{URL: "https://a.example/mcp", APIKey: new(canary)}}})
	if err != nil || len(got) != 1 || got[0].Name != "ada" || got[0].OK || *got[0].Error != "It did not answer." {
		t.Errorf("%+v %v", got, err)
	}
	if m := tried[0]; len(m.SHTTP) != 1 || m.SHTTP[0].APIKey.Reveal() != canary {
		t.Errorf("%+v", m)
	}
	r.do("POST", "/api/settings", `{"mcp_config":{"sse_servers":[{"url":"https://b.example/sse","api_key":"stored-key"}],"stdio_servers":[{"name":"fs","command":"npx"}]}}`).want(t, 200)
	r.do("POST", path, "").want(t, 200, `"servers":[{"name":"ada"`)
	r.do("POST", path, `{"sse_servers":[{"url":"https://b.example/sse","api_key":"**********"}]}`).want(t, 200)
	if len(tried) != 3 || tried[1].SSE[0].APIKey.Reveal() != "stored-key" || len(tried[1].Stdio) != 1 || tried[2].SSE[0].APIKey.Reveal() != "stored-key" {
		t.Errorf("%+v", tried)
	}
	// A stored key goes to no other address, and nobody else's is found.
	r.do("POST", path, `{"sse_servers":[{"url":"https://evil.example/sse","api_key":"**********"}]}`).want(t, 422, "sse_servers")
	r.as("bob", "POST", path, `{"sse_servers":[{"url":"https://b.example/sse","api_key":"**********"}]}`).want(t, 422)
	r.do("POST", path, `{"sse_servers":[{"url":"ftp://x"}]}`).want(t, 422, `"url"`)
	r.do("POST", path, `{"servers":[]}`).want(t, 422)
	r.do("POST", path, `{}`).want(t, 200) // none
	if len(tried) != 4 || len(tried[3].SSE) != 0 {
		t.Errorf("%+v", tried)
	}
	answer = errors.New("broken: " + canary)
	r.do("POST", path, "").want(t, 500)
	if strings.Contains(r.logs.String(), canary) {
		t.Error("the log has the key")
	}
	newRig(t).do("POST", path, `{}`).want(t, 503, api.CodeUnavailable)
}

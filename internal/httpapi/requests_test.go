package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/internal/session"
	"deckhand/internal/tool"
)

// record makes a pull request a part of a conversation.
func (r *rig) record(id string, opened ...session.RequestOpened) {
	r.t.Helper()
	for _, o := range opened {
		if _, err := r.sessions.Update(r.t.Context(), session.ID(id), func(s session.State) ([]session.Payload, error) { return s.Opened(o) }); err != nil {
			r.t.Fatal(err)
		}
	}
}

var (
	firstOpened  = session.RequestOpened{Provider: "github", Repository: "octo/app", Number: 7, URL: "https://github.com/octo/app/pull/7", Title: "Fix", Source: "fix", Target: "main"}
	secondOpened = session.RequestOpened{Provider: "gitlab", Repository: "octo/sub/app", Number: 3, URL: "javascript:alert(1)"}
)

// A conversation tells of its pull requests, and so do lists.
func TestPullRequestsAreShown(t *testing.T) {
	r := newRig(t)
	r.settle("ada")
	id := r.create(`{}`)
	if c := asked[api.Conversation](r, "/api/conversations/"+id); c.PRNumber == nil || c.PullRequests == nil || len(c.PRNumber)+len(c.PullRequests) > 0 {
		t.Errorf("%+v", c)
	}
	r.record(id, firstOpened, secondOpened)
	c := asked[api.Conversation](r, "/api/conversations/"+id)
	if len(c.PRNumber) != 2 || c.PRNumber[0] != 7 || c.PRNumber[1] != 3 || len(c.PullRequests) != 2 || c.PullRequests[0] != api.PullRequest(firstOpened) {
		t.Errorf("%+v", c)
	}
	if l := asked[api.ConversationPage](r, "/api/conversations"); len(l.Results) != 1 || len(l.Results[0].PullRequests) != 2 {
		t.Errorf("%+v", l)
	}
}

func asked[T any](r *rig, path string) T {
	r.t.Helper()
	var v T
	a := r.do("GET", path, "")
	if err := json.Unmarshal([]byte(a.body), &v); err != nil || a.status != 200 {
		r.t.Fatalf("%s: %d %s", path, a.status, a.body)
	}
	return v
}

// echo is a tool that says what it was called with.
type echo struct{ name string }

func (e echo) Spec() tool.Spec { return tool.Spec{Name: e.name} }
func (e echo) Run(_ context.Context, _ tool.Box, c tool.Call) (tool.Result, error) {
	if strings.Contains(string(c.Args), "broken") {
		return tool.Result{}, errors.New("a secret detail")
	}
	return tool.Result{Text: strings.Join([]string{e.name, c.Owner, c.Session, string(c.Args)}, " "), Failed: strings.Contains(string(c.Args), "refused")}, nil
}

// The tools of our own server that open pull requests are the user's, in the
// conversation that the request names.
func TestOwnToolServerProposes(t *testing.T) {
	r := newRig(t, tune{config: func(c *Config) {
		c.MCP.Proposers = func(_ context.Context, user string, id session.ID) ([]tool.Tool, error) {
			if user == "bob" {
				return nil, nil
			}
			return []tool.Tool{echo{"create_pr"}}, nil
		}
	}})
	r.settle("ada", "bob")
	id := r.create(`{}`)
	call := func(user, name, conversation, args string) string {
		t.Helper()
		header := []string{"X-Session-API-Key", r.keys[user]}
		if conversation != "" {
			header = append(header, "X-OpenHands-ServerConversation-ID", conversation)
		}
		a := r.do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+name+`","arguments":`+args+`}}`, header...)
		var out struct {
			Result struct {
				Content []struct{ Text string }
				IsError bool
			}
		}
		if err := json.Unmarshal([]byte(a.body), &out); err != nil || len(out.Result.Content) != 1 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		if out.Result.IsError {
			return "ERROR " + out.Result.Content[0].Text
		}
		return out.Result.Content[0].Text
	}
	for _, c := range [][5]string{
		{"ada", "create_pr", id, `{"title":"t"}`, "create_pr ada " + id + ` {"title":"t"}`},
		{"ada", "create_pr", "", `{"body":null}`, `create_pr ada  {"body":null}`},
		{"ada", "create_pr", "", `{"title":"refused"}`, `ERROR create_pr ada  {"title":"refused"}`},
		{"ada", "create_mr", id, `{}`, "ERROR No token that create_mr can use is stored. Store one in the settings."},
		{"bob", "create_pr", "", `{}`, "ERROR No token that create_pr can use is stored. Store one in the settings."},
		{"bob", "create_pr", id, `{}`, "ERROR Conversation not found"},
		{"ada", "create_pr", "../x", `{}`, "ERROR Conversation not found"},
	} {
		if got := call(c[0], c[1], c[2], c[3]); got != c[4] {
			t.Errorf("%q: %s", c, got)
		}
	}
	if got := call("ada", "create_pr", id, `{"title":"broken"}`); !strings.HasPrefix(got, "ERROR ") || strings.Contains(got, "a secret detail") {
		t.Error(got)
	}
}

package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"deckhand/internal/feedback/feedbacktest"
	"deckhand/internal/gitprovider"
	"deckhand/internal/knowledge"
)

// legacyCall is a good request of an operation. It shows what cannot be derived:
// values that mean something.
type legacyCall struct {
	query, body string
	// fresh gives it a conversation of its own, which it may end.
	fresh bool
	// status is that of success, if it is not 200.
	status int
}

// legacyCalls has one for each.
var legacyCalls = map[string]legacyCall{
	"GET /alive":                                                     {},
	"GET /health":                                                    {},
	"GET /api/options/models":                                        {},
	"GET /api/options/agents":                                        {},
	"GET /api/options/security-analyzers":                            {},
	"GET /api/options/config":                                        {},
	"GET /api/settings":                                              {},
	"POST /api/settings":                                             {body: `{"language":"de","llm_model":"scripted/demo","max_iterations":50,"confirmation_mode":true,"enable_sound_notifications":true,"git_user_name":"Ada"}`},
	"POST /api/reset-settings":                                       {status: http.StatusGone},
	"POST /api/add-git-providers":                                    {body: `{"provider_tokens":{"github":{"token":"good","host":""}}}`},
	"POST /api/unset-provider-tokens":                                {},
	"GET /api/secrets":                                               {},
	"POST /api/secrets":                                              {body: `{"name":"FRESH","value":"v","description":"new"}`, status: http.StatusCreated},
	"PUT /api/secrets/{secret_id}":                                   {body: `{"name":"TOKEN","description":"other"}`},
	"DELETE /api/secrets/{secret_id}":                                {},
	"POST /api/conversations":                                        {body: `{"repository":"team/app","git_provider":"github","selected_branch":"main","initial_user_msg":"Hello","image_urls":[],"conversation_instructions":"Be brief."}`},
	"GET /api/conversations":                                         {query: "limit=2&conversation_trigger=gui"},
	"GET /api/conversations/{conversation_id}":                       {},
	"PATCH /api/conversations/{conversation_id}":                     {body: `{"title":"Other"}`},
	"DELETE /api/conversations/{conversation_id}":                    {fresh: true},
	"POST /api/conversations/{conversation_id}/start":                {body: `{"providers_set":["github"]}`, fresh: true},
	"POST /api/conversations/{conversation_id}/stop":                 {fresh: true},
	"GET /api/conversations/{conversation_id}/remember-prompt":       {query: "event_id=2"},
	"GET /api/conversations/{conversation_id}/config":                {},
	"GET /api/conversations/{conversation_id}/events":                {query: "start_id=0&end_id=50&reverse=true&limit=5"},
	"POST /api/conversations/{conversation_id}/events":               {body: `{"action":"message","args":{"content":"More","image_urls":[]}}`},
	"GET /api/conversations/{conversation_id}/microagents":           {},
	"GET /api/conversations/{conversation_id}/trajectory":            {},
	"POST /api/conversations/{conversation_id}/submit-feedback":      {body: `{"email":"ada@example.org","version":"1.0","permissions":"private","polarity":"positive","token":"","trajectory":[]}`},
	"GET /api/conversations/{conversation_id}/list-files":            {query: "path=lib"},
	"GET /api/conversations/{conversation_id}/select-file":           {query: "file=lib/a.txt"},
	"GET /api/conversations/{conversation_id}/zip-directory":         {},
	"GET /api/conversations/{conversation_id}/git/changes":           {},
	"GET /api/conversations/{conversation_id}/git/diff":              {query: "path=lib/a.txt"},
	"POST /api/conversations/{conversation_id}/upload-files":         {},
	"GET /api/user/info":                                             {},
	"GET /api/user/installations":                                    {query: "provider=github"},
	"GET /api/user/repositories":                                     {query: "sort=pushed&selected_provider=github&page=1&per_page=5&installation_id=1"},
	"GET /api/user/search/repositories":                              {query: "query=app&per_page=5&sort=stars&order=desc&selected_provider=github"},
	"GET /api/user/suggested-tasks":                                  {},
	"GET /api/user/repository/branches":                              {query: "repository=team/app"},
	"GET /api/user/repository/{repository_name}/microagents":         {},
	"GET /api/user/repository/{repository_name}/microagents/content": {query: "file_path=.openhands/microagents/repo.md"},
}

// yard is a server with something behind every operation: settings, a git provider,
// a conversation with files in a repository, and one of another user.
type yard struct {
	*sandboxRig
	id, foreign string
	strangers   *int
}

func newYard(t *testing.T) *yard {
	t.Helper()
	_, git := newStreet(map[string]*place{"github": forgeOfTheYard()})
	ask := tune{config: func(c *Config) {
		c.Legacy.Feedback = &feedbacktest.Memory{}
		c.Conversations.Ask = func(context.Context, string, string, string) (string, error) {
			return "<update_prompt>Remember it.</update_prompt>", nil
		}
	}}
	y := &yard{sandboxRig: newSandboxRig(t, git, ask), strangers: new(int)}
	y.api.conversations.Microagents = libraryOf(y.sandboxRig, &knowledge.Library{Users: t.TempDir()})
	y.id, _ = y.begun()
	y.do("POST", "/api/conversations/"+y.id+"/message", `{"message":"Remember to use make."}`).want(t, 200)
	y.put(y.id, "lib/a.txt", "one\n")
	y.put(y.id, ".openhands/microagents/repo.md", "Run make.")
	for _, args := range [][]string{{"init", "--quiet"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "-m", "one"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = y.path(y.id, "")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	y.put(y.id, "lib/a.txt", "two\n")
	y.foreign = decoded[struct {
		ConversationID string `json:"conversation_id"`
	}](t, y.rig.as("bob", "POST", "/api/conversations", `{}`).want(t, 200)).ConversationID
	return y
}

func forgeOfTheYard() *place {
	stars := 3
	repositories := []gitprovider.Repository{{ID: "1", Name: "team/app", Public: true, Stars: &stars, PushedAt: time.Unix(1_700_000_000, 0), Owner: "user", MainBranch: "main"}}
	return &place{
		user: func(context.Context) (gitprovider.User, error) {
			return gitprovider.User{ID: "7", Login: "ada"}, nil
		},
		repositories: func(gitprovider.RepositoryQuery) (gitprovider.Repositories, error) {
			return gitprovider.Repositories{Items: repositories}, nil
		},
		search: func(context.Context, gitprovider.SearchQuery) ([]gitprovider.Repository, error) {
			return repositories, nil
		},
		branches: func(string, gitprovider.BranchQuery) (gitprovider.Branches, error) {
			return gitprovider.Branches{Items: []gitprovider.Branch{{Name: "main", Commit: "abc", Protected: true}}, Total: 1}, nil
		},
		installations: func() ([]string, error) { return []string{"1"}, nil },
		tasks: func(context.Context) ([]gitprovider.Task, error) {
			return []gitprovider.Task{{Type: gitprovider.FailingChecks, Repository: "team/app", Title: "Fix", Number: 4}}, nil
		},
		files: map[string]string{"team/app:.openhands/microagents/repo.md": "Run make."},
	}
}

// settled brings back what an operation before may have taken away.
func (y *yard) settled() {
	y.t.Helper()
	y.settle("ada")
	y.tokens("ada", "github")
	for _, name := range []string{"TOKEN", "FRESH"} {
		y.do("DELETE", "/api/secrets/"+name, "")
	}
	y.do("POST", "/api/secrets", `{"name":"TOKEN","value":"v"}`).want(y.t, http.StatusCreated)
}

// wish is one request, good or bad.
type wish struct {
	name   string
	method string
	path   map[string]string // the values of the path's parameters
	query  url.Values
	body   string
	header []string
	// stranger requests have no good key, and come from an address of their own: there
	// is a limit on how often one of them may try.
	stranger bool
	// must is the only status that the answer may have; 0 is any status below 500.
	must int
}

// good is the request that works.
func (y *yard) good(op legacyOperation) wish {
	y.t.Helper()
	c := legacyCalls[op.name()]
	w := wish{name: "good", method: op.Method, body: c.body, must: http.StatusOK,
		path: map[string]string{"conversation_id": y.id, "secret_id": "TOKEN", "repository_name": "team/app"}}
	if c.status != 0 {
		w.must = c.status
	}
	if c.fresh {
		w.path["conversation_id"] = y.create(`{}`)
	}
	var err error
	if w.query, err = url.ParseQuery(c.query); err != nil {
		y.t.Fatal(err)
	}
	if op.Multipart {
		body := &bytes.Buffer{}
		m := multipart.NewWriter(body)
		part, _ := m.CreateFormFile("files", "up.txt")
		_, _ = part.Write([]byte("content"))
		_ = m.Close()
		w.body, w.header = body.String(), []string{"Content-Type", m.FormDataContentType()}
	}
	return w
}

// make sends it. Values in the path are escaped, but for a repository's slash, which clients do not escape.
func (y *yard) make(op legacyOperation, w wish) answer {
	y.t.Helper()
	path := op.Path
	for name, value := range w.path {
		path = strings.ReplaceAll(path, "{"+name+"}", strings.ReplaceAll(url.PathEscape(value), "team%2Fapp", "team/app"))
	}
	if len(w.query) > 0 {
		path += "?" + w.query.Encode()
	}
	if w.stranger {
		*y.strangers++
		return y.direct(fmt.Sprintf("10.3.0.%d", *y.strangers), w.method, path, w.header...)
	}
	return y.do(w.method, path, w.body, w.header...)
}

// value is the answer's JSON.
func (a answer) value(t *testing.T) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		t.Fatalf("%v: %.300s", err, a.body)
	}
	return v
}

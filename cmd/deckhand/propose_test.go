package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"deckhand/api"
	"deckhand/internal/config"
	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
)

// hub is a place in the shape of GitHub with one repository, octo/app.
type hub struct {
	*httptest.Server
	token string
	// held is called for every pull request after it was opened and before that is said.
	held func()

	mu    sync.Mutex
	pulls []map[string]any
	notes []string
}

// firstPull is the number of the first pull request.
const firstPull = 12

func newHub(t *testing.T, token string) *hub {
	t.Helper()
	h := &hub{token: token, held: func() {}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v3/user", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"id": 7, "login": "ada", "avatar_url": "https://example.org/a.png"})
	})
	mux.HandleFunc("POST /api/v3/repos/octo/app/pulls", h.open)
	mux.HandleFunc("GET /api/v3/repos/octo/app/pulls", func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		defer h.mu.Unlock()
		found := []map[string]any{}
		for _, p := range h.pulls {
			if "octo:"+branchOf(p, "head") == r.URL.Query().Get("head") && branchOf(p, "base") == r.URL.Query().Get("base") {
				found = append(found, p)
			}
		}
		answer(w, http.StatusOK, found)
	})
	mux.HandleFunc("GET /api/v3/repos/octo/app/issues/7", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"number": 7, "title": "It is broken", "body": "The wheel came off.", "state": "open", "user": map[string]any{"login": "bob"}, "html_url": "https://example.org/7"})
	})
	mux.HandleFunc("GET /api/v3/repos/octo/app/issues/7/comments", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, []map[string]any{{"body": "It did here too.", "user": map[string]any{"login": "eve"}}})
	})
	mux.HandleFunc("POST /api/v3/repos/octo/app/issues/7/comments", func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Body string }
		_ = json.NewDecoder(r.Body).Decode(&in)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.notes = append(h.notes, in.Body)
		answer(w, http.StatusCreated, map[string]any{"id": 1})
	})
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, given, _ := strings.Cut(r.Header.Get("Authorization"), " "); given != h.token {
			answer(w, http.StatusUnauthorized, map[string]any{"message": "Bad credentials"})
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { h.CloseClientConnections(); h.Close() })
	return h
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func branchOf(p map[string]any, side string) string { return p[side].(map[string]any)["ref"].(string) }

// open opens a pull request; a second one between two branches is refused.
func (h *hub) open(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Title, Body, Head, Base string
		Draft                   bool
	}
	_ = json.NewDecoder(r.Body).Decode(&in)
	h.mu.Lock()
	if slices.ContainsFunc(h.pulls, func(p map[string]any) bool { return branchOf(p, "head") == in.Head && branchOf(p, "base") == in.Base }) {
		h.mu.Unlock()
		answer(w, http.StatusUnprocessableEntity, map[string]any{"message": "Validation Failed", "errors": []map[string]any{{"message": "A pull request already exists for octo:" + in.Head + "."}}})
		return
	}
	n := firstPull + len(h.pulls)
	made := map[string]any{"number": n, "html_url": fmt.Sprintf("https://example.org/octo/app/pull/%d", n), "title": in.Title, "body": in.Body, "state": "open", "draft": in.Draft,
		"head": map[string]any{"ref": in.Head}, "base": map[string]any{"ref": in.Base}}
	h.pulls = append(h.pulls, made)
	h.mu.Unlock()
	h.held()
	answer(w, http.StatusCreated, made)
}

func (h *hub) opened() []map[string]any {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.pulls)
}

// stores is the field of the settings that holds its token.
func (h *hub) stores() string {
	return fmt.Sprintf(`"secrets_store":{"provider_tokens":{"github":{"token":%q,"host":%q}}}`, h.token, h.URL)
}

func createPR(source string) llm.Call {
	return use("create_pr", map[string]any{"repo_name": "octo/app", "source_branch": source, "target_branch": "main", "title": "Mend the wheel", "body": "It came off."})
}

// The agent reads an issue, opens a pull request for it and says so below it,
// with a token that neither it nor its sandbox ever sees; the conversation knows
// the number.
func TestAgentOpensAPullRequest(t *testing.T) {
	t.Parallel()
	const token = "ghp_propose_canary_4711"
	h := newHub(t, token)
	l := newLab(t, "")
	p := l.person(t, "proposer", steps(
		use("read_issue", map[string]any{"number": 7, "repo_name": "octo/app"}), createPR("fix"), createPR("fix"),
		use("comment_on_issue", map[string]any{"number": 7, "repo_name": "octo/app", "text": "See the pull request."}),
	), h.stores())
	id := p.begin("Mend it.")
	p.follow(id, 0, agentIs("awaiting_user_input"))

	asked := p.requests()
	var got []string
	for _, r := range results(asked[len(asked)-1]) {
		got = append(got, r.tool+": "+r.text)
	}
	all := strings.Join(got, "\n")
	for _, part := range []string{"read_issue: Issue #7 in octo/app (open): It is broken", "eve: It did here too.", "create_pr: Pull request #12 of octo/app was opened: https://example.org/octo/app/pull/12",
		"create_pr: Pull request #12 of octo/app from fix to main is open already", "comment_on_issue: The comment was written below #7"} {
		if !strings.Contains(all, part) {
			t.Errorf("no %q in %s", part, all)
		}
	}
	if made := h.opened(); len(made) != 1 || made[0]["draft"] != true || made[0]["body"] != "It came off.\n\nMade in [this conversation]("+p.base+"/conversations/"+id+")." {
		t.Errorf("%v", made)
	}
	want := api.PullRequest{Provider: "github", Repository: "octo/app", Number: 12, URL: "https://example.org/octo/app/pull/12", Title: "Mend the wheel", Source: "fix", Target: "main"}
	p.knows(id, want)
	p.opensOverMCP(id, h)
	p.noSecret(id, token)
}

// knows insists on what the conversation tells of its pull requests, alone and in a list.
func (p *person) knows(id string, want ...api.PullRequest) {
	p.t.Helper()
	c, err := p.client.Conversation(p.t.Context(), id)
	if err != nil {
		p.t.Fatal(err)
	}
	var numbers []int
	for _, w := range want {
		numbers = append(numbers, w.Number)
	}
	if !slices.Equal(c.PRNumber, numbers) || !slices.Equal(c.PullRequests, want) {
		p.t.Errorf("pr_number %v, pull_requests %+v", c.PRNumber, c.PullRequests)
	}
	var page api.ConversationPage
	_, text, _ := p.raw("GET", "/api/conversations", "")
	if err := json.Unmarshal([]byte(text), &page); err != nil || len(page.Results) != 1 || !slices.Equal(page.Results[0].PRNumber, numbers) {
		p.t.Errorf("%s", text)
	}
}

// opensOverMCP opens another one for the same conversation, as agents elsewhere do.
func (p *person) opensOverMCP(id string, h *hub) {
	t := p.t
	t.Helper()
	call := func(conversation, name, source string) string {
		c := sdk.NewClient(&sdk.Implementation{Name: "elsewhere"}, nil)
		s, err := c.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: p.base + "/mcp", DisableStandaloneSSE: true,
			HTTPClient: &http.Client{Transport: withHeaders{"Authorization": "Bearer " + p.key, "X-OpenHands-ServerConversation-ID": conversation}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		args := map[string]any{"repo_name": "octo/app", "source_branch": source, "target_branch": "main", "title": "Another", "body": nil, "labels": nil}
		r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%t %s", r.IsError, r.Content[0].(*sdk.TextContent).Text)
	}
	if got := call(id, "create_pr", "more"); got != "false Pull request #13 of octo/app was opened: https://example.org/octo/app/pull/13\nIt is a draft." {
		t.Error(got)
	}
	if got := call("", "create_pr", "aside"); !strings.HasPrefix(got, "false Pull request #14") {
		t.Error(got)
	}
	if made := h.opened(); len(made) != 3 || !strings.HasSuffix(made[1]["body"].(string), "/conversations/"+id+").") || made[2]["body"] != "" {
		t.Errorf("%v", made)
	}
	if got := call(id, "create_mr", "more"); got != "true No token that create_mr can use is stored. Store one in the settings." {
		t.Error(got)
	}
	if got := call("somebody-elses", "create_pr", "stray"); got != "true Conversation not found" || len(h.opened()) != 3 {
		t.Error(got)
	}
	first := api.PullRequest{Provider: "github", Repository: "octo/app", Number: 12, URL: "https://example.org/octo/app/pull/12", Title: "Mend the wheel", Source: "fix", Target: "main"}
	second := api.PullRequest{Provider: "github", Repository: "octo/app", Number: 13, URL: "https://example.org/octo/app/pull/13", Title: "Another", Source: "more", Target: "main"}
	p.knows(id, first, second)
}

// withHeaders adds headers to every request; an empty one is left out.
type withHeaders map[string]string

func (h withHeaders) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range h {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	return http.DefaultTransport.RoundTrip(r)
}

// noSecret looks for a token in all that the model, clients and operators see,
// and in every file of the data.
func (p *person) noSecret(id, token string) {
	t := p.t
	t.Helper()
	for _, it := range p.events(id) {
		if strings.Contains(string(it.Raw), token) {
			t.Errorf("event %d holds the token", it.ID)
		}
	}
	for _, a := range p.requests() {
		if strings.Contains(string(a.Body), token) {
			t.Error("the model was shown the token")
		}
	}
	if strings.Contains(p.logs.String(), token) {
		t.Error("the token is in the log")
	}
	err := filepath.WalkDir(p.dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // a file that is gone again, or a pipe
		}
		if b, err := os.ReadFile(name); err == nil && strings.Contains(string(b), token) {
			t.Errorf("%s holds the token", name)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A user without a token is offered none of these tools; one with another
// provider's gets that provider's.
func TestToolsForPullRequestsAreOffered(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	offered := func(name, fields string) string {
		t.Helper()
		p := l.person(t, name, func(llmtest.Asked) llmtest.Reply { return llmtest.Reply{Text: "Hello."} })
		if fields != "" {
			p.set(fields)
		}
		p.follow(p.begin("Hi"), 0, agentIs("awaiting_user_input"))
		var out []string
		for _, name := range p.requests()[0].Tools {
			if strings.HasPrefix(name, "create_") || strings.HasSuffix(name, "_issue") {
				out = append(out, name)
			}
		}
		return strings.Join(out, " ")
	}
	if got := offered("none", ""); got != "" {
		t.Error(got)
	}
	h := newHub(t, "ghp_x")
	if got := offered("hub", h.stores()); got != "create_pr read_issue comment_on_issue" {
		t.Error(got)
	}
	if got := offered("reader", h.stores()+`,"agent":"ReadOnlyAgent"`); got != "read_issue" {
		t.Error(got)
	}
}

// Where links lead to.
func TestPublicBase(t *testing.T) {
	t.Parallel()
	at := &net.TCPAddr{IP: net.IPv4zero, Port: 3000}
	for want, c := range map[string]serveCmd{
		"http://localhost:3000":           {},
		"https://localhost:3000":          {TLSFlags: config.TLSFlags{TLSCert: "x.pem"}},
		"https://deckhand.example.org/at": {ListenFlags: config.ListenFlags{PublicURL: "https://deckhand.example.org/at/"}, TLSFlags: config.TLSFlags{TLSCert: "x.pem"}},
	} {
		if got := c.Base(at, c.TLSCert != ""); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A server that dies between the provider's answer and its own word opens no
// second pull request, and remembers the first.
func TestPullRequestSurvivesAKill(t *testing.T) {
	t.Parallel()
	h := newHub(t, "ghp_kill_canary")
	arrived, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	h.held = func() { once.Do(func() { close(arrived) }); <-release }
	model := llmtest.New(t, steps(createPR("fix")))
	dir := t.TempDir()
	b, cmd := spawn(t, dir)
	b.post("/api/settings", fmt.Sprintf(`{"llm_model":"openai/x","llm_api_key":"sk-x","llm_base_url":"%s/v1",%s}`, model.URL, h.stores()))
	id := b.create("Mend it.")
	<-arrived
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	close(release)
	again := serve(t, dir)
	again.follow(id, 0, agentIs("awaiting_user_input"))
	c, err := again.client.Conversation(t.Context(), id)
	if err != nil || !slices.Equal(c.PRNumber, []int{firstPull}) || len(h.opened()) != 1 {
		t.Errorf("%+v %v after %v", c, err, h.opened())
	}
}

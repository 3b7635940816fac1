package httpapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"deckhand/api"
	usecase "deckhand/internal/conversation"
	"deckhand/internal/gitprovider"
	"deckhand/internal/outbound"
	"deckhand/internal/session"
	"deckhand/internal/settings"
)

// gitHost serves real repositories with git's own server. Those under private/
// need the token; it remembers what it was shown.
type gitHost struct {
	base, token string
	redirect    string // sends everything elsewhere

	mu   sync.Mutex
	seen []string // Authorization of each request, "" if none
}

func newGitHost(t *testing.T, token string) *gitHost {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal("git is needed, as for everything else here")
	}
	path, err := exec.Command(git, "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, name := range []string{"public/app.git", "private/app.git"} {
		if out, err := exec.Command(git, "init", "--bare", "--quiet", filepath.Join(root, name)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	backend := &cgi.Handler{Path: filepath.Join(strings.TrimSpace(string(path)), "git-http-backend"), Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"}, Stderr: io.Discard}
	h := &gitHost{token: token}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		h.seen = append(h.seen, r.Header.Get("Authorization"))
		to := h.redirect
		h.mu.Unlock()
		_, password, _ := r.BasicAuth()
		switch {
		case to != "":
			http.Redirect(w, r, to+r.URL.RequestURI(), http.StatusFound)
		case strings.HasPrefix(r.URL.Path, "/private/") && password != h.token:
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "no", http.StatusUnauthorized)
		default:
			backend.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	h.base = server.URL
	return h
}

// shown is what the host has been shown since the last call.
func (h *gitHost) shown() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := strings.Join(h.seen, ",")
	h.seen = nil
	return out
}

// dialing lets the rig look for repositories the way the server does.
func dialing(t *testing.T) tune {
	client := outbound.NewClient(outbound.Policy{AllowAllPrivate: true}, 10*time.Second)
	t.Cleanup(client.CloseIdleConnections)
	return tune{rules: func(c *usecase.Config) {
		c.VerifyRepository = func(ctx context.Context, s settings.Settings, provider, repository, branch string) (string, error) {
			tokens := map[string]gitprovider.Token{}
			for name, tok := range s.ProviderTokens {
				tokens[name] = gitprovider.Token{Token: tok.Token.Reveal(), Host: tok.Host}
			}
			return gitprovider.Verify(ctx, client, tokens, provider, repository, branch)
		}
	}}
}

func TestRepositories(t *testing.T) {
	hub, lab := newGitHost(t, "hub-"+canary), newGitHost(t, "lab-"+canary)
	r := newRig(t, dialing(t))
	tokens := func(hubToken, labToken string) {
		r.do("POST", "/api/settings", fmt.Sprintf(`{"llm_model":%q,"secrets_store":{"provider_tokens":{"github":{"token":%q,"host":%q},"gitlab":{"token":%q,"host":%q}}}}`,
			keyless, hubToken, hub.base, labToken, lab.base)).want(t, 200)
	}
	tokens(hub.token, lab.token)
	n := 0
	ask := func(repository, provider string) answer {
		n++
		body := fmt.Sprintf(`{"conversation_id":"r%d","repository":%q`, n, repository)
		if provider != "" {
			body += fmt.Sprintf(`,"git_provider":%q`, provider)
		}
		a := r.do("POST", toCreate, body+`}`)
		if strings.Contains(a.body, canary) {
			t.Errorf("the answer shows a token: %s", a.body)
		}
		return a
	}
	found := func(provider string) {
		t.Helper()
		if got := r.events(fmt.Sprintf("r%d", n))[0].(session.Created); got.Provider != provider {
			t.Errorf("found at %q, want %q", got.Provider, provider)
		}
	}
	private := func(h *gitHost, other *gitHost) {
		t.Helper()
		if shown := h.shown(); shown == "" || strings.Contains(shown, ",") {
			t.Errorf("the right host was shown %q", shown)
		}
		if shown := other.shown(); shown != "" {
			t.Errorf("the other host was shown %q", shown)
		}
	}
	ask("private/app", "github").want(t, 200)
	found("github")
	private(hub, lab)
	ask("private/app", "gitlab").want(t, 200)
	found("gitlab")
	private(lab, hub)

	// Without a provider, each is asked with its own token until one has it.
	hub.mu.Lock()
	hub.token = "changed"
	hub.mu.Unlock()
	ask("private/app", "").want(t, 200)
	found("gitlab")
	hubShown, labShown := hub.shown(), lab.shown()
	if hubShown == labShown || hubShown == "" || labShown == "" {
		t.Errorf("the hosts were shown %q and %q", hubShown, labShown)
	}

	before := len(r.rows("ada"))
	failed := []string{`"status":"error"`, `"msg_id":"STATUS$GIT_PROVIDER_AUTHENTICATION_ERROR"`}
	lab.mu.Lock()
	lab.token = "changed, too"
	lab.mu.Unlock()
	ask("private/app", "github").want(t, 400, append(failed, "the stored token has no access")...)
	ask("public/nothing", "github").want(t, 400, failed...)
	ask("team/app", "enterprise_sso").want(t, 400, append(failed, "host")...)
	if len(r.rows("ada")) != before {
		t.Error("a conversation without its repository was created")
	}
	hub.shown()

	// A public repository needs no token, only the host.
	tokens("", "")
	ask("public/app", "github").want(t, 200)
	if shown := hub.shown(); shown != "" {
		t.Errorf("a token that was cleared was sent: %q", shown)
	}
	ask("private/app", "gitlab").want(t, 400, append(failed, "no token is stored")...)

	// A token does not follow a redirect to another host.
	tokens(hub.token, "")
	lab.shown()
	hub.mu.Lock()
	hub.redirect = lab.base
	hub.mu.Unlock()
	ask("private/app", "github").want(t, 400, failed...)
	ask("public/app", "github").want(t, 200)
	if shown := lab.shown(); strings.Trim(shown, ",") != "" {
		t.Errorf("the redirect's target was shown %q", shown)
	}
	r.logsAreClean()
}

// A host that does not answer, or is no git host, is a refusal and not a server error.
func TestRepositoryHostTrouble(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	defer page.Close()
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, canary, http.StatusBadGateway) }))
	defer broken.Close()
	for host, says := range map[string]string{gone.URL: "does not respond", page.URL: "there is no git service", broken.URL: "status 502"} {
		r := newRig(t, dialing(t))
		r.do("POST", "/api/settings", fmt.Sprintf(`{"llm_model":%q,"secrets_store":{"provider_tokens":{"github":{"token":"x","host":%q}}}}`, keyless, host)).want(t, 200)
		a := r.do("POST", toCreate, `{"repository":"team/app","git_provider":"github"}`).want(t, 400, api.CodeGitAuthentication, says)
		if strings.Contains(a.body, canary) || len(r.rows("ada")) != 0 {
			t.Errorf("%s", a.body)
		}
	}
}

// A branch that the repository has not is said by its name, and nothing is made.
func TestRepositoryBranch(t *testing.T) {
	hub := newGitHost(t, "hub-"+canary)
	r := newRig(t, dialing(t))
	r.do("POST", "/api/settings", fmt.Sprintf(`{"llm_model":%q,"secrets_store":{"provider_tokens":{"github":{"token":%q,"host":%q}}}}`, keyless, hub.token, hub.base)).want(t, 200)
	body := `{"conversation_id":"b1","repository":"private/app","git_provider":"github","selected_branch":"nope"}`
	r.do("POST", toCreate, body).want(t, 400, api.CodeGitBranch, "The repository private/app has no branch nope.")
	r.do("GET", toCreate+"/b1", "").want(t, 404)
}

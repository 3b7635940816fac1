package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"deckhand/api"
	"deckhand/internal/gitgate"
)

// gitServer is a real git server that wants a token.
type gitServer struct {
	t     *testing.T
	url   string
	dir   string
	mu    sync.Mutex
	token string
	// api answers what begins with /api/, if it returns true; nil answers nothing.
	api func(w http.ResponseWriter, r *http.Request) bool
}

// newGitServer serves these repositories, each with one commit.
func newGitServer(t *testing.T, token string, repositories ...string) *gitServer {
	t.Helper()
	f := &gitServer{t: t, dir: t.TempDir(), token: token}
	work := t.TempDir()
	f.git("init", "-q", "-b", "main", work)
	f.git("-C", work, "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "-q", "--allow-empty", "-m", "Begin")
	for _, name := range repositories {
		f.git("clone", "-q", "--bare", work, f.path(name))
		f.git("-C", f.path(name), "config", "http.receivepack", "true")
	}
	backend := &cgi.Handler{Path: filepath.Join(strings.TrimSpace(f.git("--exec-path")), "git-http-backend"), Env: []string{"GIT_PROJECT_ROOT=" + f.dir, "GIT_HTTP_EXPORT_ALL=1"}, Stderr: t.Output()}
	f.url = website(t, func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		want := f.token
		f.mu.Unlock()
		_, password, _ := r.BasicAuth()
		_, bare, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		switch {
		case password != want && bare != want:
			w.Header().Set("WWW-Authenticate", `Basic realm="forge"`)
			http.Error(w, "no", http.StatusUnauthorized)
		case f.api != nil && f.api(w, r):
		case strings.HasPrefix(r.URL.Path, "/api/"):
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"id":1,"login":"ada","version":"1.22.0","permissions":{"push":%t},"permission":"read"}`, !strings.Contains(r.URL.Path, "/foreign"))
		case strings.HasSuffix(r.URL.Path, "/info/lfs/objects/batch"):
			w.Header().Set("Content-Type", "application/vnd.git-lfs+json")
			fmt.Fprintf(w, `{"objects":[],"message":"found with %s"}`, r.Header.Get("Authorization"))
		default:
			backend.ServeHTTP(w, r)
		}
	})
	return f
}

func (f *gitServer) address() string         { return strings.TrimPrefix(f.url, "http://") }
func (f *gitServer) path(name string) string { return filepath.Join(f.dir, name+".git") }
func (f *gitServer) wants(token string)      { f.mu.Lock(); defer f.mu.Unlock(); f.token = token }

func (f *gitServer) git(args ...string) string {
	f.t.Helper()
	out, err := exec.Command("git", args...).CombinedOutput()
	if err != nil {
		f.t.Fatalf("git %v: %v %s", args, err, out)
	}
	return string(out)
}

// stores is the setting for a token of this forge.
func (f *gitServer) stores(token string) string {
	return fmt.Sprintf(`"secrets_store":{"provider_tokens":{"gitea":{"token":%q,"host":%q}}}`, token, f.url)
}

// in puts the forge into a command.
func (f *gitServer) in(script string) string {
	return strings.NewReplacer("FORGE", f.url, "GATE", "http://"+gitgate.Name+"/http/"+f.address()).Replace(script)
}

// idle begins a conversation in which nothing was said yet.
func (p *person) idle() string {
	p.t.Helper()
	id := p.begin("")
	p.follow(id, 0, agentIs("awaiting_user_input"))
	return id
}

// runs lets the agent run a command and returns what it said.
func (p *person) runs(id, command string) string {
	p.t.Helper()
	p.lab.mind(p.name, steps(shell(command)))
	return observed(p.t, p.ask(id, "Go on.", "awaiting_user_input"), "run")
}

func says(t *testing.T, got string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(got, part) {
			t.Errorf("%q is missing in:\n%s", part, got)
		}
	}
}

// needLocal is for tests that need a sandbox with a proxy.
func needLocal(t *testing.T) {
	t.Helper()
	if bestDriver(t) == "local" {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("there is no local sandbox, so there is no proxy")
	}
	t.Skip("SKIPPED: there is no local sandbox, so there is no proxy")
}

// newGitLab is a server with a real sandbox that may reach the forge.
func newGitLab(t *testing.T, f *gitServer) *lab {
	t.Helper()
	needLocal(t)
	return newLab(t, "", "--egress-private", f.address())
}

// Git in a sandbox clones and pushes with the user's token, and the token is
// nowhere that anybody could look for it.
func TestTokenStaysOutside(t *testing.T) {
	t.Parallel()
	secrets := birds{}
	token := secrets.put("the git token")
	f := newGitServer(t, token, "ada/engine", "ada/other")
	l := newGitLab(t, f)
	p := l.person(t, "pusher", steps(), f.stores(token), `"git_user_name":"Grace Hopper","git_user_email":"grace@example.org"`)
	made, err := p.client.Create(t.Context(), api.CreateConversation{Repository: api.Some("ada/engine"), GitProvider: api.Some("gitea")})
	if err != nil {
		t.Fatal(err)
	}
	id := made.ConversationID
	t.Cleanup(func() { p.drop(id) })
	p.follow(id, 0, agentIs("awaiting_user_input"))

	says(t, p.runs(id, f.in(`cd /workspace && git clone -q FORGE/ada/engine.git mine && cd mine && echo x > new && git add new && git commit -qm New && git push -q origin HEAD:refs/heads/work && echo "it was push"ed`)), "it was pushed")
	if got := f.git("-C", f.path("ada/engine"), "log", "-1", "--format=%an <%ae> %s", "work"); !strings.Contains(got, "Grace Hopper <grace@example.org> New") {
		t.Errorf("pushed: %s", got)
	}
	got := p.runs(id, f.in(`git push FORGE/ada/other.git HEAD:refs/heads/work; git ls-remote FORGE/ada/other.git && echo "it was rea"d`))
	says(t, got, "can push to ada/engine and to no other repository", "refs/heads/main", "it was read")
	if got := f.git("-C", f.path("ada/other"), "branch", "--list"); strings.Contains(got, "work") {
		t.Errorf("the other repository has %s", got)
	}
	says(t, p.runs(id, f.in(`git config remote.origin.url; GIT_TRACE_CURL=1 GIT_CURL_VERBOSE=1 git fetch >trace 2>&1 && echo fetched; grep -ci '200 ok' trace`)), f.url+"/ada/engine.git", "fetched")
	says(t, p.runs(id, f.in(`curl -sS -d '{"operation":"download","objects":[]}' GATE/ada/engine.git/info/lfs/objects/batch`)), "found with Basic ***")
	says(t, p.runs(id, f.in(`curl -sS -d '{"operation":"upload","objects":[]}' GATE/ada/other.git/info/lfs/objects/batch`)), "no other repository")
	says(t, p.runs(id, `mkdir dump; env >dump/env; cat /proc/*/environ >dump/environ 2>/dev/null; cat /proc/*/cmdline >dump/cmdline 2>/dev/null; git config --list --show-origin >dump/config; wc -c dump/*`), "total")

	p.nowhere(id, secrets)
	_, ledger, _ := p.raw("GET", "/api/conversations/"+id+"/egress", "")
	says(t, ledger, `git: write ada/engine`, `git: read ada/other`, `127.0.0.1`)
	if strings.Contains(ledger, gitgate.Name) {
		t.Errorf("the ledger names the gate: %s", ledger)
	}

	if code, text, _ := p.raw("PUT", "/api/conversations/"+id+"/egress", `{"mode":"off"}`); code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	says(t, p.runs(id, `git fetch`), `remote: deckhand: egress policy "off" allows nothing`)
}

// nowhere looks for secrets in everything that the sandbox and people can see.
func (p *person) nowhere(id string, secrets birds) {
	p.t.Helper()
	places := map[string][]byte{"the events": []byte(describe(p.events(id))), "the server's log": []byte(p.logs.String())}
	for i, a := range p.requests() {
		places[fmt.Sprintf("what the model was asked (%d)", i)] = a.Body
	}
	_, ledger, _ := p.raw("GET", "/api/conversations/"+id+"/egress", "")
	places["the ledger"] = []byte(ledger)
	files := 0
	err := filepath.WalkDir(filepath.Join(p.dir, "boxes", id), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrPermission) {
			return nil // the kernel's own folder below a mount, which only root can read
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		places[path] = text
		return err
	})
	if err != nil || files < 20 {
		p.t.Fatalf("%d files: %v", files, err)
	}
	for where, text := range places {
		if found := secrets.in(text); len(found) > 0 {
			p.t.Errorf("%s is in %s", found, where)
		}
	}
}

// A token is used from the moment it is stored, by its owner, and no longer than
// it is stored.
func TestTokensComeAndGo(t *testing.T) {
	t.Parallel()
	secrets := birds{}
	first, second := secrets.put("the first token"), secrets.put("the second token")
	f := newGitServer(t, first, "ada/engine")
	l := newGitLab(t, f)
	p := l.person(t, "owner", steps(), f.stores(first), `"git_user_name":"Grace Hopper","git_user_email":"grace@example.org"`)
	id := p.idle()
	list := f.in(`git ls-remote FORGE/ada/engine.git 2>&1; echo "status"=$?`)
	says(t, p.runs(id, list), "refs/heads/main", "status=0")
	says(t, p.runs(id, f.in(`cd /workspace && git clone -q FORGE/ada/engine.git && cd engine && git commit -q --allow-empty -m More && git push -q origin HEAD:any && echo "push"ed`)), "pushed")

	f.wants(second)
	says(t, p.runs(id, list), "remote: deckhand: the stored token for "+f.address()+" was not accepted", "status=128")
	p.set(f.stores(second))
	says(t, p.runs(id, list), "refs/heads/main", "status=0")
	p.set(`"secrets_store":{"provider_tokens":{"gitea":null}}`)
	says(t, p.runs(id, list), "no token is stored for "+f.url, "status=128")

	other := l.person(t, "other", steps())
	theirs := other.idle()
	p.set(f.stores(second))
	says(t, other.runs(theirs, f.in(`git ls-remote GATE/ada/engine.git 2>&1; echo "status"=$?`)), "no token is stored for "+f.url, "status=128")
	says(t, other.runs(theirs, list), "status=128")

	// Shells that begin later know of a token that was stored meanwhile.
	other.set(f.stores(second))
	other.lab.mind(other.name, steps(shell("kill -9 $$"), shell(list)))
	says(t, observed(t, other.ask(theirs, "Go on.", "awaiting_user_input"), "run"), "refs/heads/main", "status=0")
	p.nowhereSaid(id, secrets)
	other.nowhereSaid(theirs, secrets)
}

func (p *person) nowhereSaid(id string, secrets birds) {
	p.t.Helper()
	for where, text := range map[string]string{"the events": describe(p.events(id)), "the server's log": p.logs.String()} {
		if found := secrets.in([]byte(text)); len(found) > 0 {
			p.t.Errorf("%s is in %s", found, where)
		}
	}
}

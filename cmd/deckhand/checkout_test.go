package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/cli"
	"deckhand/internal/llm/llmtest"
)

// fill puts files on the main branch of a repository.
func (f *gitServer) fill(name string, files map[string]string) {
	f.t.Helper()
	work := f.t.TempDir()
	f.git("clone", "-q", f.path(name), work)
	for file, text := range files {
		at := filepath.Join(work, file)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			f.t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			f.t.Fatal(err)
		}
	}
	f.git("-C", work, "add", "-A")
	f.git("-C", work, "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "-q", "-m", "Fill")
	f.git("-C", work, "push", "-q", "origin", "HEAD:main")
}

// behind is the same forge behind a check: packs pass only if allow returns true.
func (f *gitServer) behind(t *testing.T, allow func(w http.ResponseWriter) bool) *gitServer {
	t.Helper()
	to, err := url.Parse(f.url)
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(to)
	pass.ErrorLog = log.New(io.Discard, "", 0) // clients that are killed are none of its business
	g := &gitServer{t: t, dir: f.dir, token: f.token}
	g.url = website(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/git-upload-pack") && !allow(w) {
			return
		}
		pass.ServeHTTP(w, r)
	})
	return g
}

// on begins a conversation on a repository.
func (p *person) on(repository, branch, text string) (string, error) {
	p.t.Helper()
	in := api.CreateConversation{Repository: api.Some(repository), GitProvider: api.Some("gitea")}
	if branch != "" {
		in.SelectedBranch = api.Some(branch)
	}
	if text != "" {
		in.InitialUserMsg = api.Some(text)
	}
	made, err := p.client.Create(p.t.Context(), in)
	if err == nil {
		p.t.Cleanup(func() { p.drop(made.ConversationID) })
	}
	return made.ConversationID, err
}

const cloneToken = "forge-token-0123456789"

// A conversation on a private repository: it is cloned before the model is
// asked, worked on in its folder, committed to by the configured author and
// pushed.
func TestConversationOnARepository(t *testing.T) {
	t.Parallel()
	f := newGitServer(t, cloneToken, "octo/app")
	f.fill("octo/app", map[string]string{"README.md": "Hello\n", ".openhands/setup.sh": "export COLOUR=blue\necho set up\n", ".openhands/microagents/repo.md": "Knots are tied twice here.\n"})
	l := newGitLab(t, f)
	p := l.person(t, "ada", steps(shell(`pwd; echo "colour $COLOUR"; git branch --show-current; echo more >> README.md; git commit -qam 'Say more'; git push -q origin HEAD; git log -1 --format='%an <%ae> %(trailers)'`)),
		f.stores(cloneToken), `"git_user_name":"Bot","git_user_email":"bot@example.org","email":"ada@example.org"`)
	id, err := p.on("octo/app", "", "Go on.")
	if err != nil {
		t.Fatal(err)
	}
	p.follow(id, 0, agentIs("awaiting_user_input"))
	story := p.events(id)
	got := observed(t, story, "run")
	says(t, got, "/workspace/app\n", "colour blue\n", "deckhand-", "Bot <bot@example.org> Co-authored-by: ada <ada@example.org>")
	branch := strings.Split(got, "\n")[2]
	says(t, f.git("-C", f.path("octo/app"), "log", "-1", "--format=%an: %s", branch), "Bot: Say more")
	says(t, saidIn(p.requests()[0]), "The repository octo/app is in /workspace/app, on the branch "+branch, "Knots are tied twice here.", "The working directory is /workspace/app.")
	if n := strings.Count(describe(story), `"content":"set up\n"`); n != 1 {
		t.Errorf("the set-up script is told of %d times:\n%s", n, describe(story))
	}
	changes, err := p.client.Changes(t.Context(), id)
	if err != nil || len(changes) != 0 { // all is pushed
		t.Errorf("%+v %v", changes, err)
	}
	if text := describe(story) + l.logs.String(); strings.Contains(text, cloneToken) {
		t.Error("the token is in an event or in the log")
	}
}

// A branch that is not there is said before anything is made.
func TestMissingBranch(t *testing.T) {
	t.Parallel()
	f := newGitServer(t, cloneToken, "octo/app")
	l := newGitLab(t, f)
	p := l.person(t, "bea", steps(shell("git branch --show-current; git rev-parse --abbrev-ref @{u}")), f.stores(cloneToken))
	_, err := p.on("octo/app", "nope", "Go on.")
	if codeOf(err) != api.CodeGitBranch || statusOf(err) != http.StatusBadRequest || !strings.Contains(err.Error(), "The repository octo/app has no branch nope.") {
		t.Errorf("%v", err)
	}
	if page, err := p.client.Conversations(t.Context(), nil); err != nil || len(page.Results) != 0 {
		t.Errorf("%+v %v", page, err)
	}
	id, err := p.on("octo/app", "main", "Go on.")
	if err != nil {
		t.Fatal(err)
	}
	p.follow(id, 0, agentIs("awaiting_user_input"))
	says(t, observed(t, p.events(id), "run"), "main\norigin/main")
}

// A clone that fails stops the conversation with the reason, and the model is
// not asked; the next start tries again, and the message is answered.
func TestFailedClone(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	down := true
	f := newGitServer(t, cloneToken, "octo/app").behind(t, func(w http.ResponseWriter) bool {
		mu.Lock()
		defer mu.Unlock()
		if down {
			http.Error(w, "We are closed.", http.StatusServiceUnavailable)
		}
		return !down
	})
	l := newGitLab(t, f)
	p := l.person(t, "cia", func(llmtest.Asked) llmtest.Reply { return llmtest.Reply{Text: "Here I am."} }, f.stores(cloneToken))
	id, err := p.on("octo/app", "", "Go on.")
	if err != nil {
		t.Fatal(err)
	}
	seen := p.follow(id, 0, agentIs("error"))
	got, err := p.client.Conversation(t.Context(), id)
	if err != nil || got.Status != "STOPPED" || len(p.requests()) != 0 {
		t.Errorf("%+v %v, and the model was asked %d times", got, err, len(p.requests()))
	}
	says(t, describe(seen), "The repository octo/app cannot be cloned", api.CodeGitClone)
	mu.Lock()
	down = false
	mu.Unlock()
	if code, text, _ := p.raw("POST", "/api/conversations/"+id+"/start", "{}"); code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	p.follow(id, seen[len(seen)-1].ID, func(it client.LegacyItem) bool { return it.Event != nil && it.Event.Message == "Here I am." })
	if code, text, _ := p.raw("GET", "/api/conversations/"+id+"/list-files", ""); code != http.StatusOK || !strings.Contains(text, `"app/"`) {
		t.Errorf("%d %s", code, text)
	}
}

// The server is killed while a clone is under way; the next one does it again.
func TestKilledWhileCloning(t *testing.T) {
	t.Parallel()
	f := newGitServer(t, cloneToken, "octo/app")
	asked, let := make(chan struct{}, 8), make(chan struct{})
	f = f.behind(t, func(http.ResponseWriter) bool { asked <- struct{}{}; <-let; return true })
	needLocal(t)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	args := append(withSandbox(t, "local"), "--egress-private", f.address())
	b, process := spawn(t, dir, args...)
	b.demo("scripted/demo")
	b.post("/api/settings", "{"+f.stores(cloneToken)+"}")
	made, err := b.client.Create(t.Context(), api.CreateConversation{Repository: api.Some("octo/app"), GitProvider: api.Some("gitea"), InitialUserMsg: api.Some("$ pwd; ls -1A ..")})
	if err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = process.Wait()
	close(let)
	b, _ = spawn(t, dir, args...)
	got := b.said(made.ConversationID, 0, "/workspace/app")
	var event struct{ Content string }
	if err := json.Unmarshal([]byte(got), &event); err != nil || !strings.Contains(event.Content, "/workspace/app\napp") || strings.Contains(event.Content, ".deckhand") {
		t.Errorf("%q %v", event.Content, err)
	}
	b.remove(made.ConversationID)
}

// deckhand run clones in the sandbox what is on the web, and by itself what is on
// this machine; other addresses it refuses.
func TestRunOnARepository(t *testing.T) {
	t.Parallel()
	f := newGitServer(t, cloneToken, "octo/app")
	f.fill("octo/app", map[string]string{"README.md": "Hello\n"})
	needLocal(t)
	d := newDesk(t, llmtest.Script(sh("cat README.md; pwd; git branch --show-current"), done("Read.")))
	b := serve(t, d.data)
	b.post("/api/settings", fmt.Sprintf(`{"llm_model":"openai/gpt-4o","llm_api_key":"sk-stored","llm_base_url":"%s/v1",%s}`, d.server.URL, f.stores(cloneToken)))
	b.stop()
	code, out, errs := d.run(append([]string{"run", "read it", "--repo", f.url + "/octo/app.git", "--branch", "main", "--egress-private", f.address()}, withSandbox(t, "local")...)...)
	if code != 0 || !strings.Contains(out, "Hello") || !strings.Contains(out, "/workspace\n") || !strings.Contains(out, "main") {
		t.Errorf("%d %s%s", code, out, errs)
	}
	if text, err := os.ReadFile(filepath.Join(d.dir, "app", "README.md")); err != nil || string(text) != "Hello\n" {
		t.Errorf("%q %v", text, err)
	}
	for _, address := range []string{"ext::sh -c true", "--upload-pack=x", "git://h/a/b", "https://u:p@h/a/b", "none"} {
		if code, _, errs := d.run("run", "go", "--repo="+address); code != cli.ExitUsage || !strings.Contains(errs, "--repo") || strings.Contains(errs, "u:p") {
			t.Errorf("%q: %d %s", address, code, errs)
		}
	}
}

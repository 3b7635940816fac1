package checkout_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deckhand/internal/checkout"
	"deckhand/internal/outbound"
	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/egress"
	"deckhand/internal/sandbox/local"
	"deckhand/internal/sandbox/sandboxtest"
	"deckhand/internal/session"
	"deckhand/internal/session/memlog"
	"deckhand/internal/soak"
)

// boxes is where the sandboxes of all tests lie: a driver looks the system over
// once and remembers what it found there.
var boxes string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "deckhand-checkout-")
	if err == nil {
		err = os.Chmod(dir, 0o755) // a sandbox's own user must get through
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	boxes = filepath.Join(dir, "boxes")
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) { os.RemoveAll(dir); os.Exit(code) }))
}

// forge is a git server on loopback: real git behind HTTP.
type forge struct {
	t   testing.TB
	dir string
	url string

	mu sync.Mutex
	// answers are given instead of git's, by the beginning of the path.
	answers map[string]http.HandlerFunc
}

func newForge(t *testing.T) *forge {
	t.Helper()
	f := &forge{t: t, dir: t.TempDir(), answers: map[string]http.HandlerFunc{}}
	backend := &cgi.Handler{Path: filepath.Join(strings.TrimSpace(f.git("", "--exec-path")), "git-http-backend"),
		Env: []string{"GIT_PROJECT_ROOT=" + f.dir, "GIT_HTTP_EXPORT_ALL=1"}, InheritEnv: []string{"PATH"}, Stderr: t.Output()}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		answer := f.answers[strings.SplitN(strings.TrimPrefix(r.URL.Path, "/octo/"), ".git", 2)[0]]
		f.mu.Unlock()
		if answer != nil {
			answer(w, r)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	f.url = s.URL
	return f
}

// answer replaces what is said of a repository.
func (f *forge) answer(name string, h http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[name] = h
}

// backend is what git itself answers.
func (f *forge) backend(w http.ResponseWriter, r *http.Request) {
	(&cgi.Handler{Path: filepath.Join(strings.TrimSpace(f.git("", "--exec-path")), "git-http-backend"),
		Env: []string{"GIT_PROJECT_ROOT=" + f.dir, "GIT_HTTP_EXPORT_ALL=1"}, InheritEnv: []string{"PATH"}, Stderr: f.t.Output()}).ServeHTTP(w, r)
}

func (f *forge) git(stdin string, args ...string) string {
	f.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return string(out)
}

func (f *forge) path(name string) string { return filepath.Join(f.dir, "octo", name+".git") }

// repository makes one with these files on main. Names that end in @ are links.
func (f *forge) repository(name string, files map[string]string) {
	f.t.Helper()
	work := f.t.TempDir()
	f.git("", "init", "-q", work)
	for file, text := range files {
		link, isLink := strings.CutSuffix(file, "@")
		at := filepath.Join(work, link)
		must(f.t, os.MkdirAll(filepath.Dir(at), 0o755))
		if isLink {
			must(f.t, os.Symlink(text, at))
		} else {
			must(f.t, os.WriteFile(at, []byte(text), 0o644))
		}
	}
	f.git("", "-C", work, "add", "-A")
	f.git("", "-C", work, "commit", "-q", "--allow-empty", "-m", "Begin")
	f.git("", "-C", work, "branch", "next")
	f.publish(work, name)
}

func (f *forge) publish(work, name string) {
	f.t.Helper()
	f.git("", "clone", "-q", "--bare", work, f.path(name))
	f.git("", "-C", f.path(name), "config", "uploadpack.allowFilter", "true")
	f.git("", "-C", f.path(name), "config", "http.receivepack", "true")
}

// raw makes a repository from a tree that git itself would not write: the names
// of files, or of folders if they end in a slash, which hold one file.
func (f *forge) raw(name string, entries ...string) {
	f.t.Helper()
	work := f.t.TempDir()
	f.git("", "init", "-q", work)
	hash := func(kind, text string) string {
		return strings.TrimSpace(f.git(text, "-C", work, "hash-object", "-t", kind, "-w", "--stdin", "--literally"))
	}
	object := func(id string) string {
		b, err := hex.DecodeString(id)
		must(f.t, err)
		return string(b)
	}
	blob := hash("blob", "#!/bin/sh\ntouch /tmp/owned /workspace/owned\n")
	folder := hash("tree", "100755 post-checkout\x00"+object(blob))
	var tree bytes.Buffer
	for _, e := range entries {
		if dir, ok := strings.CutSuffix(e, "/"); ok {
			tree.WriteString("40000 " + dir + "\x00" + object(folder))
		} else {
			tree.WriteString("100755 " + e + "\x00" + object(blob))
		}
	}
	commit := strings.TrimSpace(f.git("", "-C", work, "commit-tree", "-m", "Hostile", hash("tree", tree.String())))
	f.git("", "-C", work, "update-ref", "refs/heads/main", commit)
	f.publish(work, name)
}

// rig is a sandbox that may reach the forge, with its session.
type rig struct {
	t        *testing.T
	forge    *forge
	driver   *local.Driver
	sessions *session.Sessions
	log      *memlog.Log
	id       session.ID
	box      *sandbox.Sandbox
	handle   sandbox.Handle
	config   checkout.Config
	src      checkout.Source
	told     []sandbox.Progress
	// foreign says that sessions do not trust their repositories.
	foreign bool
}

// next is how many sessions there were.
var next int

func newRig(t *testing.T, f *forge, created session.Created) *rig {
	t.Helper()
	soak.NotShort(t, "starts sandboxes")
	next++
	id := session.ID(fmt.Sprintf("c%d", next))
	r := &rig{t: t, forge: f, id: id, log: memlog.New()}
	at, err := url.Parse(f.url)
	must(t, err)
	allow, err := outbound.ParseAllow(at.Host)
	must(t, err)
	proxy := egress.New(egress.Config{Policy: func(context.Context, string) (egress.Policy, error) { return egress.Policy{Mode: egress.Open}, nil }, AllowPrivate: allow})
	r.driver, err = local.New(local.Options{Dir: boxes, Runner: sandboxtest.Runner(t), Outward: proxy.Serve})
	if err == nil {
		err = r.driver.Possible()
	}
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("SKIPPED: there is no local sandbox: %v", err)
	}
	t.Cleanup(func() {
		if r.box != nil {
			r.box.Close()
		}
		must(t, r.driver.Destroy(context.WithoutCancel(t.Context()), sandbox.Handle{Driver: local.Name, ID: string(id)}))
		must(t, r.driver.Close())
		must(t, proxy.Close())
	})
	r.sessions = session.New(r.log)
	created.Owner, created.Trusted = "ann", !r.foreign
	_, err = r.sessions.Create(t.Context(), id, created, nil)
	must(t, err)
	r.src = checkout.Source{URL: f.url + "/" + created.Repository + ".git", Folder: checkout.Folder(created.Repository)}
	r.config = checkout.Config{Sessions: r.sessions, Source: func(context.Context, session.State) (checkout.Source, error) { return r.src, nil }}
	r.open()
	return r
}

// again is the same sandbox for another session, with nothing in it.
func (r *rig) again(t *testing.T, created session.Created) *rig {
	t.Helper()
	next++
	n := *r
	n.t, n.id, n.told = t, session.ID(fmt.Sprintf("c%d", next)), nil
	n.sh("cd /workspace && rm -rf ./* ./.[!.]*; exit")
	must(t, n.box.Begin(t.Context(), "."))
	created.Owner, created.Trusted = "ann", !r.foreign
	_, err := n.sessions.Create(t.Context(), n.id, created, nil)
	must(t, err)
	n.src = checkout.Source{URL: r.forge.url + "/" + created.Repository + ".git", Folder: checkout.Folder(created.Repository)}
	n.config.Source = func(context.Context, session.State) (checkout.Source, error) { return n.src, nil }
	return &n
}

// open starts the sandbox, or attaches to it, as a server does.
func (r *rig) open() {
	r.t.Helper()
	if r.box != nil {
		r.box.Close()
	}
	var err error
	r.box, r.handle, err = sandbox.Open(r.t.Context(), r.driver, sandbox.Spec{ID: string(r.id), Env: map[string]string{
		"no_proxy": "", "NO_PROXY": "", checkout.Coauthor: "Ann <ann@example.org>", sandbox.PathFirst: checkout.Programs, "PATH": os.Getenv("PATH"),
		"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org", "GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.org"}}, nil)
	must(r.t, err)
}

// reboot ends everything in the sandbox and starts it anew.
func (r *rig) reboot() {
	r.t.Helper()
	must(r.t, r.driver.Stop(r.t.Context(), r.handle))
	r.open()
}

func (r *rig) state() session.State {
	r.t.Helper()
	st, err := r.sessions.Load(r.t.Context(), r.id)
	must(r.t, err)
	return st
}

func (r *rig) prepare() error { return r.prepareIn(r.t.Context()) }

func (r *rig) prepareIn(ctx context.Context) error {
	return checkout.New(r.config).Prepare(ctx, r.state(), r.box, func(p sandbox.Progress) { r.told = append(r.told, p) })
}

// prepared is prepare when nothing may go wrong.
func (r *rig) prepared() session.State {
	r.t.Helper()
	must(r.t, r.prepare())
	return r.state()
}

var commands int

// sh runs a command in the agent's shell.
func (r *rig) sh(text string) string {
	r.t.Helper()
	commands++
	res, err := r.box.Exec(r.t.Context(), sandbox.Command{ID: fmt.Sprintf("t%d", commands), Text: text, Hard: time.Minute}, nil)
	must(r.t, err)
	return strings.TrimSpace(strings.ReplaceAll(res.Output, "\r", ""))
}

// clean fails unless the workspace is empty.
func (r *rig) clean() {
	r.t.Helper()
	found, err := r.box.List(r.t.Context(), sandbox.InWorkspace("."))
	must(r.t, err)
	for _, f := range found {
		r.t.Errorf("%s is left in the workspace", f.Name)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

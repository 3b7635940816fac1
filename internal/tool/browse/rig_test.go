package browse_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/host"
	"deckhand/internal/sandbox/local"
	"deckhand/internal/sandbox/sandboxtest"
	"deckhand/internal/soak"
	"deckhand/internal/tool"
	"deckhand/internal/tool/browse"
	"deckhand/internal/v0/form"
)

// siteFile is the program that serves the pages, built once for all tests.
var siteFile string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "site")
	if err != nil {
		panic(err)
	}
	siteFile = filepath.Join(dir, "site")
	build := exec.Command("go", "build", "-trimpath", "-o", siteFile, "./testdata/site")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the test's site: %v\n%s", err, out)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// needChromium leaves a test out where there is no browser.
func needChromium(t *testing.T) {
	t.Helper()
	soak.NotShort(t, "starts a browser")
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chromium-headless-shell"} {
		if _, err := exec.LookPath(name); err == nil {
			return
		}
	}
	const why = "no Chromium is installed; on Debian: apt-get install chromium"
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip("SKIPPED: " + why)
}

// driver makes a driver of a sort.
func driver(t *testing.T, sort string, out sandbox.Outward) sandbox.Driver {
	t.Helper()
	dir := filepath.Join(sandboxtest.Dir(t), "boxes")
	var d sandbox.Driver
	var err error
	if sort == local.Name {
		var l *local.Driver
		l, err = local.New(local.Options{Dir: dir, Runner: sandboxtest.Runner(t), Outward: out})
		d = l
		t.Cleanup(func() { l.Close() })
	} else {
		d, err = host.New(host.Options{Dir: dir, Runner: sandboxtest.Runner(t)})
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// rig is a session with a sandbox and the tool.
type rig struct {
	tool    *browse.Tool
	box     *sandbox.Sandbox
	handle  sandbox.Handle
	session string
	site    string // address of the pages, if they are served
}

var counter atomic.Int64

// open starts a sandbox.
func open(t *testing.T, d sandbox.Driver, tl *browse.Tool, session string) *rig {
	t.Helper()
	r := &rig{tool: tl, session: session}
	box, h, err := sandbox.Open(t.Context(), d, sandbox.Spec{ID: session}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.box, r.handle = box, h
	t.Cleanup(func() {
		tl.Forget(session)
		box.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if err := d.Destroy(ctx, h); err != nil {
			t.Error(err)
		}
	})
	return r
}

// serve starts the site inside the sandbox.
func (r *rig) serve(t *testing.T) {
	t.Helper()
	f, err := os.Open(siteFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := r.box.Write(t.Context(), sandbox.WriteParams{PathParams: sandbox.PathParams{Path: []byte(".site/site")}, Mode: 0o755}, f); err != nil {
		t.Fatal(err)
	}
	port := r.sh(t, `setsid .site/site .site/port .site/asked </dev/null >.site/log 2>&1 & while ! [ -s .site/port ]; do sleep 0.02; done; cat .site/port`)
	r.site = "http://127.0.0.1:" + port
}

// folder is where the session's browser keeps its things.
func (r *rig) folder() string {
	sum := sha256.Sum256([]byte(r.session))
	return "/tmp/deckhand-browser-" + hex.EncodeToString(sum[:8])
}

// sh runs a script in the sandbox.
func (r *rig) sh(t *testing.T, script string) string {
	t.Helper()
	p, err := r.box.Run(t.Context(), sandbox.Process{Args: []string{"/bin/sh", "-c", script}}, nil)
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return strings.TrimSpace(string(p.Stdout))
}

// call makes a call with the code.
func (r *rig) call(code string) tool.Call {
	args, _ := json.Marshal(map[string]string{"code": code})
	return tool.Call{ID: fmt.Sprintf("call-%d", counter.Add(1)), Args: args, Session: r.session, Up: true}
}

// use gives the sandbox to the tool.
func (r *rig) use(context.Context) (*sandbox.Sandbox, error) { return r.box, nil }

// run makes a call and decodes its details. SITE in the code is the site's address.
func (r *rig) run(t *testing.T, code string) (tool.Result, form.BrowseDetails) {
	t.Helper()
	return r.do(t, r.call(strings.ReplaceAll(code, "SITE", r.site)))
}

func (r *rig) do(t *testing.T, c tool.Call) (tool.Result, form.BrowseDetails) {
	t.Helper()
	res, err := r.tool.Run(t.Context(), r.use, c)
	if err != nil {
		t.Fatalf("%s: %v", c.Args, err)
	}
	var d form.BrowseDetails
	if len(res.Details) > 0 {
		if err := json.Unmarshal(res.Details, &d); err != nil {
			t.Fatal(err)
		}
	}
	return res, d
}

// ok makes a call that must succeed and returns its text.
func (r *rig) ok(t *testing.T, code string) string {
	t.Helper()
	res, _ := r.run(t, code)
	if res.Failed || res.Unknown {
		t.Fatalf("%s\n%s", code, res.Text)
	}
	return res.Text
}

// bid finds an element by the line that tells of it.
func bid(t *testing.T, text, line string) string {
	t.Helper()
	m := regexp.MustCompile(`\[(\d+)\] ` + line).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no element is %q in\n%s", line, text)
	}
	return m[1]
}

// has wants texts in what was told.
func has(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, w := range wanted {
		if !strings.Contains(text, w) {
			t.Errorf("there is no %q in\n%s", w, text)
		}
	}
}

// noWayOut is for sandboxes that need none.
func noWayOut(_ context.Context, _, _ string, c net.Conn) { c.Close() }

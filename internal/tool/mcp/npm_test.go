package mcp

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"deckhand/internal/sandbox/runner/spawn"
	"deckhand/internal/tool"
)

// Real servers, in the versions that the runner is tested with: what is
// installed for one test is there for all.
const (
	everything = "@modelcontextprotocol/server-everything"
	filesystem = "@modelcontextprotocol/server-filesystem"
	npmVersion = "2026.8.31"
)

// missing skips a test for people, and fails it where everything must be there.
func missing(t *testing.T, why string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(why, args...)
	}
	t.Skipf("SKIPPED: "+why, args...)
}

// script is the program of a real server. It is installed once for all tests on
// this machine; who comes while another installs it waits.
func script(t *testing.T, pkg string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED: real tool servers are left out of the short round")
	}
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			missing(t, "%s is not installed, so real tool servers cannot be tried: install Node.js 20 or newer", program)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		missing(t, "there is no cache folder to install tool servers into: %v", err)
	}
	dir := filepath.Join(cache, "deckhand-test", "mcp-"+npmVersion)
	at := filepath.Join(dir, "node_modules", pkg, "dist", "index.js")
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		missing(t, "tool servers cannot be installed: %v", err)
	}
	lock, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		missing(t, "tool servers cannot be installed: %v", err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err == nil {
		return at
	}
	half, err := os.MkdirTemp(filepath.Dir(dir), "half-") // half of an installation must not be taken for a whole one
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(half)
	output, err := os.Create(filepath.Join(half, "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	p, err := spawner.Start(spawn.Attr{Dir: half, Env: os.Environ(), Files: []*os.File{nil, output, output},
		Args: []string{"npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", half, everything + "@" + npmVersion, filesystem + "@" + npmVersion}})
	if err != nil {
		t.Fatal(err)
	}
	if st := p.Wait(); st.Code != 0 {
		words, _ := os.ReadFile(output.Name())
		missing(t, "npm cannot install tool servers, it %v:\n%s", st, words)
	}
	if err := os.Rename(half, dir); err != nil {
		t.Fatal(err)
	}
	return at
}

// website starts the real server on a port and gives a way to end it.
func website(t *testing.T, mode string, port int) (end func()) {
	t.Helper()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := spawner.Start(spawn.Attr{Args: []string{"node", script(t, everything), mode}, Dir: t.TempDir(),
		Env: append(os.Environ(), fmt.Sprint("PORT=", port)), Files: []*os.File{nil, out, out}})
	_ = out.Close()
	if err != nil {
		t.Fatal(err)
	}
	lines, up, gone := bufio.NewScanner(in), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for said := false; lines.Scan(); {
			if !said && strings.Contains(lines.Text(), fmt.Sprint(port)) {
				said = true
				close(up)
			}
		}
	}()
	ended := false
	end = func() {
		if ended {
			return
		}
		ended = true
		_ = p.Signal(syscall.SIGKILL)
		p.Wait()
		<-gone
		_ = in.Close()
	}
	t.Cleanup(end)
	select {
	case <-up:
	case <-gone:
		t.Fatal("the server ended before it listened")
	}
	return end
}

// freePort is one that nobody listens on.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func TestEverythingServer(t *testing.T) {
	for kind, where := range map[Kind][2]string{SSE: {"sse", "/sse"}, SHTTP: {"streamableHttp", "/mcp"}} {
		t.Run(string(kind), func(t *testing.T) {
			script(t, everything)
			port := freePort(t)
			end := website(t, where[0], port)
			r := newRig(t)
			s := r.set(Server{Kind: kind, Name: "everything", URL: fmt.Sprintf("http://127.0.0.1:%d%s", port, where[1])})
			good(t, r.run(r.named(s, "echo"), map[string]string{"message": "hello"}), "Echo: hello")
			image := r.run(r.named(s, "get-tiny-image"), nil)
			if image.Failed || len(image.Images) != 1 || !strings.HasPrefix(image.Images[0], "data:image/png;base64,") {
				t.Errorf("%.300v", image)
			}
			bad(t, r.run(r.named(s, "echo"), map[string]int{"message": 7}), "message")
			var shown []byte
			res := r.run(r.named(s, "trigger-long-running-operation"), map[string]float64{"duration": 0.2, "steps": 4}, func(c *tool.Call) {
				c.Live = func(b []byte) { shown = append(shown, b...) }
			})
			if res.Failed || !strings.Contains(string(shown), "/4") {
				t.Errorf("%+v %q", res, shown)
			}
			if kind == SSE {
				return
			}
			echo := r.named(s, "echo") // which has to find the server again
			end()
			website(t, where[0], port)
			good(t, r.run(echo, map[string]string{"message": "back"}), "Echo: back")
		})
	}
}

package mcp

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
	"deckhand/internal/sandbox/runner/mcp"
	"deckhand/internal/sandbox/runner/results"
	"deckhand/internal/secret"
	"deckhand/internal/tool"
)

// newBox is a sandbox of which only the tool servers exist.
func newBox(t *testing.T, dir string) *sandbox.Sandbox {
	t.Helper()
	done, err := results.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return boot(t, dir, done)
}

func boot(t *testing.T, dir string, done *results.Store) *sandbox.Sandbox {
	t.Helper()
	host := mcp.New(mcp.Config{Spawner: spawner, Results: done, Dir: dir, Env: os.Environ})
	handlers := host.Handlers()
	handlers["hello"] = func(context.Context, *rpc.Call) (any, error) { return sandbox.Info{}, nil }
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]net.Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socketpair")
		ends[i], err = net.FileConn(f)
		_ = f.Close()
		if err != nil {
			t.Fatal(err)
		}
	}
	peer, err := rpc.Accept(ends[1], rpc.Handlers{Calls: handlers})
	if err != nil {
		t.Fatal(err)
	}
	box, err := sandbox.Connect(t.Context(), sandbox.Link{Conn: ends[0]})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		box.Close()
		peer.Close()
		host.Close()
	})
	return box
}

// own is this binary as a tool server.
func own(t *testing.T, name string) Server {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The race detector waits a second at each exit unless it is told not to.
	return Server{Kind: Stdio, Name: name, Command: self, Args: []string{"-test.run=^$"},
		Env: map[string]secret.Secret{programVariable: key("yes"), "GORACE": key("atexit_sleep_ms=0")}}
}

func fixed(box *sandbox.Sandbox) tool.Box {
	return func(context.Context) (*sandbox.Sandbox, error) { return box, nil }
}

func TestProgramInTheSandbox(t *testing.T) {
	box := newBox(t, t.TempDir())
	r := newRig(t)
	r.box = fixed(box)
	w := serve(t, SHTTP, testServer())
	s := r.set(w.server("web"), own(t, "prog"), Server{Kind: Stdio, Name: "none", Command: "/no/such/program", Env: map[string]secret.Secret{"K": key("canary-7391")}})
	if got := toolNames(s.Tools(t.Context())); !slices.Equal(got, []string{"echo", "prog_echo"}) {
		t.Errorf("%v", got)
	}
	if st := r.reported(); st.Name != "none" || st.State != Failed || !strings.Contains(st.Error, "/no/such/program") || strings.Contains(st.Error, "canary") {
		t.Errorf("%+v", st)
	}
	echo := r.named(s, "prog_echo")
	res := r.run(echo, echoArgs{"hello"})
	good(t, res, "hello")
	if !strings.Contains(string(res.Details), `{"result":{"content":[{"type":"text","text":"hello"}]`) {
		t.Errorf("%s", res.Details)
	}
	// The same call again is not made again: the runner remembers it.
	again := func(c *tool.Call) { c.Again, c.Up = true, true }
	good(t, r.run(echo, echoArgs{"something else"}, again), "hello")
	// Another sandbox does not know the server; it is started there.
	r.box = fixed(newBox(t, t.TempDir()))
	good(t, r.run(echo, echoArgs{"elsewhere"}, func(c *tool.Call) { c.ID = "call-2" }), "elsewhere")
	r.set(w.server("web"))
	s.work.Wait()
	states, err := box.MCPStates(t.Context())
	if err != nil || len(states) != 2 { // it was started last in the other one
		t.Errorf("%+v %v", states, err)
	}
	other, _ := r.box(t.Context())
	if states, err := other.MCPStates(t.Context()); err != nil || len(states) != 0 {
		t.Errorf("it was not stopped: %+v %v", states, err)
	}
}

// A call whose sandbox died has an unknown outcome.
func TestProgramLost(t *testing.T) {
	state := t.TempDir()
	done, err := results.Open(state)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t)
	r.box = fixed(boot(t, t.TempDir(), done))
	s := r.set(own(t, "prog"))
	echo := r.named(s, "echo")
	if _, _, _, err := done.Begin("call-9", false); err != nil { // and then the runner died
		t.Fatal(err)
	}
	reopened, err := results.Open(state)
	if err != nil {
		t.Fatal(err)
	}
	r.box = fixed(boot(t, t.TempDir(), reopened))
	unknown(t, r.run(echo, echoArgs{"x"}, func(c *tool.Call) { c.ID, c.Again, c.Up = "call-9", true, true }))
}

// A sandbox that cannot be had is the loop's business during a call, and a
// failure of the server when the tools are asked for.
func TestNoSandbox(t *testing.T) {
	r := newRig(t)
	none := &sandbox.Unavailable{Reason: "There is no room for another sandbox."}
	r.box = func(context.Context) (*sandbox.Sandbox, error) { return nil, none }
	s := r.set(own(t, "prog"))
	if got := s.Tools(t.Context()); len(got) != 0 {
		t.Errorf("%v", toolNames(got))
	}
	if st := r.reported(); st.State != Failed || !strings.Contains(st.Error, "no room") {
		t.Errorf("%+v", st)
	}
	f := &foreign{server: s.all()[0], offer: offer{name: "echo"}, name: "echo"}
	if _, err := f.Run(t.Context(), r.box, tool.Call{ID: "c"}); err != error(none) {
		t.Error(err)
	}
}

func TestProgramTimeout(t *testing.T) {
	r := newRig(t)
	r.box = fixed(newBox(t, t.TempDir()))
	def := own(t, "prog")
	def.Timeout = time.Nanosecond
	res := r.run(r.named(r.set(def), "echo"), echoArgs{"x"})
	bad(t, res, "did not answer within")
	if !strings.Contains(string(res.Details), `"isError":true`) {
		t.Errorf("%s", res.Details)
	}
}

func TestFilesystemServer(t *testing.T) {
	dir := t.TempDir()
	r := newRig(t)
	r.box = fixed(newBox(t, dir))
	s := r.set(Server{Kind: Stdio, Name: "files", Command: "node", Args: []string{script(t, filesystem), dir}})
	file := filepath.Join(dir, "größe.txt")
	write := r.named(s, "write_file")
	if res := r.run(write, map[string]string{"path": file, "content": "one\n"}); res.Failed {
		t.Errorf("%+v", res)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "one\n" {
		t.Errorf("%q %v", b, err)
	}
	id := func(c *tool.Call) { c.ID = "read" }
	good(t, r.run(r.named(s, "read_text_file"), map[string]string{"path": file}, id), "one\n")
	bad(t, r.run(r.named(s, "read_text_file"), map[string]string{"path": "/etc/passwd"}, func(c *tool.Call) { c.ID = "steal" }), "denied")
	for _, tl := range s.Tools(t.Context()) {
		if sp := tl.Spec(); sp.ReadOnly || !strings.Contains(string(sp.Schema), `"type":"object"`) {
			t.Errorf("%+v", sp)
		}
	}
}

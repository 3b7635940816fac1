package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
	"deckhand/internal/sandbox/runner/results"
	"deckhand/internal/sandbox/runner/spawn"
)

// spawner is the only one, since it waits for all children of this process.
var spawner *spawn.Spawner

type suite struct{ *testing.M }

func (s suite) Run() int {
	var err error
	if spawner, err = spawn.New(spawn.Options{}); err != nil {
		fmt.Println(err)
		return 1
	}
	code := s.M.Run()
	left := children()
	spawner.Close()
	if len(left) > 0 {
		fmt.Println("processes were left behind:", left)
		return 1
	}
	return code
}

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeVariable); mode != "" {
		badServer(mode)
		return
	}
	goleak.VerifyTestMain(suite{m})
}

// children are the processes that this one has started.
func children() (left []string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue
		}
		_, after, _ := strings.Cut(string(stat), ") ")
		if f := strings.Fields(after); len(f) > 1 && f[1] == strconv.Itoa(os.Getpid()) {
			left = append(left, string(stat))
		}
	}
	return left
}

// box is a sandbox of which only the tool servers exist, with a client.
type box struct {
	*sandbox.Sandbox
	t         testing.TB
	host      *Host
	handlers  map[string]rpc.Handler
	workspace string
	state     string
	ids       atomic.Int64
	skew      atomic.Int64 // added to the host's clock
}

func open(t testing.TB) *box {
	t.Helper()
	b := &box{t: t, workspace: t.TempDir(), state: t.TempDir()}
	b.boot()
	return b
}

// boot makes a runner over what is stored, as after its death.
func (b *box) boot() {
	b.t.Helper()
	done, err := results.Open(b.state)
	if err == nil {
		err = done.SetKey(make([]byte, results.KeySize)) // every runner of a sandbox is given the same
	}
	if err != nil {
		b.t.Fatal(err)
	}
	env := func() []string { return append(os.Environ(), "FROM_THE_SANDBOX=yes", "WHICH=sandbox") }
	b.host = New(Config{Spawner: spawner, Results: done, Dir: b.workspace, Env: env})
	b.host.now = func() time.Time { return time.Now().Add(time.Duration(b.skew.Load())) }
	b.handlers = b.host.Handlers()
	b.handlers["hello"] = func(context.Context, *rpc.Call) (any, error) { return sandbox.Info{}, nil }
	b.handlers["ack"] = func(_ context.Context, c *rpc.Call) (any, error) {
		var p struct{ ID string }
		if err := c.Into(&p); err != nil {
			return nil, err
		}
		return nil, done.Ack(p.ID)
	}
	b.t.Cleanup(b.host.Close)
	b.Sandbox = b.attach()
}

// attach makes another connection.
func (b *box) attach() *sandbox.Sandbox {
	b.t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	var ends [2]net.Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socketpair")
		ends[i], err = net.FileConn(f)
		_ = f.Close()
		if err != nil {
			b.t.Fatal(err)
		}
	}
	peer, err := rpc.Accept(ends[1], rpc.Handlers{Calls: b.handlers})
	if err != nil {
		b.t.Fatal(err)
	}
	s, err := sandbox.Connect(b.t.Context(), sandbox.Link{Conn: ends[0]})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { s.Close(); peer.Close() })
	return s
}

// bad is our own server in some mode.
func bad(mode string) sandbox.MCPServer {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	env := map[string]string{modeVariable: mode, "WHICH": "server", "GORACE": "atexit_sleep_ms=0"} // the race detector waits a second at each exit
	return sandbox.MCPServer{Name: "bad", Command: self, Args: []string{"-test.run=^$"}, Env: env}
}

// start starts a server that must start.
func (b *box) start(s sandbox.MCPServer) sandbox.MCPState {
	b.t.Helper()
	st, err := b.MCPStart(b.t.Context(), s)
	if err != nil {
		b.t.Fatal(err)
	}
	return st
}

// call calls a tool of the bad server.
func (b *box) call(tool string, args any) sandbox.MCPResult {
	b.t.Helper()
	return b.callAs(sandbox.MCPCall{Tool: tool}, args)
}

func (b *box) callAs(c sandbox.MCPCall, args any) sandbox.MCPResult {
	b.t.Helper()
	if c.ID == "" {
		c.ID = "call " + strconv.FormatInt(b.ids.Add(1), 10)
	}
	if c.Server == "" {
		c.Server = "bad"
	}
	if args != nil {
		c.Args, _ = json.Marshal(args)
	}
	r, err := b.MCPCall(b.t.Context(), c)
	if err != nil {
		b.t.Error(err)
	}
	return r
}

// text is the first text of a result that must be good.
func (b *box) text(r sandbox.MCPResult) string {
	b.t.Helper()
	var result struct {
		Content []struct{ Type, Text string }
		IsError bool
	}
	if r.Error != "" || r.Lost {
		b.t.Errorf("the call failed: %+v", r)
		return ""
	}
	if err := json.Unmarshal(r.Result, &result); err != nil || len(result.Content) == 0 || result.IsError {
		b.t.Errorf("%s: %v", r.Result, err)
		return ""
	}
	return result.Content[0].Text
}

// only is the state of the only server.
func (b *box) only() sandbox.MCPState {
	b.t.Helper()
	all, err := b.MCPStates(b.t.Context())
	if err != nil || len(all) != 1 {
		b.t.Fatalf("%v, %v", all, err)
	}
	return all[0]
}

// until polls for a state that sends no signal.
func (b *box) until(what string, ok func(sandbox.MCPState) bool) sandbox.MCPState {
	b.t.Helper()
	giveUp := time.After(2 * time.Minute)
	for {
		st := b.only()
		if ok(st) {
			return st
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-giveUp:
			b.t.Fatalf("it never was so: %s: %+v", what, st)
		}
	}
}

// file is what a server has written.
func (b *box) file(name string) string {
	b.t.Helper()
	s, err := os.ReadFile(filepath.Join(b.workspace, name))
	if err != nil {
		b.t.Error(err)
	}
	return string(s)
}

// gate makes a pipe that a server waits at until it is opened.
func (b *box) gate(name string) (open func()) {
	b.t.Helper()
	path := filepath.Join(b.workspace, name)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		b.t.Fatal(err)
	}
	return func() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0) // waits for the server
		if err != nil {
			b.t.Error(err)
			return
		}
		f.Close()
	}
}

// alive is true while a process exists and is not a zombie.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}

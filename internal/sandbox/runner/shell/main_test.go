package shell

import (
	"context"
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
	left := (&Shells{sessions: map[int]struct{}{}}).victims(true)
	spawner.Close()
	if len(left) > 0 {
		fmt.Println("processes were left behind:", left)
		return 1
	}
	return code
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(suite{m}) }

// box is a sandbox of which only the shells exist, with a client.
type box struct {
	*sandbox.Sandbox
	t         testing.TB
	shells    *Shells
	config    Config
	workspace string
	ids       atomic.Int64
}

// open makes a box. Its environment may be changed.
func open(t testing.TB, env ...string) *box {
	t.Helper()
	dir := t.TempDir()
	b := &box{t: t, workspace: filepath.Join(dir, "workspace")}
	if err := os.Mkdir(b.workspace, 0o755); err != nil {
		t.Fatal(err)
	}
	if resolved, err := filepath.EvalSymlinks(b.workspace); err == nil {
		b.workspace = resolved
	}
	if len(env) == 0 {
		env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LANG=C.UTF-8"}
	}
	store, err := results.Open(filepath.Join(dir, "results"))
	if err == nil {
		err = store.SetKey(make([]byte, results.KeySize)) // every runner of a sandbox is given the same
	}
	if err != nil {
		t.Fatal(err)
	}
	b.config = Config{
		Spawner: spawner, Results: store, Dir: filepath.Join(dir, "state"), Output: filepath.Join(dir, "output"),
		Workspace: b.workspace, Env: func() []string { return env },
	}
	b.shells = b.make(b.config)
	b.Sandbox = connect(t, b.shells)
	return b
}

func (b *box) make(c Config) *Shells {
	b.t.Helper()
	s, err := New(c)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(s.Close)
	return s
}

// connect makes a client, as a server has it.
func connect(t testing.TB, s *Shells) *sandbox.Sandbox {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]net.Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket")
		if ends[i], err = net.FileConn(f); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	calls, raw := s.Handlers()
	calls["hello"] = func(context.Context, *rpc.Call) (any, error) {
		return sandbox.Info{Shell: s.Program(), Marks: s.Mark != nil}, nil
	}
	peer, err := rpc.Accept(ends[0], rpc.Handlers{Calls: calls, Raw: raw})
	if err != nil {
		t.Fatal(err)
	}
	client, err := sandbox.Connect(t.Context(), sandbox.Link{Conn: ends[1]})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		peer.Close()
	})
	return client
}

// do runs any command to its result.
func (b *box) do(c sandbox.Command, live func([]byte)) sandbox.Result {
	b.t.Helper()
	if c.ID == "" {
		c.ID = "call-" + strconv.FormatInt(b.ids.Add(1), 10)
	}
	r, err := b.Exec(b.t.Context(), c, live)
	if err != nil {
		b.t.Fatalf("%q: %v", c.Text, err)
	}
	if r.ID != c.ID {
		b.t.Errorf("the result of %q is of %q", c.ID, r.ID)
	}
	return r
}

// hung is when a test gives up on a command, so that it can say on which.
const hung = 5 * time.Minute

// run runs a command in the main shell until it ends.
func (b *box) run(text string) sandbox.Result {
	b.t.Helper()
	r := b.do(sandbox.Command{Text: text, Hard: hung}, nil)
	if r.Wait != "" || r.Refused != "" || r.Lost {
		b.t.Fatalf("%.200q did not run to its end: %+v", text, r)
	}
	return r
}

// gives runs a command and checks what it gives.
func (b *box) gives(text string, exit int, output string) sandbox.Result {
	b.t.Helper()
	r := b.run(text)
	if r.Exit != exit || r.Output != output {
		b.t.Errorf("%.200q gave %d and %.300q, wanted %d and %.300q", text, r.Exit, r.Output, exit, output)
	}
	return r
}

// begin starts a command that will not end, and returns when its output has the
// text.
func (b *box) begin(c sandbox.Command, until string) sandbox.Result {
	b.t.Helper()
	c.Soft = time.Millisecond
	r := b.do(c, nil)
	out := r.Output
	for !strings.Contains(out, until) {
		if r.Wait == "" {
			b.t.Fatalf("%q ended: %+v", c.Text, r)
		}
		r = b.do(sandbox.Command{Shell: c.Shell, Soft: 5 * time.Millisecond}, nil)
		out += r.Output
	}
	return r
}

// need skips a test without a program, but never where it counts.
func need(t testing.TB, program string) string {
	t.Helper()
	path, err := spawn.Look(spawn.Attr{Args: []string{program}, Dir: "/", Env: os.Environ()})
	if err == nil {
		return path
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is not there: %v", program, err)
	}
	t.Skipf("SKIPPED: %s is not installed", program)
	return ""
}

// inside is the main shell's process and what it runs.
func (b *box) inside() (*process, *job) {
	b.shells.mu.Lock()
	sh := b.shells.shells[""]
	b.shells.mu.Unlock()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.proc, sh.job
}

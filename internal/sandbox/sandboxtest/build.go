package sandboxtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"deckhand/internal/soak"
)

// The programs that the suite needs. Without a variable that names one it is built
// when the first test asks for it, and removed with the last.
var (
	runner = program{path: "cmd/runner", env: "DECKHAND_SUITE_RUNNER"}
	inside = program{path: "internal/sandbox/sandboxtest/helper", env: "DECKHAND_SUITE_HELPER"}
)

type program struct {
	path string // in the module
	env  string // names one that was built already

	mu    sync.Mutex
	users int
	dir   string
	err   error
}

// Runner is the path of the runner: the one that DECKHAND_SUITE_RUNNER names, or one
// that is built now. Every user may run it.
func Runner(t testing.TB) string { t.Helper(); return runner.get(t) }

// helper is the path of the program that runs inside.
func helper(t testing.TB) string { t.Helper(); return inside.get(t) }

// Programs is the environment in which a test program that is started by a test
// finds the programs that were built already. It may be where nothing can be built.
func Programs(t testing.TB) []string {
	t.Helper()
	return []string{runner.env + "=" + runner.get(t), inside.env + "=" + inside.get(t)}
}

func (p *program) get(t testing.TB) string {
	t.Helper()
	if path := os.Getenv(p.env); path != "" {
		return path
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.users++; p.users == 1 {
		p.dir, p.err = p.build()
	}
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.users--; p.users == 0 {
			_ = os.RemoveAll(p.dir)
		}
	})
	if p.err != nil {
		t.Fatal(p.err)
	}
	return filepath.Join(p.dir, filepath.Base(p.path))
}

func (p *program) build() (dir string, err error) {
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("finding the module's folder: %w", err)
	}
	if dir, err = os.MkdirTemp("", "sandboxtest-"); err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return dir, err
	}
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", filepath.Join(dir, filepath.Base(p.path)), "./"+p.path)
	build.Dir = strings.TrimSpace(string(module))
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("building %s: %w\n%s", p.path, err, out)
	}
	return dir, nil
}

var dirs sync.Map // by *testing.T

// Dir is a folder of the test's own: the same each time it is asked for, so that
// New can make a second driver over what the first one left.
func Dir(t *testing.T) string {
	t.Helper()
	if dir, ok := dirs.Load(t); ok {
		return dir.(string)
	}
	// Not t.TempDir: its path has the name of the test, and paths of sockets are short.
	dir, err := os.MkdirTemp("", "sbx-")
	must(t, err)
	must(t, os.Chmod(dir, 0o711))
	dirs.Store(t, dir)
	t.Cleanup(func() {
		dirs.Delete(t)
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("the driver left what cannot be removed: %v", err)
		}
	})
	return dir
}

// Name is a short name of the test's own, for what drivers call by names that
// others on this machine can see.
func Name(t *testing.T) string {
	t.Helper()
	return filepath.Base(Dir(t))
}

// Kill kills a process of this machine and returns when it is dead, for what
// Options.Kill has to do.
func Kill(t *testing.T, pid int) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	must(t, err)
	defer unix.Close(fd)
	must(t, unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0))
	for { // it is told to us by the descriptor becoming readable
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		if n > 0 {
			return
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
	}
}

// nobodyUID is the ID of the user without any rights.
const nobodyUID = 65534

// PutProgram writes a program that is about to be run. A process that is started concurrently
// would inherit the open file, and running the program would fail.
func PutProgram(t testing.TB, file string, program []byte) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(file, program, 0o755); err != nil {
		t.Fatal(err)
	}
}

// AsUser runs tests of this test program again, as an ordinary user, with some
// more variables in its environment. It is for drivers that root and others use
// differently.
func AsUser(t *testing.T, run string, env ...string) {
	t.Helper()
	soak.NotShort(t, "runs a whole suite")
	if os.Getuid() != 0 {
		skip(t, "only root can become another user; the tests themselves run as an ordinary user already")
	}
	dir, err := os.MkdirTemp("", "sbx-user-")
	must(t, err)
	defer os.RemoveAll(dir)
	must(t, os.Chown(dir, nobodyUID, nobodyUID))
	// The go command keeps the program where only root can go.
	self, err := os.ReadFile("/proc/self/exe")
	must(t, err)
	path := filepath.Join(dir, "tests")
	PutProgram(t, path, self)
	cmd := exec.CommandContext(t.Context(), path, "-test.v", "-test.run", run, "-test.timeout", "20m")
	if testing.Short() {
		cmd.Args = append(cmd.Args, "-test.short")
	}
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "TMPDIR="+dir, briefly+"=1")
	cmd.Env = append(append(cmd.Env, Programs(t)...), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyUID, Gid: nobodyUID}}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	t.Logf("as user %d:\n%s", nobodyUID, out.String())
	if err != nil {
		t.Fatalf("the tests do not pass as an ordinary user: %v", err)
	}
	if !strings.Contains(out.String(), "--- PASS") {
		t.Fatalf("no test is called %s", run)
	}
}

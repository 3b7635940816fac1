package spawn

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inherited is a file that was open before New, as if our parent had left it.
func inherited(t *testing.T) {
	t.Helper()
	fd, err := unix.Open("/dev/null", unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
}

func start(t *testing.T, o Options) *Spawner {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

var env = []string{"PATH=/usr/local/bin:/usr/bin:/bin"}

// out starts a program and gives what it wrote and how it ended.
func out(t *testing.T, s *Spawner, a Attr) (string, Status) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if a.Env == nil {
		a.Env = env
	}
	if a.Dir == "" {
		a.Dir = "/"
	}
	a.Files = append([]*os.File{nil, w, w}, a.Files...)
	p, err := s.Start(a)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), p.Wait()
}

func sh(script string) []string { return []string{"sh", "-c", script} }

func TestStart(t *testing.T) {
	inherited(t)
	s := start(t, Options{})
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	got, status := out(t, s, Attr{Args: sh("pwd; echo $A; cat; exit 3"), Dir: dir, Env: append(env, "A=b")})
	if got != dir+"\nb\n" || status != (Status{Code: 3}) || status.String() != "ended with exit code 3" {
		t.Errorf("gave %q and %v", got, status)
	}
	if _, status := out(t, s, Attr{Args: sh("kill -9 $$")}); status != (Status{Code: 137, Signal: syscall.SIGKILL}) || !strings.Contains(status.String(), "killed") {
		t.Errorf("a killed one gave %v", status)
	}
	// It has its files and nothing else of the test.
	t.Setenv("OURS", "secret")
	extra, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer extra.Close()
	got, _ = out(t, s, Attr{Args: []string{"ls", "/proc/self/fd"}, Files: []*os.File{extra}})
	if got != "0\n1\n2\n3\n4\n" { // the last is the folder itself
		t.Errorf("it has the files %q", got)
	}
	if got, _ = out(t, s, Attr{Args: []string{"env"}}); got != strings.Join(env, "\n")+"\n" {
		t.Errorf("it has the environment %q", got)
	}
}

// When memory is used up, the kernel kills started processes, not this one.
func TestStartedProcessesAreKilledFirst(t *testing.T) {
	s := start(t, Options{})
	if got, _ := out(t, s, Attr{Args: sh(`until test "$(cat /proc/self/oom_score_adj)" = 1000; do :; done; echo first`)}); got != "first\n" {
		t.Errorf("gave %q", got)
	}
}

func TestTerminalAndGroup(t *testing.T) {
	s := start(t, Options{})
	ids := func(pid int) (group, session int) {
		group, _ = unix.Getpgid(pid)
		session, _ = unix.Getsid(pid)
		return group, session
	}
	ours, _ := unix.Getsid(0)
	p, err := s.Start(Attr{Args: []string{"sleep", "1000"}, Env: env, Dir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	if group, session := ids(p.PID); group != p.PID || session != ours {
		t.Errorf("group %d, session %d, pid %d", group, session, p.PID)
	}
	_ = p.Signal(syscall.SIGTERM)
	if status := p.Wait(); status.Code != 143 {
		t.Errorf("ended with %v", status)
	}
	if err := p.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("signalling one that has ended: %v", err)
	}

	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	master := os.NewFile(uintptr(fd), "ptmx")
	defer master.Close()
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	p, err = s.Start(Attr{Args: sh("echo yes >/dev/tty; read x"), Env: env, Dir: "/", Files: []*os.File{tty, tty, tty}, TTY: true})
	if err != nil {
		t.Fatal(err)
	}
	if group, session := ids(p.PID); group != p.PID || session != p.PID {
		t.Errorf("group %d, session %d, pid %d", group, session, p.PID)
	}
	buf := make([]byte, 100)
	if n, err := master.Read(buf); err != nil || !strings.HasPrefix(string(buf[:n]), "yes") {
		t.Errorf("on its terminal: %q, %v", buf[:n], err)
	}
	_ = p.Signal(syscall.SIGKILL)
	p.Wait()
}

// A signal is for the whole group; with Together so is the end.
func TestTogether(t *testing.T) {
	s := start(t, Options{})
	for _, together := range []bool{true, false} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.Start(Attr{Args: sh("sleep 1000 & echo $!; exit 5"), Env: env, Dir: "/", Files: []*os.File{nil, w}, Together: together})
		w.Close()
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 100)
		n, err := r.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		child, _ := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
		if status := p.Wait(); status.Code != 5 {
			t.Errorf("ended with %v", status)
		}
		if !together {
			if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
				t.Errorf("what was left is gone: %v", err)
			}
		}
		// The end of the pipe is the end of the child that holds it.
		if _, err := io.ReadAll(r); err != nil {
			t.Error(err)
		}
		r.Close()
	}
}

// An orphan is ours, and is waited for.
func TestOrphans(t *testing.T) {
	s := start(t, Options{})
	got, _ := out(t, s, Attr{Args: sh(`sh -c 'while read -r _ _ _ p _ </proc/$$/stat; [ "$p" = "$0" ]; do :; done; echo $p' $$ & exit 0`)})
	if got != strconv.Itoa(os.Getpid())+"\n" {
		t.Errorf("an orphan's parent is %q, we are %d", got, os.Getpid())
	}
	for { // until it was waited for
		var info unix.Siginfo
		if err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); errors.Is(err, unix.ECHILD) {
			return
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	s := start(t, Options{})
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			p, err := s.Start(Attr{Args: sh("exit " + strconv.Itoa(i)), Env: env, Dir: "/"})
			if err != nil {
				t.Error(err)
				return
			}
			if status := p.Wait(); status.Code != i {
				t.Errorf("%d ended with %v", i, status)
			}
			_ = p.Signal(syscall.SIGKILL)
		})
	}
	all.Wait()
}

// What takes rights away binds what is started, and not the rest of us.
func TestConfine(t *testing.T) {
	s := start(t, Options{Confine: func() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }})
	got, _ := out(t, s, Attr{Args: sh("grep NoNewPrivs /proc/self/status")})
	if strings.Fields(got)[1] != "1" {
		t.Errorf("what is started says %q", got)
	}
	own, err := os.ReadFile("/proc/self/status")
	if err != nil || !strings.Contains(string(own), "NoNewPrivs:\t0") {
		t.Error("this process is bound too")
	}
	no := errors.New("no")
	refused, err := New(Options{Confine: func() error { return no }})
	if err != nil {
		t.Fatal(err)
	}
	defer refused.Close()
	if err := refused.Ready(); !errors.Is(err, no) {
		t.Errorf("the spawner says %v", err)
	}
	if _, err := refused.Start(Attr{Args: []string{"/bin/true"}}); !errors.Is(err, no) {
		t.Errorf("it started something all the same: %v", err)
	}
}

func TestLook(t *testing.T) {
	s := start(t, Options{})
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"bin/tool": 0o755, "bin/data": 0o644, "tool": 0o755} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("#!/bin/sh\necho "+name+"\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ name, path, want string }{
		{"tool", dir + "/bin", "bin/tool\n"}, {"tool", "bin", "bin/tool\n"}, {"tool", "/nowhere:", "tool\n"},
		{"./tool", "/nowhere", "tool\n"}, {dir + "/tool", "", "tool\n"},
	} {
		if got, _ := out(t, s, Attr{Args: []string{c.name}, Dir: dir, Env: []string{"PATH=" + c.path}}); got != c.want {
			t.Errorf("%q in %q is %q, wanted %q", c.name, c.path, got, c.want)
		}
	}
	for _, args := range [][]string{{"data"}, {"none"}, {"./none"}} {
		if _, err := s.Start(Attr{Args: args, Dir: dir, Env: []string{"PATH=" + dir + "/bin"}}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q gave %v", args, err)
		}
	}
	if _, err := s.Start(Attr{}); err == nil {
		t.Error("nothing was started")
	}
	if _, err := s.Start(Attr{Args: []string{"/bin/sh"}, Dir: dir + "/none"}); !errors.Is(err, fs.ErrNotExist) {
		t.Error("it was started in a folder that does not exist")
	}
}

func TestClose(t *testing.T) {
	s := start(t, Options{})
	s.Close()
	s.Close()
	if _, err := s.Start(Attr{Args: []string{"/bin/true"}, Dir: "/"}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("starting afterwards: %v", err)
	}
}

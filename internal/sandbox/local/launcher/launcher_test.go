package launcher

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox/local/box"
)

// This program is the launcher and the runner of its own tests. As a runner it
// waits for the end of its control connection.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[0] == "runner" {
		switch os.Args[1] {
		case Argument:
			if err := Serve(); err != nil {
				os.Exit(1)
			}
		case "box":
			_, _ = unix.Read(box.ControlFD, make([]byte, 1))
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// starter starts runners as the driver does.
type starter struct {
	*Launcher
	t     *testing.T
	order Order
}

func newStarter(t *testing.T, program string) starter {
	t.Helper()
	l := New(open(t, program), false, slog.New(slog.NewTextHandler(t.Output(), nil)))
	t.Cleanup(l.Close)
	return starter{Launcher: l, t: t}
}

func (s starter) try() (*Process, *net.UnixConn, error) {
	s.t.Helper()
	theirs, ours, err := Pair()
	if err != nil {
		s.t.Fatal(err)
	}
	defer theirs.Close()
	null := open(s.t, os.DevNull)
	p, err := s.Start(s.t.Context(), s.order, Files{Control: theirs, Listener: null, Log: null}, ours)
	if err != nil {
		ours.Close()
		return nil, nil, err
	}
	s.t.Cleanup(func() { ours.Close(); p.Wait(); p.Close() })
	return p, ours, nil
}

func (s starter) start() (*Process, *net.UnixConn) {
	s.t.Helper()
	var p *Process
	var c *net.UnixConn
	var err error
	for range Attempts {
		if p, c, err = s.try(); !errors.Is(err, ErrLost) {
			break
		}
	}
	if errors.Is(err, unix.EPERM) && os.Getenv("CI") != "true" {
		s.t.Skip("SKIPPED: there are no user namespaces:", err)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return p, c
}

// parent is the process that has started another.
func parent(t *testing.T, pid int) int {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(string(bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

const self = "/proc/self/exe"

// Runners are started by a process of their own, which is replaced when it ends. The runners stay.
func TestHelperIsReplaced(t *testing.T) {
	s := newStarter(t, self)
	first, control := s.start()
	helper := parent(t, first.PID)
	if helper == os.Getpid() {
		t.Fatal("this process has started the runner itself")
	}
	if err := syscall.Kill(helper, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-s.helper.ended
	second, _ := s.start()
	if now := parent(t, second.PID); now == helper || now == os.Getpid() {
		t.Errorf("process %d has started the second runner, %d the first, and this is %d", now, helper, os.Getpid())
	}
	if err := first.Signal(0); err != nil {
		t.Errorf("the first runner has ended with the process that started it: %v", err)
	}
	control.Close()
	first.Wait() // it hears that its server has gone
}

// A runner that ends is waited for: it does not stay as a zombie.
func TestRunnersAreReaped(t *testing.T) {
	s := newStarter(t, self)
	p, _ := s.start()
	helper := parent(t, p.PID)
	if err := p.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.Wait()
	// The next one is started after the first has been reported, so its number is free by then or soon.
	for range 1000 {
		q, c := s.start()
		c.Close()
		q.Wait()
		if _, err := os.Stat("/proc/" + strconv.Itoa(p.PID)); errors.Is(err, os.ErrNotExist) || parent(t, p.PID) != helper {
			return
		}
	}
	t.Error("a runner that was ended is still there")
}

// Where no helper can be had, runners are started by this process.
func TestWithoutHelper(t *testing.T) {
	s := newStarter(t, "/bin/true")
	p, _ := s.start()
	p.Wait()
	if s.get() != nil {
		t.Error("another helper is tried although they all end at once")
	}
}

// The helper ends with the one who has it.
func TestClose(t *testing.T) {
	s := newStarter(t, self)
	p, control := s.start()
	s.Close()
	if err := p.Signal(0); err != nil {
		t.Errorf("the runner has ended with the launcher: %v", err)
	}
	control.Close()
}

// A server that is killed leaves no groups of a spare.
func TestKilledServerLeavesNoGroups(t *testing.T) {
	s := newStarter(t, self)
	group := filepath.Join(t.TempDir(), "group")
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Fatal(err)
	}
	s.order = Order{Groups: []string{group}, Spare: true}
	_, control := s.start()
	if _, err := os.Stat(group); err != nil {
		t.Fatal(err)
	}
	h := s.helper
	control.Close()
	h.conn.Close()
	<-h.ended
	if _, err := os.Stat(group); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the group of the spare is still there (%v)", err)
	}
}

// stopHelper stops the process that has started a runner, and waits until it has stopped.
func stopHelper(t *testing.T, p *Process) (pid int) {
	t.Helper()
	pid = parent(t, p.PID)
	if err := errors.Join(syscall.Kill(pid, syscall.SIGSTOP), unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil)); err != nil {
		t.Fatal(err)
	}
	return pid
}

// A helper that is stopped is replaced, for all starts that wait for it.
func TestStoppedHelperIsReplaced(t *testing.T) {
	t.Parallel()
	s := newStarter(t, self)
	first, _ := s.start()
	h := s.helper
	stopped := stopHelper(t, first)
	var starts sync.WaitGroup
	for range 3 {
		starts.Go(func() {
			p, _, err := s.try()
			for errors.Is(err, ErrLost) {
				p, _, err = s.try()
			}
			if err != nil {
				t.Error(err)
				return
			}
			if now := parent(t, p.PID); now == stopped || now == os.Getpid() {
				t.Errorf("process %d has started a runner, the stopped one is %d, and this is %d", now, stopped, os.Getpid())
			}
		})
	}
	starts.Wait()
	<-h.ended
	if s.lost != 0 {
		t.Errorf("%d helpers are taken for lost after one was replaced", s.lost)
	}
}

// A start that is cancelled does not wait for a stopped helper, and Close does not either.
func TestCloseStoppedHelper(t *testing.T) {
	t.Parallel()
	s := newStarter(t, self)
	first, _ := s.start()
	h := s.helper
	stopHelper(t, first)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	theirs, ours, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	defer ours.Close()
	null := open(t, os.DevNull)
	if _, err := s.Start(ctx, Order{}, Files{Control: theirs, Listener: null, Log: null}, ours); !errors.Is(err, context.Canceled) || errors.Is(err, ErrLost) {
		t.Errorf("a cancelled start: %v", err)
	}
	if s.get() != h {
		t.Error("a cancelled start gave up the helper")
	}
	s.Close()
	<-h.ended
}

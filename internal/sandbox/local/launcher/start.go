package launcher

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox/local/box"
	"deckhand/internal/sandbox/local/cgroup"
)

// namespaces are what a sandbox has of its own.
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// Order says how to start a runner.
type Order struct {
	// User is the first of its users, 0 to have just the one that starts it.
	User uint32 `json:"user,omitempty"`
	// Users is how many it has.
	Users int         `json:"users,omitempty"`
	Loan  cgroup.Loan `json:"loan"`
	// Unified says that Files has a folder of the unified hierarchy.
	Unified bool `json:"unified,omitempty"`
	// Groups are its groups. Those of a spare, which waits for its setup and ends with the server, are removed by the helper then.
	Groups []string `json:"groups,omitempty"`
	Spare  bool     `json:"spare,omitempty"`
}

// Files are what a runner is started with. They are the caller's to close.
type Files struct {
	Control, Listener, Log *os.File
	// Group is the folder of its group in the unified hierarchy, nil if it has none.
	Group *os.File
}

// environment is what a runner sees before it is told more. One processor is enough for what is done one
// step after the other: a second would be woken for each step and find nothing to do.
var environment = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + box.Home, "LANG=C.UTF-8",
	"GOMAXPROCS=1", "GOGC=50", "GODEBUG=containermaxprocs=0,updatemaxprocs=0"}

// Process is a runner that was started.
type Process struct {
	PID int
	// Failed says why its limits do not hold.
	Failed error
	fd     int
	closed sync.Once
}

// Signal sends a signal to it, unless it has ended.
func (p *Process) Signal(sig syscall.Signal) error { return unix.PidfdSendSignal(p.fd, sig, nil, 0) }

// Wait waits until it has ended.
func (p *Process) Wait() {
	poll := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(poll, -1); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// Close lets go of it. It runs on.
func (p *Process) Close() { p.closed.Do(func() { unix.Close(p.fd) }) }

// timerSlack is by how many nanoseconds a runner may be woken late. With the usual 50 µs, the Go runtime looks after
// its threads so often while a command runs that this costs a quarter of the runner's processor time. Programs that the
// runner starts get the usual slack again.
const timerSlack = 1_000_000

// start starts a runner in new namespaces. It waits there for its setup. The caller waits for its end.
func start(o Order, f Files, program *os.File) (*Process, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	// The program is one of the files passed on: while these are arranged, any other
	// descriptor of the new process may be overwritten.
	files := []*os.File{null, f.Log, f.Log, f.Control, f.Listener, program}
	p := &Process{fd: -1}
	attr := &syscall.ProcAttr{Dir: "/", Env: environment, Sys: Attributes(o)}
	attr.Sys.PidFD = &p.fd
	for _, file := range files {
		attr.Files = append(attr.Files, file.Fd())
	}
	if f.Group != nil {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(f.Group.Fd())
	}
	failed, err := o.Loan.Lend(func() (err error) {
		runtime.LockOSThread() // a process inherits the timer slack of the thread that starts it
		defer runtime.UnlockOSThread()
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, timerSlack, 0, 0, 0)
		p.PID, err = syscall.ForkExec("/proc/self/fd/"+strconv.Itoa(box.ProgramFD), []string{"runner", "box"}, attr)
		return err
	})
	runtime.KeepAlive(f)
	if err != nil {
		return nil, fmt.Errorf("starting the runner in namespaces of its own: %w", err)
	}
	p.Failed = failed
	return p, nil
}

// Attributes returns the users and the namespaces that a runner gets.
func Attributes(o Order) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Cloneflags: namespaces, Setsid: true}
	if o.User == 0 {
		a.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
		return a
	}
	a.UidMappings = []syscall.SysProcIDMap{{HostID: int(o.User), Size: o.Users}}
	a.GidMappings = a.UidMappings
	a.GidMappingsEnableSetgroups = true // to leave the groups of the server's user
	a.Credential = &syscall.Credential{}
	return a
}

// Package spawn starts and reaps all processes of a sandbox.
//
// Processes are started by an operating-system thread that has dropped its privileges (see Options.Confine): its
// children inherit that and cannot regain them. A second thread is for processes without network access. The runner's
// other threads keep their privileges, so that its files are out of reach for its children.
//
// The runner inherits every orphan, so all children are waited for in one place.
package spawn

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox/runner/confine"
)

// Options configure a Spawner.
type Options struct {
	// Confine is called once on each of the threads that start processes; it drops privileges.
	// nil drops nothing.
	Confine func() error
}

// Attr says what to start. The process gets exactly these files and this
// environment, nothing of the runner's own.
type Attr struct {
	Args []string // Args[0] is a path, or a name that Env's PATH finds
	Dir  string
	Env  []string
	// Files are its descriptors 0, 1, 2, …; nil entries are /dev/null.
	Files []*os.File
	// TTY makes descriptor 0 its controlling terminal, in a session of its own.
	// Otherwise it leads a process group of its own.
	TTY bool
	// Together kills what is left of its group when it ends.
	Together bool
	// Offline keeps the process, and all that it starts, from opening sockets.
	Offline bool
	// Shrink keeps the process, and all that it starts, from making and writing files.
	Shrink bool
}

// Status is how a process ended.
type Status struct {
	// Code is the exit code, or 128 and the signal's number.
	Code   int
	Signal syscall.Signal // 0 if none ended it
}

func (s Status) String() string {
	if s.Signal != 0 {
		return "ended by signal " + s.Signal.String()
	}
	return fmt.Sprintf("ended with exit code %d", s.Code)
}

// Process is one that was started.
type Process struct {
	PID      int
	together bool
	done     chan struct{}
	status   Status
	gone     sync.RWMutex // held for writing while it is reaped, so that a reused number is never signalled
	over     bool
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for its end.
func (p *Process) Wait() Status {
	<-p.done
	return p.status
}

// Signal sends a signal to the process and its group. An ended one is left alone.
func (p *Process) Signal(sig syscall.Signal) error {
	p.gone.RLock()
	defer p.gone.RUnlock()
	if p.over {
		return os.ErrProcessDone
	}
	if err := syscall.Kill(-p.PID, sig); err == nil || !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return syscall.Kill(p.PID, sig)
}

// Spawner starts processes.
type Spawner struct {
	work chan func()
	// offline starts the thread for processes without sockets when it is first needed.
	offline func() (chan func(), error)
	// shrink starts the one for processes that may only read and delete.
	shrink func() (chan func(), error)
	sigs   chan os.Signal
	quit   chan struct{}
	close  sync.Once
	done   sync.WaitGroup

	ready  chan struct{} // closed when failed is known
	failed error

	mu       sync.Mutex // held from fork until the process is known, so that it is not reaped unknown
	children map[int]*Process
}

// New makes a Spawner. There can be only one in a process, since it waits for
// all children. The thread gets ready by itself; see Ready.
func New(o Options) (*Spawner, error) {
	// What this process was itself started with is not for those it starts. All
	// that is opened later is marked so from the beginning.
	_ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	// Orphans come to us also when we are not process 1.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	s := &Spawner{work: make(chan func()), sigs: make(chan os.Signal, 1), quit: make(chan struct{}), ready: make(chan struct{}), children: map[int]*Process{}}
	signal.Notify(s.sigs, syscall.SIGCHLD)
	ready := make(chan error, 1)
	s.done.Go(func() { s.thread(s.work, o.Confine, ready) })
	s.offline = sync.OnceValues(func() (chan func(), error) { return s.startOther(o.Confine, denySockets) })
	s.shrink = sync.OnceValues(func() (chan func(), error) { return s.startOther(o.Confine, confine.Shrink) })
	s.done.Go(func() {
		s.failed = <-ready
		close(s.ready)
	})
	s.done.Go(s.reap)
	return s, nil
}

// Ready waits until the thread is confined, and says why it cannot be. Nothing
// is started before.
func (s *Spawner) Ready() error {
	<-s.ready
	return s.failed
}

// startOther starts a thread for processes with less rights. It cannot be the usual
// one, since a thread cannot take back what it has given up.
func (s *Spawner) startOther(usual, deny func() error) (chan func(), error) {
	work, ready := make(chan func()), make(chan error, 1)
	s.done.Go(func() {
		s.thread(work, func() error {
			if usual != nil {
				if err := usual(); err != nil {
					return err
				}
			}
			return deny()
		}, ready)
	})
	return work, <-ready
}

// usualSlack is the timer slack of programs on Linux in nanoseconds. The runner itself may have more.
const usualSlack = 50_000

// thread starts what it is given, and nothing else runs on it.
func (s *Spawner) thread(work <-chan func(), confine func() error, ready chan<- error) {
	// It is not unlocked, so it ends with this goroutine and is never reused.
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		// The first thread stands for the whole process: what may be done to it may
		// be done to us, and what it has given up seems given up by us. While we hold
		// it, another goroutine is on another thread.
		other := make(chan error, 1)
		s.done.Go(func() { s.thread(work, confine, other) })
		ready <- <-other
		runtime.UnlockOSThread()
		return
	}
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, usualSlack, 0, 0, 0) // of what this thread starts
	if confine != nil {
		if err := confine(); err != nil {
			ready <- err
			return
		}
	}
	ready <- nil
	for {
		select {
		case f := <-work:
			f()
		case <-s.quit:
			return
		}
	}
}

// Close ends the spawner, not the processes it started, which are not waited for any more.
func (s *Spawner) Close() {
	s.close.Do(func() {
		signal.Stop(s.sigs)
		close(s.quit)
	})
	s.done.Wait()
}

// Start starts a process.
func (s *Spawner) Start(a Attr) (*Process, error) {
	path, err := Look(a)
	if err != nil {
		return nil, err
	}
	if err := s.Ready(); err != nil {
		return nil, fmt.Errorf("nothing is started, because it could not be confined: %w", err)
	}
	work := s.work
	if a.Offline {
		if work, err = s.offline(); err != nil {
			return nil, fmt.Errorf("nothing is started, because the network could not be closed to it: %w", err)
		}
	}
	if a.Shrink {
		if work, err = s.shrink(); err != nil {
			return nil, fmt.Errorf("nothing is started, because it could not be kept from writing: %w", err)
		}
	}
	var p *Process
	finished := make(chan struct{})
	f := func() {
		defer close(finished)
		p, err = s.fork(path, a)
	}
	select {
	case work <- f:
		<-finished
		if err == nil {
			killFirst(p.PID)
		}
		return p, err
	case <-s.quit:
		return nil, os.ErrClosed
	}
}

// killFirst makes the kernel kill this process and its children when the sandbox is out of memory, rather than the runner,
// which would end all others. Some containers do not permit it.
func killFirst(pid int) {
	_ = os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", []byte("1000"), 0)
}

// CanStart reports whether another process can be started now: a limit may be reached.
func (s *Spawner) CanStart() bool {
	var err error
	finished := make(chan struct{})
	f := func() {
		defer close(finished)
		_, err = s.fork("/proc/self/missing", Attr{Args: []string{"missing"}, Dir: "/"})
	}
	select {
	case s.work <- f:
		<-finished
		return !errors.Is(err, syscall.EAGAIN)
	case <-s.quit:
		return true
	}
}

// Running lists the processes that were started and have not ended.
func (s *Spawner) Running() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.children))
}

func (s *Spawner) fork(path string, a Attr) (*Process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	files := make([]uintptr, max(3, len(a.Files)))
	for i := range files {
		files[i] = null.Fd()
		if i < len(a.Files) && a.Files[i] != nil {
			files[i] = a.Files[i].Fd()
		}
	}
	attr := &syscall.ProcAttr{Dir: a.Dir, Env: a.Env, Files: files, Sys: &syscall.SysProcAttr{Setpgid: !a.TTY, Setsid: a.TTY, Setctty: a.TTY}}
	s.mu.Lock()
	defer s.mu.Unlock()
	pid, err := syscall.ForkExec(path, a.Args, attr)
	runtime.KeepAlive(a.Files)
	if err != nil {
		return nil, &os.PathError{Op: "start", Path: a.Args[0], Err: err}
	}
	p := &Process{PID: pid, together: a.Together, done: make(chan struct{})}
	s.children[pid] = p
	return p, nil
}

// reap waits for every child, also those that were orphaned.
func (s *Spawner) reap() {
	for {
		select {
		case <-s.sigs:
		case <-s.quit:
			return
		}
		for s.reapOne() {
		}
	}
}

// reapOne takes one ended child and says whether there may be more.
func (s *Spawner) reapOne() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Look first, so that a process that may be signalled is marked before its number is free again.
	pid, err := ended()
	if err != nil || pid == 0 {
		return errors.Is(err, syscall.EINTR)
	}
	p := s.children[pid]
	if p != nil {
		p.gone.Lock()
		defer p.gone.Unlock()
		if p.together { // now, while its number cannot be reused
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		}
	}
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &ws, 0, nil); err != nil {
		return true
	}
	if p == nil {
		return true
	}
	p.over = true
	p.status = Status{Code: ws.ExitStatus()}
	if ws.Signaled() {
		p.status = Status{Code: 128 + int(ws.Signal()), Signal: ws.Signal()}
	}
	delete(s.children, pid)
	close(p.done)
	return true
}

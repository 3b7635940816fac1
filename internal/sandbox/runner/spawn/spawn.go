// Package spawn starts every process of a sandbox, and reaps them all.
//
// Processes are started by one operating-system thread that has given up its
// rights first (see Options.Confine): what it starts inherits that and cannot
// get more. The runner's other threads keep theirs, so that its own files are
// out of reach for what it starts.
//
// The runner is usually process 1 of its sandbox and inherits every orphan, so
// all children are waited for in one place.
package spawn

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
)

// Options configure a Spawner.
type Options struct {
	// Confine is called once on the thread that will start all processes; it
	// takes away what they shall not have. nil takes away nothing.
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
	PID    int
	done   chan struct{}
	status Status
	gone   sync.RWMutex // held for writing while it is reaped, so that nobody signals a reused number
	over   bool
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
	sigs chan os.Signal
	quit chan struct{}
	done sync.WaitGroup

	mu       sync.Mutex // held from fork until the process is known, so that it is not reaped unknown
	children map[int]*Process
}

// New makes a Spawner. There can be only one in a process, since it waits for
// all children.
func New(o Options) (*Spawner, error) {
	s := &Spawner{work: make(chan func()), sigs: make(chan os.Signal, 1), quit: make(chan struct{}), children: map[int]*Process{}}
	signal.Notify(s.sigs, syscall.SIGCHLD)
	ready := make(chan error, 1)
	s.done.Go(func() {
		// The thread is not unlocked, so it ends with this goroutine and nobody
		// else ever runs on it.
		runtime.LockOSThread()
		if o.Confine != nil {
			if err := o.Confine(); err != nil {
				ready <- err
				return
			}
		}
		ready <- nil
		for {
			select {
			case f := <-s.work:
				f()
			case <-s.quit:
				return
			}
		}
	})
	if err := <-ready; err != nil {
		signal.Stop(s.sigs)
		return nil, err
	}
	s.done.Go(s.reap)
	return s, nil
}

// Close ends the spawner, not what it started.
func (s *Spawner) Close() {
	signal.Stop(s.sigs)
	close(s.quit)
	s.done.Wait()
}

// Start starts a process.
func (s *Spawner) Start(a Attr) (*Process, error) {
	if len(a.Args) == 0 {
		return nil, errors.New("nothing to start")
	}
	path, err := look(a)
	if err != nil {
		return nil, err
	}
	var p *Process
	finished := make(chan struct{})
	f := func() {
		defer close(finished)
		p, err = s.fork(path, a)
	}
	select {
	case s.work <- f:
		<-finished
		return p, err
	case <-s.quit:
		return nil, os.ErrClosed
	}
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
	if err != nil {
		return nil, &os.PathError{Op: "start", Path: a.Args[0], Err: err}
	}
	p := &Process{PID: pid, done: make(chan struct{})}
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

package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// Loan is how a thread gets into a group and back, for hierarchies of their own. In the unified
// one, which does not know groups of threads, a process is born into V2 by itself.
type Loan struct {
	Enter []string `json:"enter,omitempty"`
	Back  []string `json:"back,omitempty"`
}

// Loan returns the way into a group and back into that of this process.
func (p *Parent) Loan(g *Group) Loan {
	enter := slices.DeleteFunc(slices.Clone(g.Dirs), func(dir string) bool { return dir == g.V2 })
	return Loan{Enter: enter, Back: p.own}
}

// Lend runs start on a thread that is in the group, so that a process that it
// starts is born there. Putting one there later would make the kernel stop all
// processes of the machine from starting others, which it takes milliseconds to
// prepare; a thread that moves by itself does not. failed says why limits do not hold.
//
// It is never the first thread of this process: that one stands for the whole,
// whose memory would count as the group's.
func (l Loan) Lend(start func() error) (failed, err error) {
	type outcome struct{ failed, err error }
	done := make(chan outcome, 1)
	lend := func() {
		failed, err := l.lend(start)
		done <- outcome{failed, err}
	}
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != os.Getpid() {
			lend()
			return
		}
		defer runtime.UnlockOSThread()
		other := make(chan struct{})
		go func() { // on another thread, since this one is held
			defer close(other)
			runtime.LockOSThread()
			lend()
		}()
		<-other
	}()
	o := <-done
	return o.failed, o.err
}

// lend does it on the calling thread, which is locked and unlocked again when
// it is back. If it is not, it ends with its goroutine, and leaves the group so.
func (l Loan) lend(start func() error) (failed, err error) {
	for _, dir := range l.Enter {
		failed = errors.Join(failed, write(dir, "tasks", "0"))
	}
	if failed != nil {
		failed = fmt.Errorf("putting a thread into its group: %w", failed)
	}
	err = start()
	back := true
	for _, dir := range l.Back {
		back = goBack(dir) == nil && back
	}
	if back {
		runtime.UnlockOSThread()
	}
	return failed, err
}

// ways are the files by which threads go back, by folder. They are of this process's own groups,
// so they stay, and are opened once.
var ways sync.Map

// goBack puts the calling thread into a group of this process.
func goBack(dir string) error {
	way, ok := ways.Load(dir)
	if !ok {
		f, err := os.OpenFile(filepath.Join(dir, "tasks"), os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		if way, ok = ways.LoadOrStore(dir, f); ok {
			f.Close()
		}
	}
	_, err := way.(*os.File).WriteAt([]byte("0"), 0)
	return err
}

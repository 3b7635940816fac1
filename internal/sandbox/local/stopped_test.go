package local

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"deckhand/internal/sandbox"
)

// journal is a log that can be read while it is written.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) count(text string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Count(j.text.String(), text)
}

// processState returns the state and the parent of a process, "" if it has ended.
func processState(pid int) (state string, parent int) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil {
		_, _ = fmt.Sscan(string(stat[bytes.LastIndexByte(stat, ')')+1:]), &state, &parent)
	}
	return state, parent
}

// stopProcess stops a process until the test ends, and waits until it has stopped.
func stopProcess(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // if it was not ended, which is an error, the rest of the test must not wait for it
		if state, _ := processState(pid); state == "T" {
			t.Errorf("process %d is still stopped", pid)
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	})
	for range 1_000_000 {
		if state, _ := processState(pid); state == "T" {
			return
		}
	}
	t.Fatalf("process %d does not stop", pid)
}

// launcherOf returns the process that has started a sandbox.
func launcherOf(t *testing.T, d *Driver, id string) int {
	t.Helper()
	m, err := readMeta(filepath.Join(d.dir, id))
	if err != nil {
		t.Fatal(err)
	}
	_, launcher := processState(m.PID)
	if launcher == os.Getpid() || launcher == 0 {
		t.Fatal("the sandbox was started by this process itself")
	}
	return launcher
}

// soon fails the test if something takes much longer than what is waited for in it.
func soon(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal(what, "does not end")
	}
}

// awaitFile waits until a file with a name of the pattern exists.
func awaitFile(t *testing.T, pattern string) {
	t.Helper()
	for range 1_000_000 {
		if names, err := filepath.Glob(pattern); err != nil || len(names) > 0 {
			return
		}
	}
	t.Fatalf("there is no %s", pattern)
}

// The process that starts sandboxes may be stopped or hang: it is replaced, and sandboxes start.
func TestLauncherIsStopped(t *testing.T) {
	t.Parallel()
	var log journal
	d := newDriver(t, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	start(t, d, sandbox.Spec{ID: "first"})
	d.spare.work.Wait() // the next one is started already
	stopped := launcherOf(t, d, "first")
	stopProcess(t, stopped)
	soon(t, "starting sandboxes", func() {
		for i := range 2 {
			if _, err := d.Start(t.Context(), sandbox.Spec{ID: fmt.Sprint("other", i)}, nil); err != nil {
				t.Error(err)
			}
		}
	})
	other, _ := start(t, d, sandbox.Spec{ID: "other1"})
	if got := sh(t, other, works); got != "fine" {
		t.Errorf("inside: %s", got)
	}
	if now := launcherOf(t, d, "other1"); now == stopped {
		t.Error("the stopped process has started it")
	}
	if n := log.count("the process that starts sandboxes"); n != 1 || log.count("did not answer") != 1 {
		t.Errorf("the log mentions it %d times:\n%s", n, log.text.String())
	}
}

// A runner that was started in advance may be stopped or hang: it is ended, and another one started.
func TestSpareIsStopped(t *testing.T) {
	t.Parallel()
	var log journal
	d := newDriver(t, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	start(t, d, sandbox.Spec{ID: "first"})
	d.spare.work.Wait()
	spare := d.spare.place.child.process.PID
	stopProcess(t, spare)
	soon(t, "starting a sandbox", func() {
		if _, err := d.Start(t.Context(), sandbox.Spec{ID: "second"}, nil); err != nil {
			t.Error(err)
		}
	})
	second, _ := start(t, d, sandbox.Spec{ID: "second"})
	if got := sh(t, second, works); got != "fine" {
		t.Errorf("inside: %s", got)
	}
	if m, err := readMeta(filepath.Join(d.dir, "second")); err != nil || m.PID == spare {
		t.Errorf("it is process %d, the stopped one is %d: %v", m.PID, spare, err)
	}
	if n := log.count("in advance"); n != 1 || log.count("did not answer") != 1 {
		t.Errorf("the log mentions it %d times:\n%s", n, log.text.String())
	}
}

// A driver closes although the process that starts sandboxes and the one in advance are stopped, and a
// start that is cancelled ends at once.
func TestCloseWhileStopped(t *testing.T) {
	t.Parallel()
	d := newDriver(t)
	start(t, d, sandbox.Spec{ID: "first"})
	d.spare.work.Wait()
	launcher := launcherOf(t, d, "first")
	stopProcess(t, launcher)
	stopProcess(t, d.spare.place.child.process.PID)
	ctx, cancel := context.WithCancel(t.Context())
	var starts sync.WaitGroup
	for i := range 2 { // one takes what was started in advance, one asks for a new one
		progress := make(chan struct{})
		starts.Go(func() {
			id := fmt.Sprint("cancelled", i)
			if _, err := d.Start(ctx, sandbox.Spec{ID: id}, func(sandbox.Progress) { close(progress) }); err != context.Canceled {
				t.Errorf("%s: %v", id, err)
			}
		})
		<-progress
	}
	d.refillLater() // a start in advance
	for _, waits := range []string{"cancelled1", scrapPrefix + "*"} {
		awaitFile(t, filepath.Join(d.dir, waits, socketName)) // the last thing before the launcher is asked
	}
	cancel()
	soon(t, "closing", func() {
		starts.Wait()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	if state, _ := processState(launcher); state == "T" {
		t.Error("the stopped process is still there")
	}
}

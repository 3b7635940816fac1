package host_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/host"
	"deckhand/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) {
	dir := func(t *testing.T) string { return filepath.Join(sandboxtest.Dir(t), "boxes") }
	sandboxtest.Run(t, sandboxtest.Options{
		New: func(t *testing.T, _ sandbox.Outward) sandbox.Driver {
			d, err := host.New(host.Options{Dir: dir(t), Runner: sandboxtest.Runner(t)})
			if err != nil {
				t.Fatal(err)
			}
			return d
		},
		State: dir, Brief: true,
		Kill: func(t *testing.T, h sandbox.Handle) {
			sandboxtest.Kill(t, runnerOf(t, dir(t), h.ID))
		},
	})
}

// A runner whose folder was removed ends by itself.
func TestRunnerEndsWithItsFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(sandboxtest.Dir(t), "boxes")
	d, err := host.New(host.Options{Dir: dir, Runner: sandboxtest.Runner(t)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Start(t.Context(), sandbox.Spec{ID: "gone"}, nil); err != nil {
		t.Fatal(err)
	}
	pid := runnerOf(t, dir, "gone")
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := os.RemoveAll(filepath.Join(dir, "gone")); err != nil {
		t.Fatal(err)
	}
	const hang = 2 * 60 * 1000 // milliseconds
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, hang); n != 1 {
		_ = unix.Kill(pid, unix.SIGKILL)
		t.Errorf("the runner outlives its folder: %v", err)
	}
}

// A runner that was stopped by a signal cannot end what it has started. Stop does that, and
// does not wait long for the runner.
func TestStopOfAFrozenRunner(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(sandboxtest.Dir(t), "boxes")
	d, err := host.New(host.Options{Dir: dir, Runner: sandboxtest.Runner(t)})
	if err != nil {
		t.Fatal(err)
	}
	h, err := d.Start(t.Context(), sandbox.Spec{ID: "frozen"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Destroy(context.Background(), h) }()
	box, err := d.Attach(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	r, err := box.Exec(t.Context(), sandbox.Command{ID: "one", Text: "nohup sleep 1000 > /dev/null 2>&1 & echo pid=$!."}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, word, _ := strings.Cut(r.Output, "pid=")
	word, _, _ = strings.Cut(word, ".")
	left, err := strconv.Atoi(word)
	if err != nil {
		t.Fatalf("%q: %v", r.Output, err)
	}
	fd, err := unix.PidfdOpen(left, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Kill(runnerOf(t, dir, h.ID), unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := d.Stop(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 10_000); n != 1 {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		t.Errorf("a process outlives its sandbox: %v", err)
	}
}

// runnerOf is the process of a sandbox's runner.
func runnerOf(t *testing.T, dir, id string) int {
	t.Helper()
	var p struct{ PID int }
	b, err := os.ReadFile(filepath.Join(dir, id, "process.json"))
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p.PID
}

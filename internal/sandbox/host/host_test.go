package host_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

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
			var p struct{ PID int }
			b, err := os.ReadFile(filepath.Join(dir(t), h.ID, "process.json"))
			if err == nil {
				err = json.Unmarshal(b, &p)
			}
			if err != nil {
				t.Fatal(err)
			}
			sandboxtest.Kill(t, p.PID)
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
	var p struct{ PID int }
	b, err := os.ReadFile(filepath.Join(dir, "gone", "process.json"))
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := os.RemoveAll(filepath.Join(dir, "gone")); err != nil {
		t.Fatal(err)
	}
	const hang = 2 * 60 * 1000 // milliseconds
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, hang); n != 1 {
		_ = unix.Kill(p.PID, unix.SIGKILL)
		t.Errorf("the runner outlives its folder: %v", err)
	}
}

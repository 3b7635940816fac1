package local

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"deckhand/internal/sandbox"
	"deckhand/internal/soak"
)

// runnerFile is the test's runner, which has to be built without cgo: the race
// detector's binaries cannot give up rights on all threads.
var runnerFile string

func TestMain(m *testing.M) {
	if dir := os.Getenv(diesEnv); dir != "" {
		startAndDie(dir)
	}
	if runnerFile = os.Getenv(runnerEnv); runnerFile == "" {
		dir, err := os.MkdirTemp("", "runner")
		if err != nil {
			panic(err)
		}
		runnerFile = filepath.Join(dir, "runner")
		build := exec.Command("go", "build", "-trimpath", "-o", runnerFile, "./testdata/runner")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building the test's runner: %v\n%s", err, out)
			os.Exit(1)
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
	}
	goleak.VerifyTestMain(closing{m}, goleak.Cleanup(func(code int) {
		if os.Getenv(runnerEnv) == "" {
			os.RemoveAll(filepath.Dir(runnerFile))
		}
		os.Exit(code)
	}))
}

// closing closes the shared driver before it is looked for leaks.
type closing struct{ *testing.M }

func (c closing) Run() int {
	code := c.M.Run()
	if shared.driver != nil {
		shared.driver.Close()
		os.RemoveAll(shared.driver.dir)
	}
	return code
}

var shared struct {
	sync.Mutex
	driver *Driver
}

// sharedDriver is for tests that have no wishes about their driver.
func sharedDriver(t testing.TB) *Driver {
	t.Helper()
	soak.NotShort(t, "starts sandboxes")
	shared.Lock()
	defer shared.Unlock()
	if shared.driver == nil {
		dir, err := os.MkdirTemp("", "shared")
		if err != nil {
			t.Fatal(err)
		}
		if shared.driver, err = New(Options{Dir: dir, Runner: runnerFile}); err != nil {
			t.Fatal(err)
		}
	}
	return shared.driver
}

const (
	runnerEnv = "DECKHAND_TEST_RUNNER" // a runner that is built already
	diesEnv   = "DECKHAND_TEST_DIES"   // start a sandbox in this folder and die
)

// RunnerVariable names the runner of this package's own tests for a test program
// that cannot build it.
func RunnerVariable() string { return runnerEnv + "=" + runnerFile }

// newDriver makes a driver with a folder of its own.
func newDriver(t testing.TB, change ...func(*Options)) *Driver {
	t.Helper()
	return driverAt(t, t.TempDir(), change...)
}

func driverAt(t testing.TB, dir string, change ...func(*Options)) *Driver {
	t.Helper()
	soak.NotShort(t, "starts sandboxes")
	o := Options{Dir: dir, Runner: runnerFile, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
	for _, c := range change {
		c(&o)
	}
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.base.wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer d.Close()
		found, err := d.List(context.Background())
		if err != nil {
			t.Error(err)
		}
		for _, f := range found {
			if err := d.Destroy(context.Background(), f.Handle); err != nil {
				t.Error(err)
			}
		}
	})
	return d
}

// start opens a sandbox.
func start(t testing.TB, d *Driver, spec sandbox.Spec) (*sandbox.Sandbox, sandbox.Handle) {
	t.Helper()
	spec.Seal = make([]byte, 32)
	s, h, err := sandbox.Open(t.Context(), d, spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		if err := d.Destroy(context.Background(), h); err != nil {
			t.Error(err)
		}
	})
	return s, h
}

// sh runs a shell command inside and returns what it wrote, with its exit code if that is not 0.
func sh(t testing.TB, s *sandbox.Sandbox, script string) string {
	t.Helper()
	r, err := s.Run(t.Context(), sandbox.Process{Args: []string{"/bin/sh", "-c", script}}, nil)
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	out := strings.TrimRight(string(r.Stdout), "\n")
	if r.Exit != 0 {
		out += fmt.Sprintf(" (exit %d)", r.Exit)
	}
	return out
}

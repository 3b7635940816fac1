package docker_test

import (
	"context"
	"crypto/rand"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/moby/moby/client"
	"go.uber.org/goleak"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker"
	"deckhand/internal/sandbox/docker/dockertest"
	"deckhand/internal/sandbox/docker/names"
)

// runnerDir has the runner that all tests share.
var runnerDir string

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if runnerDir != "" {
			os.RemoveAll(runnerDir)
		}
		os.Exit(code)
	}))
}

var building sync.Mutex

// runner builds the stand-in once.
func runner(t testing.TB) string {
	t.Helper()
	building.Lock()
	defer building.Unlock()
	if runnerDir == "" {
		dir, err := os.MkdirTemp("", "runner")
		if err != nil {
			t.Fatal(err)
		}
		built, err := os.ReadFile(dockertest.Build(t, "./testdata/runner"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "runner"), built, 0o755); err != nil {
			t.Fatal(err)
		}
		runnerDir = dir
	}
	return filepath.Join(runnerDir, "runner")
}

// rig is a driver with an instance of its own, so that tests do not see each
// other's sandboxes; all of them go with the test.
type rig struct {
	*docker.Driver
	t       testing.TB
	options docker.Options
	engine  *client.Client
}

func newRig(t testing.TB, change ...func(*docker.Options)) *rig {
	t.Helper()
	host := dockertest.Engine(t)
	o := docker.Options{
		Host: host, Runner: runner(t), Image: dockertest.BusyboxImage(t),
		Prefix: "deckhand-test", Instance: "test-" + rand.Text(), Outward: answer,
	}
	for _, f := range change {
		f(&o)
	}
	r := &rig{t: t, options: o, engine: dockertest.Client(t)}
	r.Driver = r.second()
	t.Cleanup(func() {
		ctx := context.Background()
		found, err := r.List(ctx)
		if err != nil {
			t.Error(err)
		}
		for _, f := range found {
			if err := r.Destroy(ctx, f.Handle); err != nil {
				t.Error(err)
			}
		}
		left, err := r.engine.ContainerList(ctx, client.ContainerListOptions{All: true,
			Filters: make(client.Filters).Add("label", "deckhand.instance="+o.Instance)})
		if err != nil || len(left.Items) > 0 {
			t.Errorf("containers were left: %v, %v", left.Items, err)
		}
	})
	return r
}

// in is the same rig for a part of the test.
func (r *rig) in(t testing.TB) *rig {
	part := *r
	part.t = t
	return &part
}

// second is another driver of the same instance, as after a restart of the server.
func (r *rig) second() *docker.Driver {
	r.t.Helper()
	d, err := docker.New(r.options)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { d.Close() })
	return d
}

// answer is a way out that says whose it is.
func answer(_ context.Context, id, _ string, conn net.Conn) {
	_, _ = io.WriteString(conn, "out of "+id+"\n")
	conn.Close()
}

func newID() string { return "t_" + rand.Text()[:12] }

// open starts a sandbox and attaches to it.
func (r *rig) open(spec sandbox.Spec) (*sandbox.Sandbox, sandbox.Handle) {
	r.t.Helper()
	if spec.ID == "" {
		spec.ID = newID()
	}
	spec.Seal = make([]byte, 32)
	box, h, err := sandbox.Open(r.t.Context(), r.Driver, spec, nil)
	if err != nil {
		r.t.Fatalf("open: %v", err)
	}
	r.t.Cleanup(func() { box.Close() })
	return box, h
}

func (r *rig) attach(h sandbox.Handle) *sandbox.Sandbox {
	r.t.Helper()
	box, err := r.Attach(r.t.Context(), h)
	if err != nil {
		r.t.Fatalf("attach: %v", err)
	}
	r.t.Cleanup(func() { box.Close() })
	return box
}

// run runs a program and gives its result.
func (r *rig) run(box *sandbox.Sandbox, args ...string) sandbox.ProcessResult {
	r.t.Helper()
	got, err := box.Run(r.t.Context(), sandbox.Process{Args: args}, nil)
	if err != nil {
		r.t.Fatalf("run %q: %v", args, err)
	}
	return got
}

// sh runs a script that has to succeed and gives its output.
func (r *rig) sh(box *sandbox.Sandbox, script string) string {
	r.t.Helper()
	got := r.run(box, "/bin/sh", "-c", script)
	if got.Exit != 0 {
		r.t.Fatalf("sh -c %q: exit code %d, %s%s", script, got.Exit, got.Stdout, got.Stderr)
	}
	return strings.TrimSpace(string(got.Stdout))
}

func (r *rig) want(box *sandbox.Sandbox, script, want string) {
	r.t.Helper()
	if got := r.sh(box, script); got != want {
		r.t.Errorf("sh -c %q: %q, want %q", script, got, want)
	}
}

func (r *rig) names() names.Names {
	return names.Names{Prefix: r.options.Prefix, Instance: r.options.Instance}
}

func (r *rig) container(h sandbox.Handle) string { return r.names().Container(h.ID)[0] }
func (r *rig) volume(h sandbox.Handle) string    { return r.names().Workspace(h.ID)[0] }

package httpapi

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"deckhand/client"
	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/egress"
	"deckhand/internal/sandbox/host"
	"deckhand/internal/session"
	"deckhand/internal/soak"
	"deckhand/internal/workspace"
)

// sandboxRig is the API with real sandboxes behind it: runners as plain processes,
// and files in a folder that the test can look into.
type sandboxRig struct {
	*rig
	dir    string
	driver *host.Driver
	keeper *workspace.Keeper
	client *client.Client
	// forgotten is told of workspaces that were removed.
	forgotten chan session.ID
}

// spec is what a sandbox of a test is; it can be changed to one that cannot be had.
type specs struct {
	mu   sync.Mutex
	spec sandbox.Spec
}

func (s *specs) set(spec sandbox.Spec) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spec = spec
}

func (s *specs) get(context.Context, session.State) (sandbox.Spec, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spec, nil
}

func newSandboxRig(t *testing.T, tunes ...tune) *sandboxRig {
	t.Helper()
	return newSandboxRigWith(t, func(d *host.Driver) sandbox.Driver { return d }, &specs{}, tunes...)
}

func newSandboxRigWith(t *testing.T, wrap func(*host.Driver) sandbox.Driver, s *specs, tunes ...tune) *sandboxRig {
	t.Helper()
	soak.NotShort(t, "starts sandboxes")
	h := &sandboxRig{dir: t.TempDir(), forgotten: make(chan session.ID, 100)}
	program := runner(t)
	// Shells and git must not read the home folder of the user who runs the tests, nor write to it.
	t.Setenv("HOME", t.TempDir())
	driver, err := host.New(host.Options{Dir: h.dir, Runner: program})
	if err != nil {
		t.Fatal(err)
	}
	h.driver = driver
	h.rig = newRig(t, append([]tune{{config: func(c *Config) {
		h.keeper = workspace.New(workspace.Config{Driver: wrap(driver), Name: host.Name, Sessions: c.Conversations.Sessions, Index: c.Conversations.Index, Logger: c.Logger, Spec: s.get,
			Forgotten: func(_ context.Context, id session.ID) { h.forgotten <- id }})
		c.Conversations.Sessions.Watch(h.keeper)
		c.Files.Workspaces, c.Files.ServerPolicy = h.keeper, egress.Policy{Mode: egress.Open}
	}}}, tunes...)...)
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = h.keeper.Run(ctx)
	}()
	t.Cleanup(func() { // before the server is closed, which waits for its streams
		h.api.Close()
		cancel()
		<-over
		h.keeper.Close()
		found, err := driver.List(context.Background())
		for _, f := range found {
			err = errors.Join(err, driver.Destroy(context.Background(), f.Handle))
		}
		if err != nil {
			t.Error(err)
		}
		h.client.HTTP.CloseIdleConnections()
	})
	h.client = h.as("ada")
	h.settle("ada", "bob")
	return h
}

// as is a client of somebody's.
func (h *sandboxRig) as(user string) *client.Client { return client.New(h.base, h.keys[user]) }

// begun makes a conversation whose sandbox runs until the test ends or it is stopped.
func (h *sandboxRig) begun() (id string, box *sandbox.Sandbox) {
	h.t.Helper()
	id = h.create(`{}`)
	box, release, err := h.keeper.Use(h.t.Context(), session.ID(id))
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(release)
	return id, box
}

// stopped makes a conversation that has a workspace and was stopped.
func (h *sandboxRig) stopped() string {
	h.t.Helper()
	id := h.create(`{}`)
	box, release, err := h.keeper.Use(h.t.Context(), session.ID(id))
	if err != nil {
		h.t.Fatal(err)
	}
	release()
	h.stop(id, box)
	return id
}

// stop stops a conversation and waits until its sandbox is gone.
func (h *sandboxRig) stop(id string, box *sandbox.Sandbox) {
	h.t.Helper()
	if _, err := h.client.Stop(h.t.Context(), id); err != nil {
		h.t.Fatal(err)
	}
	<-box.Done()
	// It is being stopped; this waits until it is.
	if err := h.driver.Stop(h.t.Context(), sandbox.Handle{Driver: host.Name, ID: id}); err != nil {
		h.t.Fatal(err)
	}
	h.asleep(id)
}

// asleep fails if the sandbox of the conversation runs.
func (h *sandboxRig) asleep(id string) {
	h.t.Helper()
	found, err := h.driver.List(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	for _, f := range found {
		if f.Handle.ID == id && f.Running {
			h.t.Errorf("the sandbox of %s runs", id)
		}
	}
}

// path is where a file of a workspace is.
func (h *sandboxRig) path(id, name string) string { return filepath.Join(h.dir, id, "ws", name) }

// put writes a file of a workspace.
func (h *sandboxRig) put(id, name, content string) {
	h.t.Helper()
	at := h.path(id, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if strings.HasSuffix(name, "/") {
		if err := os.MkdirAll(at, 0o755); err != nil {
			h.t.Fatal(err)
		}
		return
	}
	if err := os.WriteFile(at, []byte(content), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

func (h *sandboxRig) link(id, name, to string) {
	h.t.Helper()
	if err := os.Symlink(to, h.path(id, name)); err != nil {
		h.t.Fatal(err)
	}
}

// both does something to a conversation whose sandbox runs and to one that was
// stopped, and sees to it that looking started nothing.
func (h *sandboxRig) both(t *testing.T, fill func(id string), look func(t *testing.T, h *sandboxRig, id string)) {
	t.Helper()
	for _, state := range []string{"running", "stopped"} {
		t.Run(state, func(t *testing.T) {
			mine, r := *h, *h.rig
			r.t = t
			mine.rig = &r
			id, box := mine.begun()
			fill(id)
			if state == "stopped" {
				mine.stop(id, box)
			}
			before := mine.keeper.Running()
			look(t, &mine, id)
			if state == "stopped" {
				mine.asleep(id)
			}
			if n := mine.keeper.Running(); n > before {
				t.Errorf("%d sandboxes ran before, %d do now", before, n)
			}
		})
	}
}

var built struct {
	once sync.Once
	dir  string
	err  error
}

// runner builds the runner, once.
func runner(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "runner"); built.err != nil {
			return
		}
		cmd := exec.Command("go", "build", "-o", filepath.Join(built.dir, "runner"), "deckhand/cmd/runner")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			built.err = errors.New(string(out))
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "runner")
}

func removeRunner() { _ = os.RemoveAll(built.dir) }

// refused is an error of the client's with this status, and these words in it.
func refused(t *testing.T, err error, status int, parts ...string) *client.Error {
	t.Helper()
	var e *client.Error
	if !errors.As(err, &e) || e.Status != status {
		t.Fatalf("%v, want %d", err, status)
	}
	for _, p := range parts {
		if !strings.Contains(e.Message, p) && e.Code != p {
			t.Errorf("%q is not in %q, %s", p, e.Message, e.Code)
		}
	}
	return e
}

package pool

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/sandboxtest"
	"deckhand/internal/soak"
	"deckhand/internal/sockpath"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// engine has a runner that keeps checkpoints, as the container of a helper does. Several pools share it, like the servers of an installation.
type engine struct {
	t   *testing.T
	dir string

	mu      sync.Mutex
	process *exec.Cmd
	name    string
	starts  int
}

func newEngine(t *testing.T) *engine {
	soak.NotShort(t, "starts the runner")
	e := &engine{t: t, dir: t.TempDir()}
	if err := os.Mkdir(filepath.Join(e.dir, "ws"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.remove(e.name) })
	return e
}

// start starts the container, or connects to it.
func (e *engine) start(ctx context.Context, h sandbox.Handle) (*sandbox.Sandbox, string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.process == nil {
		cmd := exec.Command(sandboxtest.Runner(e.t), "serve", "--socket", "sock", "--state", filepath.Join(e.dir, "state"), "--output", filepath.Join(e.dir, "output"),
			"--workspace", filepath.Join(e.dir, "ws"), "--checkpoints", filepath.Join(e.dir, "kept"), "--network", "isolated")
		cmd.Dir = e.dir
		_ = os.Remove(filepath.Join(e.dir, "sock"))
		if err := cmd.Start(); err != nil {
			return nil, "", err
		}
		e.starts++
		e.process, e.name = cmd, "container "+string(rune('0'+e.starts))
	}
	for {
		conn, err := sockpath.Dial(ctx, e.dir, "sock")
		if err == nil {
			box, err := sandbox.Connect(ctx, sandbox.Link{ID: h.ID, Conn: conn})
			return box, e.name, err
		}
		select {
		case <-ctx.Done():
			return nil, "", err
		case <-time.After(time.Millisecond):
		}
	}
}

// remove removes a container, if there is one of this name.
func (e *engine) remove(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.process != nil && e.name == name {
		_ = e.process.Process.Kill()
		_ = e.process.Wait()
		e.process = nil
	}
}

// running is the name of the container, "" for none.
func (e *engine) running() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.process == nil {
		return ""
	}
	return e.name
}

// take makes a checkpoint.
func take(t *testing.T, p *Pool) {
	t.Helper()
	if err := p.With(t.Context(), sandbox.Handle{ID: "box"}, func(r Runner) error { _, err := r.Take(t.Context()); return err }); err != nil {
		t.Fatal(err)
	}
}

// A helper is told when its server last saw the workspace empty, even if it is already connected.
func TestHelperOfAnEmptyWorkspace(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	p := New(e.start, e.remove)
	defer p.Close()
	verified := func(name string) (out sandbox.Checkpoint) {
		t.Helper()
		if name != "" {
			if err := os.WriteFile(filepath.Join(e.dir, "ws", name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.With(t.Context(), sandbox.Handle{ID: "box"}, func(r Runner) (err error) { out, err = r.Take(t.Context()); return err }); err != nil {
			t.Fatal(err)
		}
		return out
	}
	first, second := time.Now(), time.Now().Add(time.Hour)
	p.SetEmpty("box", first)
	if got := verified(""); got.Number != 1 || !got.Verified.Equal(first) {
		t.Errorf("%+v, want it verified at %s", got, first)
	}
	p.SetEmpty("box", second)
	if got := verified("a"); got.Number != 2 || got.Previous != 1 || !got.Verified.Equal(second) {
		t.Errorf("%+v, want it verified at %s", got, second)
	}
	if got := verified("b"); got.Number != 3 || got.Verified.Before(first) || got.Verified.Equal(second) {
		t.Errorf("%+v is verified at the time at which the workspace was empty", got)
	}
}

// A server does not remove a helper that another one has used since, even if the other one used it first.
func TestHelperOfTwoServers(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	one, two := New(e.start, e.remove), New(e.start, e.remove)
	take(t, one)
	take(t, two)
	one.Close()
	take(t, two)
	three := New(e.start, e.remove)
	take(t, three)
	take(t, two)
	three.Close()
	take(t, two)
	if e.starts != 1 {
		t.Errorf("the helper was started %d times", e.starts)
	}
	two.Close()
	if name := e.running(); name != "" {
		t.Errorf("%s is left", name)
	}
}

// A server replaces a helper that another one is about to remove.
func TestHelperThatIsBeingRemoved(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	removing, removed := make(chan struct{}), make(chan struct{})
	one := New(e.start, func(name string) {
		close(removing)
		<-removed
		e.remove(name)
	})
	two := New(e.start, e.remove)
	defer two.Close()
	take(t, one)
	go one.Close()
	<-removing
	take(t, two)
	close(removed)
	one.Close()
	take(t, two)
	if e.starts != 2 {
		t.Errorf("the helper was started %d times", e.starts)
	}
}

// A helper is kept if its connection is lost: it may be in use by another server by now.
func TestHelperWithoutConnection(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	one, two := New(e.start, e.remove), New(e.start, e.remove)
	defer two.Close()
	take(t, one)
	e.remove(e.name)
	take(t, two)
	one.Close()
	take(t, two)
	if e.starts != 2 {
		t.Errorf("the helper was started %d times", e.starts)
	}
}

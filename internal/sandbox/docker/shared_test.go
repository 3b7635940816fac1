package docker_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/moby/client"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker"
	"deckhand/internal/sandbox/sandboxtest"
)

// Several servers of one installation reach an engine, each with its own data directory.

// ownRunner gives a driver a copy of the runner in a folder of its own.
func ownRunner(t *testing.T) func(*docker.Options) {
	return func(o *docker.Options) {
		in, err := os.Open(o.Runner)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		o.Runner = filepath.Join(t.TempDir(), "runner")
		out, err := os.OpenFile(o.Runner, os.O_CREATE|os.O_WRONLY, 0o755)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(out, in)
		if e := out.Close(); err != nil || e != nil {
			t.Fatal(err, e)
		}
	}
}

// another is a driver of another server on the same engine.
func (r *rig) another(change ...func(*docker.Options)) *rig {
	r.t.Helper()
	other := *r
	for _, f := range change {
		f(&other.options)
	}
	other.Driver = other.second()
	return &other
}

// A handle names the engine by its ID, which does not depend on the address, and not if the workspace is a folder of
// the machine.
func TestEngineID(t *testing.T) {
	t.Parallel()
	r := keeping(t)
	_, h := r.open(sandbox.Spec{})
	id := docker.EngineID(h)
	now, err := r.Identify(t.Context())
	if err != nil || id != now || id == "" && !r.podman() {
		t.Errorf("the handle names %q, the engine is %q: %v", id, now, err)
	}
	socket, _ := strings.CutPrefix(r.options.Host, "unix://")
	if link := filepath.Join(t.TempDir(), "s"); socket != r.options.Host && os.Symlink(socket, link) == nil {
		other := r.another(func(o *docker.Options) { o.Host = "unix://" + link })
		if there, err := other.Identify(t.Context()); err != nil || there != now {
			t.Errorf("at another address it is %q, want %q: %v", there, now, err)
		}
	}
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	_, h = r.open(sandbox.Spec{Folder: folder})
	if id := docker.EngineID(h); id != "" {
		t.Errorf("the handle of a folder of this machine names the engine %q", id)
	}
	// The same address on another machine leads to another engine.
	elsewhere := sandbox.Handle{Driver: docker.Name, ID: newID(), Data: []byte(`{"engine":"` + r.options.Host + `","engine_id":"other"}`)}
	if _, err := r.Start(t.Context(), sandbox.Spec{ID: elsewhere.ID, Last: elsewhere}, nil); err == nil || !strings.Contains(err.Error(), "another container engine") {
		t.Errorf("a sandbox of another engine was started: %v", err)
	}
}

// A stopped container of a server that is gone is started by another one. Its workspace is kept, and what was installed beside it is
// kept as long as the runner of the other server is there.
func TestStartedByAnother(t *testing.T) {
	t.Parallel()
	r := newRig(t, ownRunner(t))
	box, h := r.open(sandbox.Spec{})
	r.sh(box, "echo kept > file; echo installed > /opt-file")
	if err := r.Stop(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	other := r.another(ownRunner(t))
	box, again := other.open(sandbox.Spec{ID: h.ID, Last: h})
	other.want(box, "cat file /opt-file", "kept\ninstalled")
	if string(again.Data) != string(h.Data) {
		t.Errorf("another container was made: %s, %s", h.Data, again.Data)
	}
	if err := other.Stop(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	got, err := r.engine.ContainerInspect(t.Context(), r.container(h), client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range got.Container.Mounts {
		if m.Destination == "/.deckhand/runner" && m.Source != r.options.Runner {
			t.Errorf("the runner is mounted from %s", m.Source)
		}
	}
	if err := os.RemoveAll(filepath.Dir(r.options.Runner)); err != nil {
		t.Fatal(err)
	}
	box, _ = other.open(sandbox.Spec{ID: h.ID, Last: h})
	other.want(box, "cat file", "kept")
}

// A container that keeps checkpoints, of a server that is gone with its data directory, is used or replaced by another one.
func TestCheckpointsByAnother(t *testing.T) {
	t.Parallel()
	real := func(o *docker.Options) { o.Runner = sandboxtest.Runner(t) }
	r := newRig(t, real, ownRunner(t))
	box, h := r.open(sandbox.Spec{})
	r.sh(box, "echo one > file")
	if _, err := r.Checkpoint(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	other := r.another(real, ownRunner(t))
	for _, remove := range []bool{false, true} {
		if remove {
			if err := os.RemoveAll(filepath.Dir(r.options.Runner)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.engine.ContainerKill(t.Context(), r.helper(h), client.ContainerKillOptions{Signal: "KILL"}); err != nil {
			t.Fatal(err)
		}
		if list, err := other.another().Checkpoints(t.Context(), h); err != nil || len(list.Numbers) != 1 {
			t.Errorf("checkpoints: %v, %v", list, err)
		}
	}
}

func anyID(string) bool { return true }

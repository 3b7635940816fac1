package docker

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker/dockertest"
)

// An engine may have another file than ours at the place of the runner.
func TestAnotherFileIsNotTakenForTheRunner(t *testing.T) {
	host, image := dockertest.Engine(t), dockertest.BusyboxImage(t)
	file := func(content string) string {
		name := filepath.Join(t.TempDir(), "runner")
		if err := os.WriteFile(name, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
		return name
	}
	theirs, ours := file("theirs"), file("this is ours")
	d, err := New(Options{Host: host, Runner: theirs, Image: image, Prefix: "deckhand-test", Instance: "test-" + rand.Text()})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.isPodman(t.Context()) {
		dockertest.Missing(t, "Podman does not look into a container that was never started; starting it tells")
	}
	id := "t_" + rand.Text()
	p := &plan{shape: shape{Image: image}, id: id, name: d.container(id), volume: d.volume(id), limits: sandbox.DefaultLimits, program: runnerPath, mounts: true}
	made, err := d.create(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Destroy(context.Background(), sandbox.Handle{ID: id})

	d.options.Runner = ours
	if d.seen(t.Context(), made) {
		t.Error("another file was taken for the runner")
	}
	if err := d.launch(t.Context(), made, p); err == nil || !d.isRunnerMount(err) {
		t.Errorf("launch: %v", err)
	}
	d.options.Runner = theirs
	if !d.seen(t.Context(), made) {
		t.Error("the runner was not recognized")
	}
}

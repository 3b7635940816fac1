package docker

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
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
	p := &plan{shape: shape{Image: image}, id: id, name: d.find.Names.Container(id)[0], volume: d.find.Workspace(id)[0], limits: sandbox.DefaultLimits, program: runnerPath, mounts: true}
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

// The runner must be for the architecture of the engine, not for that of the server.
func TestRunnerForTheEngine(t *testing.T) {
	host, image := dockertest.Engine(t), dockertest.BusyboxImage(t)
	real := dockertest.Build(t, "./testdata/runner")
	wrong := filepath.Join(t.TempDir(), "runner")
	if err := os.WriteFile(wrong, []byte("for another architecture"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		install func(string) (string, error)
		want    string
	}{
		"there is one":  {install: func(string) (string, error) { return real, nil }},
		"there is none": {install: func(string) (string, error) { return "", errors.New("missing") }, want: "this server only has a runner for vax"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked string
			d, err := New(Options{Host: host, Runner: wrong, Image: image, Prefix: "deckhand-test", Instance: "test-" + rand.Text(),
				RunnerFor: func(arch string) (string, error) { asked = arch; return c.install(arch) }})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			d.arch = "vax"
			id := "t_" + rand.Text()[:12]
			defer d.Destroy(context.Background(), sandbox.Handle{ID: id})
			_, err = d.Start(t.Context(), sandbox.Spec{ID: id}, nil)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
			if asked != d.about(t.Context()).arch || asked == "" {
				t.Errorf("asked for a runner for %q", asked)
			}
		})
	}
}

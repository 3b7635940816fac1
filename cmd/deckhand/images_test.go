package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"deckhand/internal/sandbox/docker/dockertest"
	"deckhand/internal/sandbox/sandboxtest"
)

// An image that already holds the runner is used as it is, and wins over the
// image into which the runner would be put.
func TestImageWithARunnerOfItsOwn(t *testing.T) {
	t.Parallel()
	host := dockertest.Engine(t)
	runner, err := os.ReadFile(sandboxtest.Runner(t))
	if err != nil {
		t.Fatal(err)
	}
	image := dockertest.Import(t, "own-runner", append(dockertest.Busybox(t), dockertest.File{Name: "bin/deckhand-runner", Data: runner}, dockertest.File{Name: "etc/brought", Data: []byte("along\n"), Mode: 0o644}))
	b := serve(t, "", append(withSandbox(t, "docker"), "--docker-host", host)...)
	b.demo("scripted/demo")
	b.post("/api/settings", fmt.Sprintf(`{"sandbox_base_container_image":"127.0.0.1:1/nobody/has-this:1","sandbox_runtime_container_image":%q}`, image))
	id := b.create("$ cat /etc/brought && test ! -e /.deckhand/runner")
	if got := b.said(id, 0, "along"); !strings.Contains(got, `"exit_code":0`) {
		t.Errorf("the runner was put into it: %s", got)
	}
	b.remove(id)
	b.until("the container goes", func() bool { return !dockertest.Sandboxes(t)[id] })
}

package dockertest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/moby/moby/client"
)

// Own is an engine of one test.
type Own struct {
	Host  string
	dir   string
	flags string
}

// Start starts an engine with the script that also starts the one for all tests, with more flags. It ends with the test.
func Start(t testing.TB, flags ...string) *Own {
	t.Helper()
	if os.Getuid() != 0 {
		Missing(t, "only root can start an engine")
	}
	dockerd := ""
	for _, p := range []string{"/usr/sbin/dockerd", "/usr/bin/dockerd", "/usr/local/bin/dockerd"} {
		if _, err := os.Stat(p); err == nil {
			dockerd = p
		}
	}
	if dockerd == "" {
		Missing(t, "there is no dockerd to start and stop; Debian has it in: docker.io")
	}
	o := &Own{dir: t.TempDir(), flags: strings.Join(flags, " ")}
	o.Resume(t)
	t.Cleanup(func() { o.script(t, "stop") })
	return o
}

// Kinds are the engines that StartKind can start.
var Kinds = []string{"docker-rootless", "podman", "podman-rootless"}

// StartKind starts an engine of another kind. It ends with the test.
func StartKind(t testing.TB, kind string) *Own {
	t.Helper()
	if os.Getuid() != 0 {
		Missing(t, "only root can start an engine")
	}
	// A rootless engine must be able to pass through all folders above its own, which those of tests do not allow.
	dir, err := os.MkdirTemp("/tmp", "engine-test-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	script := func(action string) (string, error) {
		cmd := exec.Command(filepath.Join(module(t), "scripts/engine-kind"), action, kind, dir)
		var said bytes.Buffer
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			err = fmt.Errorf("scripts/engine-kind %s %s: %w\n%s", action, kind, err, said.String())
		}
		return strings.TrimPrefix(strings.TrimSpace(string(out)), "DOCKER_HOST="), err
	}
	t.Cleanup(func() {
		if _, err := script("stop"); err != nil {
			t.Error(err)
		}
		os.RemoveAll(dir)
	})
	host, err := script("start")
	if err != nil {
		Missing(t, err.Error())
	}
	return &Own{Host: host, dir: dir}
}

// BusyboxImage is an image of Busybox on this engine. Its name is the same on every engine.
func (o *Own) BusyboxImage(t testing.TB) string {
	t.Helper()
	return importTo(t, o.client(t), "busybox", Busybox(t), []string{shell})
}

// Sandboxes are the IDs of the sandboxes on this engine, as Sandboxes.
func (o *Own) Sandboxes(t testing.TB) map[string]bool {
	t.Helper()
	return sandboxesOn(t, o.client(t))
}

func (o *Own) client(t testing.TB) *client.Client {
	t.Helper()
	engine, err := client.New(client.WithHost(o.Host))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	return engine
}

// Resume starts the engine after Halt, and returns its address.
func (o *Own) Resume(t testing.TB) string {
	t.Helper()
	host := strings.TrimPrefix(strings.TrimSpace(o.script(t, "start")), "DOCKER_HOST=")
	if o.Host == "" {
		o.Host = host
	}
	return host
}

// Halt ends the engine and keeps its data. Its containers end.
func (o *Own) Halt(t testing.TB) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(o.dir, "engine.pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for syscall.Kill(pid, 0) == nil { // it is no child process that could be waited for
		_ = exec.Command("true").Run()
	}
}

func (o *Own) script(t testing.TB, action string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(module(t), "scripts/engine"), action, o.dir)
	// One that answers is not what we want: it must not be stopped.
	cmd.Env = append(os.Environ(), "DOCKER_HOST=unix://"+o.dir+"/none.sock", "ENGINE_FLAGS="+o.flags)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("scripts/engine %s: %v\n%s", action, err, said.String())
	}
	return string(out)
}

// module is the folder of this module.
func module(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil && dir != "/" {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	t.Fatalf("the module is not found: %v", err)
	return ""
}

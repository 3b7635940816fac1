package docker_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker"
	"deckhand/internal/sandbox/docker/dockertest"
)

// ownEngine starts an engine of its own for a test, with the script that also
// starts the one for all tests.
func ownEngine(t *testing.T, dir string) string {
	t.Helper()
	for _, p := range []string{"/usr/sbin/dockerd", "/usr/bin/dockerd", "/usr/local/bin/dockerd"} {
		if _, err := os.Stat(p); err == nil {
			return engineScript(t, "start", dir)
		}
	}
	dockertest.Missing(t, "there is no dockerd to start and stop; Debian has it in: docker.io")
	return ""
}

func engineScript(t *testing.T, action, dir string) string {
	t.Helper()
	cmd := exec.Command("../../../scripts/engine", action, dir)
	// One that answers is not what we want: it must not be stopped.
	cmd.Env = append(os.Environ(), "DOCKER_HOST=unix://"+dir+"/none.sock")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("scripts/engine %s: %v\n%s", action, err, said.String())
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "DOCKER_HOST=")
}

func TestEngineRestarts(t *testing.T) {
	if os.Getuid() != 0 {
		dockertest.Missing(t, "only root can start an engine")
	}
	if testing.Short() {
		t.Skip("SKIPPED: starting an engine twice is slow")
	}
	dir := t.TempDir()
	host := ownEngine(t, dir)
	t.Cleanup(func() { engineScript(t, "stop", dir) })
	if again := engineScript(t, "start", dir); again != host {
		t.Errorf("a second start of the engine: %q, want %q", again, host)
	}
	t.Setenv("DOCKER_HOST", host)
	r := newRig(t)
	box, h := r.open(sandbox.Spec{})
	r.sh(box, "echo kept > file; echo layer > /etc/beside")

	raw, err := os.ReadFile(filepath.Join(dir, "engine.pid"))
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
	<-box.Done()
	for syscall.Kill(pid, 0) == nil { // it is no child process that could be waited for
		exec.Command("true").Run()
	}
	_, err = r.Attach(t.Context(), h)
	r.refused(err, "Cannot reach the container engine")
	if errors.Is(err, sandbox.ErrGone) {
		t.Error("a sandbox is called gone although it is unknown")
	}

	if again := engineScript(t, "start", dir); again != host {
		t.Fatalf("the engine is elsewhere now: %q", again)
	}
	if _, err := r.Attach(t.Context(), h); !errors.Is(err, sandbox.ErrGone) {
		t.Fatalf("after a restart of the engine: %v", err)
	}
	box, again := r.open(sandbox.Spec{ID: h.ID})
	r.want(box, "cat file /etc/beside", "kept\nlayer")
	if string(again.Data) != string(h.Data) {
		t.Error("the container was made anew")
	}
}

// BenchmarkFirstCommand measures the time from Start to the answer of the first
// command, and beside it, in turns, what docker run takes for the same image.
func BenchmarkFirstCommand(b *testing.B) {
	program, err := exec.LookPath("docker")
	if err != nil {
		dockertest.Missing(b, "there is no docker client to compare with")
	}
	for _, c := range []struct{ name, change string }{{"root", "USER root"}, {"user", "USER 1000"}} {
		b.Run(c.name, func(b *testing.B) {
			r := newRig(b, func(o *docker.Options) { o.Image = dockertest.BusyboxImage(b, c.change) })
			warm, h := r.open(sandbox.Spec{}) // what is asked once for each image
			warm.Close()
			if err := r.Destroy(b.Context(), h); err != nil {
				b.Fatal(err)
			}
			var ours, theirs time.Duration
			for b.Loop() {
				start := time.Now()
				if out, err := exec.Command(program, "--host", r.options.Host, "run", "--rm", "--network", "none", r.options.Image, "/bin/echo", "hi").CombinedOutput(); err != nil {
					b.Fatal(err, string(out))
				}
				theirs += time.Since(start)

				start = time.Now()
				box, h, err := sandbox.Open(b.Context(), r.Driver, sandbox.Spec{ID: newID()}, nil)
				if err != nil {
					b.Fatal(err)
				}
				got, err := box.Run(b.Context(), sandbox.Process{Args: []string{"/bin/echo", "hi"}}, nil)
				if err != nil || string(got.Stdout) != "hi\n" {
					b.Fatal(got, err)
				}
				ours += time.Since(start)
				box.Close()
				if err := r.Destroy(b.Context(), h); err != nil {
					b.Fatal(err)
				}
			}
			n := time.Duration(b.N)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64((ours/n).Microseconds())/1000, "ms/first-command")
			b.ReportMetric(float64((theirs/n).Microseconds())/1000, "ms/docker-run")
			b.ReportMetric(float64(ours)/float64(theirs), "ratio")
		})
	}
}

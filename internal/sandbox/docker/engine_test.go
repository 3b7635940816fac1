package docker_test

import (
	"errors"
	"os/exec"
	"testing"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker"
	"deckhand/internal/sandbox/docker/dockertest"
)

func TestEngineRestarts(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: starting an engine twice is slow")
	}
	own := dockertest.Start(t)
	if again := own.Resume(t); again != own.Host {
		t.Errorf("a second start of the engine: %q, want %q", again, own.Host)
	}
	t.Setenv("DOCKER_HOST", own.Host)
	r := newRig(t)
	box, h := r.open(sandbox.Spec{})
	r.sh(box, "echo kept > file; echo layer > /etc/beside")

	own.Halt(t)
	<-box.Done()
	_, err := r.Attach(t.Context(), h)
	r.refused(err, "Cannot reach the container engine")
	if errors.Is(err, sandbox.ErrGone) {
		t.Error("a sandbox is called gone although it is unknown")
	}

	if again := own.Resume(t); again != own.Host {
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

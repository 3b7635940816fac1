package docker_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker"
	"deckhand/internal/sandbox/docker/dockertest"
)

func TestConfined(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	box, _ := r.open(sandbox.Spec{})
	// The runner, which is process 1, keeps the one capability (CAP_DAC_OVERRIDE) by which it reaches its own folder.
	for who, has := range map[string]string{"self": "0", "1": "2"} {
		r.want(box, `grep -E '^(CapEff|CapPrm|CapBnd|NoNewPrivs|Seccomp):' /proc/`+who+`/status | tr -s '\t ' ' '`,
			"CapPrm: 000000000000000"+has+"\nCapEff: 000000000000000"+has+"\nCapBnd: 0000000000000000\nNoNewPrivs: 1\nSeccomp: 2")
	}
	r.want(box, `tr '\0' ' ' < /proc/1/cmdline`, "/.deckhand/runner serve --socket /.deckhand/run/runner.sock --state /.deckhand/state --output /.deckhand/output --workspace /workspace --network proxied")
	r.want(box, `sed -n '3,$p' /proc/net/dev | cut -d: -f1 | tr -d ' '`, "lo")
	r.want(box, `ls /var/run/docker.sock /run/docker.sock 2>/dev/null; find / -xdev -name '*.sock' -not -path '/.deckhand/*' -not -path '/proc/*'`, "")
	for _, script := range []string{
		"mount -t tmpfs x /tmp", "echo x > /.deckhand/runner", "rm -f /.deckhand/runner", "mv /.deckhand /moved", "rmdir /.deckhand", "mknod /tmp/d b 8 0", "chroot / true",
		"echo 1 > /proc/sys/kernel/sysrq", "head -c 1 /proc/kcore | grep -q .", "nc -w 1 127.0.0.2 80 </dev/null && nc 192.0.2.1 80",
	} {
		if got := r.run(box, "/bin/sh", "-c", script); got.Exit == 0 {
			t.Errorf("%s was allowed", script)
		}
	}
	// What has to work does.
	if _, err := os.Stat("/proc/net/if_inet6"); err == nil {
		r.want(box, "grep -c lo /proc/net/if_inet6", "1")
	}
	r.want(box, "touch /etc/new /root/new /tmp/new && ls -ld /workspace | cut -c1-10", "drwxr-xr-x")
}

func TestLimits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const memory = 64 << 20
	box, h := r.open(sandbox.Spec{Limits: sandbox.Limits{CPUs: 0.5, Memory: memory, Processes: 40}})
	limits := `cd /sys/fs/cgroup
if [ -e cgroup.controllers ]; then cat memory.max memory.swap.max pids.max cpu.max
else cat memory/memory.limit_in_bytes pids/pids.max cpu/cpu.cfs_quota_us cpu/cpu.cfs_period_us; fi | tr '\n' ' '`
	want := func(box *sandbox.Sandbox, memory int64, processes int, quota int) {
		t.Helper()
		got := r.sh(box, limits)
		v1 := fmt.Sprintf("%d %d %d 100000", memory, processes, quota)
		v2 := fmt.Sprintf("%d 0 %d %d 100000", memory, processes, quota)
		if got != v1 && got != v2 {
			t.Errorf("limits %q, want %q or %q", got, v1, v2)
		}
	}
	want(box, memory, 40, 50_000)
	r.want(box, "ulimit -n; ulimit -c", "16384\n0")

	// More memory than that: what takes it dies, the sandbox lives.
	if got := r.run(box, "/bin/sh", "-c", "head -c 300m /dev/zero | tail"); got.Exit != 137 {
		t.Errorf("a memory bomb: exit code %d, %s", got.Exit, got.Stderr)
	}
	// More processes than that.
	got := r.run(box, "/bin/sh", "-c", "i=0; while [ $i -lt 60 ]; do sleep 1000 >/dev/null 2>&1 & i=$((i+1)); done")
	if !strings.Contains(string(got.Stderr), "fork") {
		t.Errorf("60 processes could be started: exit code %d, %s", got.Exit, got.Stderr)
	}
	if err := r.Stop(t.Context(), h); err != nil {
		t.Fatal(err)
	}

	// Other limits hold from the next start, without losing anything where the
	// engine can change them.
	box, again := r.open(sandbox.Spec{ID: h.ID, Limits: sandbox.Limits{Memory: 2 * memory}})
	want(box, 2*memory, sandbox.DefaultLimits.Processes, int(sandbox.DefaultLimits.CPUs*100_000))
	if string(again.Data) != string(h.Data) && !r.podman() {
		t.Error("the container was made anew")
	}
}

// podman is for what Podman cannot do.
func (r *rig) podman() bool {
	r.t.Helper()
	v, err := r.engine.ServerVersion(r.t.Context(), client.ServerVersionOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return len(v.Components) > 0 && v.Components[0].Name == "Podman Engine"
}

func TestWayOut(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	box, h := r.open(sandbox.Spec{})
	r.want(box, "nc 127.0.0.1 3128", "out of "+h.ID)

	box, _ = r.open(sandbox.Spec{Network: sandbox.Isolated})
	if got := r.run(box, "/bin/nc", "127.0.0.1", "3128"); got.Exit == 0 || len(got.Stdout) > 0 {
		t.Errorf("an isolated one has a way out: %s", got.Stdout)
	}
}

func TestUsers(t *testing.T) {
	t.Parallel()
	const who = `id -u; id -g; stat -c %u /workspace; echo x > /workspace/f && cat /workspace/f`
	for _, c := range []struct{ name, image, option, want string }{
		{"number in the image", "USER 1000", "", "1000\n1001\n1000\nx"},
		{"name in the image", "USER agent", "", "1000\n1001\n1000\nx"},
		{"both", "USER agent:staff", "", "1000\n1002\n1000\nx"},
		{"a number nobody has", "USER 4321", "", "4321\n0\n4321\nx"},
		{"ours goes first", "USER agent", "7:8", "7\n8\n7\nx"},
		{"root", "USER root", "", "0\n0\n0\nx"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, func(o *docker.Options) { o.Image, o.User = dockertest.BusyboxImage(t, c.image), c.option })
			box, h := r.open(sandbox.Spec{})
			r.want(box, who, c.want)
			if err := r.Stop(t.Context(), h); err != nil {
				t.Fatal(err)
			}
			box, _ = r.open(sandbox.Spec{ID: h.ID})
			r.want(box, who, c.want)
			looking, err := r.Inspect(t.Context(), h)
			if err != nil {
				t.Fatal(err)
			}
			defer looking.Close()
			r.want(looking, "id -u; cat f", strings.Split(c.want, "\n")[0]+"\nx")
		})
	}
	r := newRig(t, func(o *docker.Options) { o.User = "nobody-at-all" })
	_, err := r.Start(t.Context(), sandbox.Spec{ID: newID()}, nil)
	r.refused(err, "nobody-at-all", "does not exist")
}

// runnerFile is the runner as a file of an image.
func runnerFile(t *testing.T, name string) dockertest.File {
	t.Helper()
	content, err := os.ReadFile(runner(t))
	if err != nil {
		t.Fatal(err)
	}
	return dockertest.File{Name: name, Data: content}
}

func TestPreparedImages(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *docker.Options) { o.Runner = "" })
	base := dockertest.Busybox(t)
	for _, c := range []struct {
		name    string
		files   []dockertest.File
		changes []string
		program string
	}{
		{"own place", []dockertest.File{{Name: ".deckhand/"}, runnerFile(t, ".deckhand/runner")}, nil, "/.deckhand/runner"},
		{"in PATH", []dockertest.File{runnerFile(t, "bin/deckhand-runner")}, nil, "deckhand-runner"},
		{"in PATH, for a user", []dockertest.File{runnerFile(t, "bin/deckhand-runner")}, []string{"USER agent"}, "deckhand-runner"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := r.in(t)
			image := dockertest.Import(t, "prepared", append(base[:len(base):len(base)], c.files...), c.changes...)
			spec := sandbox.Spec{ID: newID(), Image: image, Prepared: true}
			box, h := r.open(spec)
			r.want(box, `tr '\0' ' ' < /proc/1/cmdline | cut -d ' ' -f 1; echo x > f; cat f`, c.program+"\nx")
			box.Close()
			if err := r.Stop(t.Context(), h); err != nil {
				t.Fatal(err)
			}
			box, _ = r.open(spec)
			r.want(box, "cat f", "x")
			// Another server finds the runner by the handle.
			other, err := r.second().Attach(t.Context(), h)
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			r.want(other, "cat f", "x")
			looking, err := r.second().Inspect(t.Context(), h)
			if err != nil {
				t.Fatal(err)
			}
			defer looking.Close()
			r.want(looking, "cat f", "x")
		})
	}
	_, err := r.Start(t.Context(), sandbox.Spec{ID: newID(), Image: r.options.Image, Prepared: true}, nil)
	r.refused(err, "has no runner", "/.deckhand/runner", "deckhand-runner")
	_, err = r.Start(t.Context(), sandbox.Spec{ID: newID(), Image: r.options.Image}, nil)
	r.refused(err, "no runner")
}

func TestImageWithNothingButAProgram(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.options.Image = dockertest.Import(t, "scratch", []dockertest.File{runnerFile(t, "app")})
	box, _ := r.open(sandbox.Spec{Image: r.options.Image})
	got := r.run(box, "/app", "dial", "--socket", "/.deckhand/run/runner.sock")
	if got.Exit != 1 || !strings.Contains(string(got.Stderr), "permission denied") {
		t.Errorf("exit code %d: %s", got.Exit, got.Stderr)
	}
	if _, err := box.Run(t.Context(), sandbox.Process{Args: []string{"sh"}}, nil); err == nil || !strings.Contains(err.Error(), "sh") {
		t.Errorf("a shell in an image without one: %v", err)
	}
}

func TestRunnerIsCopied(t *testing.T) {
	t.Parallel()
	forwarded := forward(t)
	file, err := os.Open(runner(t))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	const unlikely = 700 // a descriptor that the engine does not have
	if err := unix.Dup2(int(file.Fd()), unlikely); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(unlikely)
	for name, change := range map[string]func(*docker.Options){
		"the engine is elsewhere":              func(o *docker.Options) { o.Host = forwarded },
		"the engine does not see the file":     func(o *docker.Options) { o.Runner = fmt.Sprintf("/proc/self/fd/%d", unlikely) },
		"elsewhere, and the user is not root":  func(o *docker.Options) { o.Host, o.User = forwarded, "agent" },
		"it does not see it, and not for root": func(o *docker.Options) { o.Runner, o.User = fmt.Sprintf("/proc/self/fd/%d", unlikely), "1000" },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, change)
			box, h := r.open(sandbox.Spec{})
			// Its owner is never the user of the commands.
			owner := "65533"
			if r.options.User != "" {
				owner = "0"
			}
			r.want(box, "grep -c /.deckhand/runner /proc/mounts; stat -c %a:%u /.deckhand/runner; echo x > f", "0\n755:"+owner)
			if err := r.Stop(t.Context(), h); err != nil {
				t.Fatal(err)
			}
			// A driver that has not learned yet that copying is needed keeps the container.
			again, err := r.second().Start(t.Context(), sandbox.Spec{ID: h.ID}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if string(again.Data) != string(h.Data) {
				t.Error("the container was made anew")
			}
			box = r.attach(again)
			r.want(box, "cat f", "x")
		})
	}
}

func TestRunnerOfAnotherProcessor(t *testing.T) {
	t.Parallel()
	wrong := filepath.Join(t.TempDir(), "runner")
	if err := os.WriteFile(wrong, []byte("no program at all"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, func(o *docker.Options) { o.Runner = wrong })
	_, err := r.Start(t.Context(), sandbox.Spec{ID: newID()}, nil)
	r.refused(err, "another CPU architecture")
	if found, err := r.List(t.Context()); err != nil || len(found) != 1 || found[0].Running {
		t.Errorf("found %v, %v; want the workspace alone", found, err)
	}
}

// forward makes the engine reachable over the network, as one on another machine is.
func forward(t *testing.T) string {
	t.Helper()
	path, ok := strings.CutPrefix(dockertest.Engine(t), "unix://")
	if !ok {
		t.Skip("the engine is reached over the network anyway")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	pass := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		if half, ok := to.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("unix", path)
			if err != nil {
				in.Close()
				continue
			}
			go func() {
				defer out.Close()
				defer in.Close()
				done := make(chan struct{})
				go func() { pass(out, in); close(done) }()
				pass(in, out)
				<-done
			}()
		}
	}()
	return "tcp://" + l.Addr().String()
}

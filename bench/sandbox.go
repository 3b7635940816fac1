package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"deckhand/bench/report"
	"deckhand/internal/load"
	"deckhand/internal/load/process"
	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker"
	"deckhand/internal/sandbox/local"
)

// sandboxes measures hands: how soon they are there, what a command costs in
// them, and what they take up when they do nothing.
func sandboxes(b *bench) error {
	runner, err := b.runner()
	if err != nil {
		return err
	}
	dir, err := b.folder()
	if err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // the sandboxes' own users must get through
		return err
	}
	d, err := local.New(local.Options{Dir: filepath.Join(dir, "boxes"), Runner: runner})
	if err != nil {
		return err
	}
	return errors.Join(localStarts(b, d), localCommands(b, d), localIdle(b, d), dockerStarts(b, runner), d.Close())
}

// runner is the program that works inside sandboxes.
func (b *bench) runner() (string, error) {
	path, err := filepath.Abs(filepath.Join(filepath.Dir(b.server), "runner"))
	if err == nil {
		if _, err = os.Stat(path); err != nil {
			err = fmt.Errorf("there is no %s: make build makes it", path)
		}
	}
	return path, err
}

// breath is the time between two starts: users do not start them back to back, and the driver
// prepares half of the next start in that time.
const breath = 20 * time.Millisecond

// localStarts compares a start to its first command's result with a bare clone
// of the same namespaces that executes a program.
func localStarts(b *bench, d *local.Driver) error {
	n := pick(b, 150, 60)
	var ours, floor []time.Duration
	for i := range n + 5 {
		time.Sleep(breath)
		begin := time.Now()
		if err := bareClone(); err != nil {
			return err
		}
		bare := time.Since(begin)
		time.Sleep(breath)
		begin = time.Now()
		box, h, err := startLocal(b.ctx, d, fmt.Sprint("start-", i))
		if err != nil {
			return err
		}
		took := time.Since(begin)
		box.Close()
		if err := d.Destroy(b.ctx, h); err != nil {
			return err
		}
		if i >= 5 { // the first ones warm up
			ours, floor = append(ours, took), append(floor, bare)
		}
	}
	p50, bare := load.Percentile(ours, 50), load.Percentile(floor, 50)
	b.report.Add("sandbox", "local: start to the first command's result, p50, against a bare clone of the namespaces and exec", report.Millis, p50, bare).
		RatioAtMost(3).Comment("p95 %.1f ms, n=%d, with %v between two; back to back half of it is not prepared ahead", load.Percentile(ours, 95), n, breath)
	b.report.Add("sandbox", "local: start to the first command's result, p99", report.Millis, load.Percentile(ours, 99), 0).AtMost(50)
	return nil
}

// bareClone is the floor: the namespaces and a program that does nothing.
func bareClone() error {
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET |
			syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS | unix.CLONE_NEWCGROUP,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	return cmd.Run()
}

func startLocal(ctx context.Context, d *local.Driver, id string) (*sandbox.Sandbox, sandbox.Handle, error) {
	box, h, err := sandbox.Open(ctx, d, sandbox.Spec{ID: id, Env: map[string]string{"GIT_AUTHOR_NAME": "ann"}}, nil)
	if err != nil {
		return nil, h, err
	}
	return box, h, run(ctx, box, id+"-first", "true")
}

func run(ctx context.Context, box *sandbox.Sandbox, id, text string) error {
	r, err := box.Exec(ctx, sandbox.Command{ID: id, Text: text}, nil)
	if err == nil && r.Exit != 0 {
		err = fmt.Errorf("%s: exit code %d: %s", text, r.Exit, r.Output)
	}
	return err
}

// localCommands compares a command in a sandbox that runs with the same command
// in a shell that is at hand.
func localCommands(b *bench, d *local.Driver) error {
	box, h, err := startLocal(b.ctx, d, "commands")
	if err != nil {
		return err
	}
	defer func() { box.Close(); _ = d.Destroy(context.WithoutCancel(b.ctx), h) }()
	shell, err := openShell()
	if err != nil {
		return err
	}
	defer shell.close()
	for _, text := range []string{"true", "/bin/true"} {
		var ours, floor []time.Duration
		for i := range pick(b, 1000, 200) {
			begin := time.Now()
			if err := shell.run(text); err != nil {
				return err
			}
			floor = append(floor, time.Since(begin))
			begin = time.Now()
			id := fmt.Sprint(text, i)
			if err := run(b.ctx, box, id, text); err != nil {
				return err
			}
			ours = append(ours, time.Since(begin))
			if err := box.Ack(b.ctx, id); err != nil {
				return err
			}
		}
		p50, live := load.Percentile(ours, 50), load.Percentile(floor, 50)
		b.report.Add("sandbox", "local: the command "+text+" in a running sandbox, p50, against a live shell", report.Millis, p50, live).
			Require(p50-live <= 1, "at most 1 ms above").Comment("p99 %.2f ms, the shell's %.2f ms", load.Percentile(ours, 99), load.Percentile(floor, 99))
	}
	return nil
}

// liveShell is a bash on a terminal, as a person has it.
type liveShell struct {
	cmd *exec.Cmd
	tty *os.File
	n   int
}

func openShell() (*liveShell, error) {
	cmd := exec.Command("bash", "--noprofile", "--norc", "--noediting", "-i")
	cmd.Env = append(os.Environ(), "PS1=", "TERM=dumb")
	tty, err := pty.Start(cmd)
	if err != nil {
		return nil, err
	}
	s := &liveShell{cmd: cmd, tty: tty}
	return s, s.run("stty -echo")
}

func (s *liveShell) close() { s.tty.Close(); _ = s.cmd.Wait() }

// run types a line and reads up to its end mark, which the echo of the line does not contain.
func (s *liveShell) run(text string) error {
	s.n++
	if _, err := fmt.Fprintf(s.tty, "%s; echo E''ND%d.\n", text, s.n); err != nil {
		return err
	}
	mark := fmt.Sprintf("END%d.", s.n)
	var seen strings.Builder
	buf := make([]byte, 4096)
	for !strings.Contains(seen.String(), mark) {
		n, err := s.tty.Read(buf)
		seen.Write(buf[:n])
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	return nil
}

// localIdle starts many sandboxes and looks at what they take up together.
func localIdle(b *bench, d *local.Driver) error {
	n := pick(b, 500, 100)
	var handles []sandbox.Handle
	defer func() {
		for _, h := range handles {
			_ = d.Destroy(context.WithoutCancel(b.ctx), h)
		}
	}()
	before, err := available()
	if err != nil {
		return err
	}
	var boxes []*sandbox.Sandbox
	defer func() {
		for _, box := range boxes {
			box.Close()
		}
	}()
	for i := range n {
		box, h, err := sandbox.Open(b.ctx, d, sandbox.Spec{ID: fmt.Sprint("idle-", i)}, nil)
		if err != nil {
			return fmt.Errorf("sandbox %d: %w", i+1, err)
		}
		boxes, handles = append(boxes, box), append(handles, h)
	}
	after, err := available()
	if err != nil {
		return err
	}
	each := (before - after) / float64(n)
	b.report.Add("sandbox", fmt.Sprintf("local: memory of an idle sandbox, %d at once", n), report.Megabytes, each, 0).AtMost(4).
		Comment("what the machine has less, kernel and connections included")
	b.report.Add("sandbox", fmt.Sprintf("local: memory of an idle runner, %d at once", n), report.Megabytes, process.TreePSS()/float64(n), 0).
		AtMost(1.2).Comment("PSS: what processes share is divided among them")
	begin := time.Now()
	for i, box := range boxes {
		if err := run(b.ctx, box, "alive", "true"); err != nil {
			return fmt.Errorf("sandbox %d does not answer: %w", i+1, err)
		}
	}
	shells, err := available()
	if err != nil {
		return err
	}
	b.report.Add("sandbox", fmt.Sprintf("local: memory of a sandbox with a shell that waits, %d at once", n), report.Megabytes, (before-shells)/float64(n), 0).
		AtMost(4).Comment("all answered in %.1f s", time.Since(begin).Seconds())
	return nil
}

// available is the memory that the machine can still give, in megabytes.
func available() (float64, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024, err
		}
	}
	return 0, errors.New("/proc/meminfo does not say what is available")
}

// dockerStarts compares with the engine's own client, on the same image.
func dockerStarts(b *bench, runner string) error {
	image := os.Getenv("DECKHAND_BENCH_IMAGE")
	if _, err := exec.LookPath("docker"); image == "" || err != nil {
		say("SKIPPED: docker is not measured; name a local image in DECKHAND_BENCH_IMAGE and have an engine and its client")
		return nil
	}
	os.Setenv("DOCKER_HOST", os.Getenv("DECKHAND_BENCH_ENGINE")) // not earlier: servers with --sandbox auto would choose it
	d, err := docker.New(docker.Options{Runner: runner, Image: image, Prefix: "deckhand-bench", Instance: fmt.Sprint(os.Getpid())})
	if err != nil {
		return err
	}
	var ours, floor []time.Duration
	for i := range pick(b, 30, 8) {
		begin := time.Now()
		if out, err := exec.CommandContext(b.ctx, "docker", "run", "--rm", "--network", "none", image, "/bin/true").CombinedOutput(); err != nil {
			return fmt.Errorf("docker run: %w: %s", err, out)
		}
		floor = append(floor, time.Since(begin))
		id := fmt.Sprint("bench-", i)
		begin = time.Now()
		box, h, err := sandbox.Open(b.ctx, d, sandbox.Spec{ID: id}, nil)
		if err != nil {
			return err
		}
		err = run(b.ctx, box, id, "true")
		ours = append(ours, time.Since(begin))
		box.Close()
		if err := errors.Join(err, d.Destroy(b.ctx, h)); err != nil {
			return err
		}
	}
	b.report.Add("sandbox", "docker: start to the first command's result, p50, against docker run of the same image", report.Millis,
		load.Percentile(ours, 50), load.Percentile(floor, 50)).RatioAtMost(1.3).Comment("p95 %.0f ms", load.Percentile(ours, 95))
	return nil
}

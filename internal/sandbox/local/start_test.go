package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/local/box"
	"deckhand/internal/sandbox/sandboxtest"
	"deckhand/internal/soak"
)

// The runner may be woken late, programs in the sandbox may not.
func TestTimerSlack(t *testing.T) {
	t.Parallel()
	d := newDriver(t)
	s, h := start(t, d, sandbox.Spec{ID: "slack"})
	if got := sh(t, s, "cat /proc/self/timerslack_ns"); got != "50000" {
		t.Errorf("a program has a slack of %s ns", got)
	}
	dir, err := d.path(h)
	if err != nil {
		t.Fatal(err)
	}
	m, err := readMeta(dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(fmt.Sprintf("/proc/%d/timerslack_ns", m.PID))
	if errors.Is(err, fs.ErrPermission) {
		t.Skip("reading the slack of another process needs root")
	}
	if err != nil || strings.TrimSpace(string(got)) != "1000000" {
		t.Errorf("the runner has a slack of %s ns, %v", got, err)
	}
}

func TestLife(t *testing.T) {
	d := newDriver(t)
	s, h := start(t, d, sandbox.Spec{ID: "life"})
	if got := sh(t, s, "echo kept > /workspace/f; echo kept > ~/f; echo kept > /etc/f; echo gone > /tmp/f; echo gone > /run/f; hostname; pwd"); got != "deckhand\n/workspace" {
		t.Errorf("inside: %q", got)
	}
	again, _ := start(t, d, sandbox.Spec{ID: "life"})
	if again.Info().Boot != s.Info().Boot {
		t.Error("a second Start started another runner")
	}
	if found := list(t, d); found != "life running" {
		t.Errorf("List: %q", found)
	}
	for range 2 {
		if err := d.Stop(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	<-s.Done()
	if _, err := d.Attach(t.Context(), h); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("attaching to a stopped one: %v", err)
	}
	if found := list(t, d); found != "life stopped" {
		t.Errorf("List: %q", found)
	}
	s, _ = start(t, d, sandbox.Spec{ID: "life"})
	if got := sh(t, s, "cat /workspace/f ~/f /etc/f; ls /tmp /run"); got != "kept\nkept\nkept\n/run:\n\n/tmp:" {
		t.Errorf("after a restart: %q", got)
	}
	for range 2 {
		if err := d.Destroy(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	if found := list(t, d); found != "" {
		t.Errorf("List: %q", found)
	}
	if _, err := d.Attach(t.Context(), h); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("attaching to a destroyed one: %v", err)
	}
	if _, err := d.View(t.Context(), h); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("viewing a destroyed one: %v", err)
	}
}

// The kernel flushes the whole file system of the host when an overlay that is not volatile ends. No mark
// remains that refuses another mount of the changes, also by an older version.
func TestEndFlushesNothing(t *testing.T) {
	t.Parallel()
	d := newDriver(t)
	s, h := start(t, d, sandbox.Spec{ID: "flush"})
	if got := sh(t, s, "echo kept > /usr/local/f; grep ' overlay ' /proc/mounts | grep -v volatile"); got != " (exit 1)" {
		t.Errorf("overlays that are flushed: %q", got)
	}
	marks, err := filepath.Glob(filepath.Join(d.dir, h.ID, box.UpDir, "*.w", "work", "incompat"))
	if err != nil || len(marks) > 0 {
		t.Errorf("marks: %v %v", marks, err)
	}
	m, err := readMeta(filepath.Join(d.dir, h.ID))
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(m.PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	s, _ = start(t, d, sandbox.Spec{ID: "flush"})
	if got := sh(t, s, "cat /usr/local/f"); got != "kept" {
		t.Errorf("after a crash: %q", got)
	}
}

func list(t *testing.T, d *Driver) string {
	t.Helper()
	found, err := d.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range found {
		state := "stopped"
		if f.Running {
			state = "running"
		}
		out = append(out, f.Handle.ID+" "+state)
	}
	return strings.Join(out, ", ")
}

func TestStartAtOnce(t *testing.T) {
	d := sharedDriver(t)
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			if _, err := d.Start(t.Context(), sandbox.Spec{ID: "one"}, nil); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	start(t, d, sandbox.Spec{ID: "one"})
	m, err := readMeta(filepath.Join(d.dir, "one"))
	if err != nil {
		t.Fatal(err)
	}
	if m.Generation != 1 {
		t.Errorf("it was started %d times", m.Generation)
	}
}

// Sandboxes that are started while a runner waits, and while none does, side by side.
func TestSideBySide(t *testing.T) {
	d := newDriver(t)
	users := map[string]string{}
	for i := range 4 {
		id := fmt.Sprint("s", i)
		s, _ := start(t, d, sandbox.Spec{ID: id})
		if got := sh(t, s, "cat /workspace/* 2>/dev/null; echo "+id+" > /workspace/f"); got != "" {
			t.Errorf("%s sees %q", id, got)
		}
		m, err := readMeta(filepath.Join(d.dir, id))
		if err != nil {
			t.Fatal(err)
		}
		if other, taken := users[fmt.Sprint(m.User)]; taken && d.rights.Ranges {
			t.Errorf("%s and %s share the users from %d on", id, other, m.User)
		}
		users[fmt.Sprint(m.User)] = id
		d.spare.work.Wait()
		if i == 1 && d.spare.place == nil {
			t.Error("no runner waits for the next start")
		}
		if i == 2 { // what waits may have died
			_ = d.spare.place.child.process.Signal(syscall.SIGKILL)
			d.spare.place.child.process.Wait()
		}
	}
}

func TestOutlivesServer(t *testing.T) {
	soak.NotShort(t, "starts sandboxes")
	dir := t.TempDir()
	server := exec.Command(os.Args[0])
	server.Env = append(os.Environ(), diesEnv+"="+dir, runnerEnv+"="+runnerFile)
	out, err := server.CombinedOutput()
	if server.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the server did not die as it should: %v\n%s", err, out)
	}
	d := driverAt(t, dir)
	if found := list(t, d); found != "x running" {
		t.Fatalf("List: %q", found)
	}
	s, err := d.Attach(t.Context(), d.handle("x"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := sh(t, s, "cat /tmp/here"); got != "yes" {
		t.Errorf("what it left is %q", got)
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), scrapPrefix) {
			t.Errorf("%s of the dead server is still there", e.Name())
		}
	}
}

// startAndDie is the server of TestOutlivesServer.
func startAndDie(dir string) {
	d, err := New(Options{Dir: dir, Runner: os.Getenv(runnerEnv)})
	if err != nil {
		panic(err)
	}
	s, _, err := sandbox.Open(context.Background(), d, sandbox.Spec{ID: "x"}, nil)
	if err != nil {
		panic(err)
	}
	if _, err := s.Run(context.Background(), sandbox.Process{Args: []string{"/bin/sh", "-c", "echo yes > /tmp/here"}}, nil); err != nil {
		panic(err)
	}
	d.spare.work.Wait() // so that it leaves more behind
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

func TestRefusals(t *testing.T) {
	d := sharedDriver(t)
	_, err := d.Start(t.Context(), sandbox.Spec{ID: "i", Image: "debian:12"}, nil)
	var u *sandbox.Unavailable
	if !errors.As(err, &u) || !strings.Contains(u.Reason, "--sandbox docker") {
		t.Errorf("an image: %v", err)
	}
	for _, id := range []string{"", "..", "a/b", ".base", strings.Repeat("x", 101)} {
		if _, err := d.Start(t.Context(), sandbox.Spec{ID: id}, nil); !errors.Is(err, sandbox.ErrInvalid) {
			t.Errorf("ID %q: %v", id, err)
		}
		if err := d.Destroy(t.Context(), d.handle(id)); !errors.Is(err, sandbox.ErrInvalid) {
			t.Errorf("destroying %q: %v", id, err)
		}
	}
	for _, m := range []sandbox.Mount{
		{Source: d.dir, Target: "/data"}, {Source: d.dir + "/.base", Target: "/data"}, {Source: "/", Target: "/data"},
		{Source: t.TempDir(), Target: "/"}, {Source: t.TempDir(), Target: "/proc/x"}, {Source: t.TempDir(), Target: "/etc"},
		{Source: t.TempDir(), Target: "relative"}, {Source: "/does/not/exist", Target: "/data"},
	} {
		if _, err := d.Start(t.Context(), sandbox.Spec{ID: "m", Mounts: []sandbox.Mount{m}}, nil); !errors.Is(err, sandbox.ErrInvalid) {
			t.Errorf("mount %+v: %v", m, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Start(ctx, sandbox.Spec{ID: "c"}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled start: %v", err)
	}
}

func TestBadRunner(t *testing.T) {
	file := filepath.Join(t.TempDir(), "runner")
	if err := os.WriteFile(file, []byte("#!/bin/sh\necho I am no runner\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	// A script is named by a path inside of /proc, which its interpreter cannot open any more.
	d := newDriver(t, func(o *Options) { o.Runner = file })
	_, err := d.Start(t.Context(), sandbox.Spec{ID: "b"}, nil)
	var u *sandbox.Unavailable
	if !errors.As(err, &u) || !strings.Contains(u.Reason, "the runner ended at once") {
		t.Errorf("a runner that is none: %v", err)
	}
	m, err := readMeta(filepath.Join(d.dir, "b"))
	if err == nil && m.alive() {
		t.Error("it is taken to run")
	}
}

func TestMounts(t *testing.T) {
	d := sharedDriver(t)
	shared := t.TempDir()
	if err := os.WriteFile(filepath.Join(shared, "f"), []byte("from outside"), 0o644); err != nil {
		t.Fatal(err)
	}
	for dir := shared; dir != "/" && dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	s, _ := start(t, d, sandbox.Spec{ID: "m", Mounts: []sandbox.Mount{
		{Source: shared, Target: "/mnt/read", ReadOnly: true}, {Source: shared, Target: "/workspace/write"},
		{Source: filepath.Join(shared, "f"), Target: "/opt/file", ReadOnly: true},
	}})
	if got := sh(t, s, "cat /mnt/read/f /opt/file; touch /mnt/read/x 2>/dev/null || echo no; touch /workspace/write/y && echo yes"); got != "from outsidefrom outsideno\nyes" {
		t.Errorf("inside: %q", got)
	}
	if _, err := os.Stat(filepath.Join(shared, "y")); err != nil {
		t.Error(err)
	}
}

func TestStaleLeftovers(t *testing.T) {
	d := newDriver(t)
	_, h := start(t, d, sandbox.Spec{ID: "stale"})
	if err := d.Stop(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(d.dir, "stale")
	// What a machine that lost power leaves: a reused process ID, and a socket without a server.
	m, err := readMeta(dir)
	if err != nil {
		t.Fatal(err)
	}
	m.PID, m.Started = os.Getpid(), "1"
	if err := errors.Join(m.write(dir), os.WriteFile(filepath.Join(dir, socketName), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if found := list(t, d); found != "stale stopped" {
		t.Errorf("List: %q", found)
	}
	s, _ := start(t, d, sandbox.Spec{ID: "stale"})
	sh(t, s, "true")
	// A meta that did not reach the disk: its users are found by the workspace.
	if err := errors.Join(d.Stop(t.Context(), h), os.WriteFile(filepath.Join(dir, metaName), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if again, err := readMeta(dir); err != nil || again.User != m.User {
		t.Errorf("the users of a lost meta: %d, wanted %d (%v)", again.User, m.User, err)
	}
	s, _ = start(t, d, sandbox.Spec{ID: "stale"})
	sh(t, s, "true")
}

func TestLongPath(t *testing.T) {
	d := driverAt(t, filepath.Join(t.TempDir(), strings.Repeat("long/", 40)))
	s, _ := start(t, d, sandbox.Spec{ID: strings.Repeat("y", 100)})
	if got := sh(t, s, "echo here"); got != "here" {
		t.Errorf("inside: %q", got)
	}
}

// A system of its own: here, one program in an otherwise empty folder.
func TestRootFS(t *testing.T) {
	root := t.TempDir()
	program, err := os.ReadFile(runnerFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(root, 0o755), os.Symlink("/var/tmp", filepath.Join(root, "tmp"))); err != nil {
		t.Fatal(err)
	}
	sandboxtest.PutProgram(t, filepath.Join(root, "probe"), program)
	d := newDriver(t, func(o *Options) { o.RootFS = root })
	s, _ := start(t, d, sandbox.Spec{ID: "r"})
	r, err := s.Run(t.Context(), sandbox.Process{Args: []string{"/probe", "probe"}}, nil)
	if err != nil || !strings.Contains(string(r.Stdout), "mount: EPERM") {
		t.Errorf("inside: %v %s", err, r.Stdout)
	}
	entries, err := os.ReadDir(root)
	if err != nil || len(entries) != 2 {
		t.Errorf("the system was changed: %v %v", entries, err)
	}
}

// Where overlays are refused, the root is a copy and the system is read-only.
func TestWithoutOverlays(t *testing.T) {
	d := sharedDriver(t)
	p, err := d.open(t.Context(), "plain", true)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.base.wait(t.Context()), d.chooseUser(p, plan{}), os.Mkdir(filepath.Join(p.dir, box.UpDir), 0o755), d.plainRoot(p)); err != nil {
		t.Fatal(err)
	}
	err = d.launch(t.Context(), p, plan{limits: d.limits, plain: true})
	p.close()
	if err != nil {
		t.Fatal(err)
	}
	s, _ := start(t, d, sandbox.Spec{ID: "plain"})
	if got := sh(t, s, "touch /etc/x /workspace/x /var/x /tmp/x ~/x && echo written; touch /usr/x 2>/dev/null || echo refused"); got != "written\nrefused" {
		t.Errorf("inside: %q", got)
	}
}

func TestCheck(t *testing.T) {
	d := newDriver(t)
	found := d.Check(t.Context())
	if len(found) < 6 {
		t.Errorf("only %d findings", len(found))
	}
	for _, f := range found {
		t.Logf("%+v", f)
		if f.Fatal {
			t.Errorf("%s: %s", f.What, f.Found)
		}
		if !f.OK && f.Fix == "" {
			t.Errorf("%s: nothing is said about what to do", f.What)
		}
	}
	if last := found[len(found)-1]; !last.OK {
		t.Errorf("the trial: %+v", last)
	}
	broken := newDriver(t, func(o *Options) { o.Runner = "/bin/true" })
	found = broken.Check(t.Context())
	if last := found[len(found)-1]; last.OK || !last.Fatal || last.Fix == "" {
		t.Errorf("the trial with a runner that is none: %+v", last)
	}
	if entries, err := filepath.Glob(d.dir + "/" + scrapPrefix + "*"); err != nil || len(entries) > 1 { // one may wait
		t.Errorf("left over: %v %v", entries, err)
	}
}

func TestView(t *testing.T) {
	d := sharedDriver(t)
	s, h := start(t, d, sandbox.Spec{ID: "v"})
	sh(t, s, "echo hello > f; ln -s /etc/passwd absolute; ln -s ../meta.json up; ln -s f inside")
	root, err := d.View(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, ok := range map[string]bool{"f": true, "inside": true, "absolute": false, "up": false, "../meta.json": false} {
		if _, err := root.ReadFile(name); (err == nil) != ok {
			t.Errorf("reading %s: %v", name, err)
		}
	}
}

func TestInspect(t *testing.T) {
	d := newDriver(t)
	s, h := start(t, d, sandbox.Spec{ID: "in"})
	sh(t, s, "echo hello > f; chmod 600 f")
	look := func() {
		t.Helper()
		i, err := d.Inspect(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		if got := sh(t, i, "cat f; stat -c %U f; touch f g 2>/dev/null || echo no"); got != "hello\nroot\nno" {
			t.Errorf("looking at it: %q", got)
		}
		i.Close()
		i.Close()
		<-i.Done()
	}
	look()
	if err := d.Stop(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	look()
	if found := list(t, d); found != "in stopped" {
		t.Errorf("looking woke it: %q", found)
	}
	d.closeSpare()
	if entries, err := filepath.Glob(d.dir + "/" + scrapPrefix + "*"); err != nil || len(entries) > 0 {
		t.Errorf("left over: %v %v", entries, err)
	}
	if _, err := d.Inspect(t.Context(), d.handle("nothing")); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("looking at nothing: %v", err)
	}
}

func TestSnapshot(t *testing.T) {
	d := sharedDriver(t)
	s, h := start(t, d, sandbox.Spec{ID: "from"})
	sh(t, s, `echo hello > f; ln f hard; ln -s f soft; mkdir -p d/e; chmod 700 d; printf '#!/bin/sh\necho tool' > /usr/local/bin/tool; chmod 755 /usr/local/bin/tool; echo x > /etc/mine; rm /etc/hostname; touch ~/h`)
	if err := d.Snapshot(t.Context(), h, "to"); err != nil {
		t.Fatal(err)
	}
	if err := d.Snapshot(t.Context(), h, "to"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over an existing one: %v", err)
	}
	if err := d.Snapshot(t.Context(), d.handle("nothing"), "to2"); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("of nothing: %v", err)
	}
	sh(t, s, "echo changed > f")
	c, _ := start(t, d, sandbox.Spec{ID: "to"})
	if got := sh(t, c, "cat f soft; stat -c '%h %U' hard; stat -c %a d; tool; cat /etc/mine; ls /etc/hostname ~ 2>&1; echo more >> f; cat hard"); got !=
		"hello\nhello\n2 root\n700\ntool\nx\nls: cannot access '/etc/hostname': No such file or directory\n/root:\nh\nhello\nmore" {
		t.Errorf("in the copy: %q", got)
	}
	if got := sh(t, s, "cat f"); got != "changed" {
		t.Errorf("in the original: %q", got)
	}
}

func TestUsage(t *testing.T) {
	d := sharedDriver(t)
	s, h := start(t, d, sandbox.Spec{ID: "u"})
	usage := func() int64 {
		t.Helper()
		n, err := d.Usage(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		return n.Bytes
	}
	sh(t, s, "head -c 1000000 /dev/urandom > first; sync first") // from here on the bytes count for more than the number of files
	before := usage()
	sh(t, s, "head -c 4000000 /dev/urandom > f; ln f g; head -c 1000000 /dev/urandom > /tmp/f; head -c 1000000 /dev/urandom > /etc/f; truncate -s 100M sparse; mkdir d; cp f d; chmod 0 d; sync f /tmp/f /etc/f d 2>/dev/null")
	if grown := usage() - before; grown < 10_000_000 || grown > 11_000_000 {
		t.Errorf("10 MB more are %d bytes more", grown)
	}
	if _, err := d.Usage(t.Context(), d.handle("nothing")); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("of nothing: %v", err)
	}
}

// The process that starts sandboxes may be killed: those that run are not affected, and others start.
func TestLauncherIsKilled(t *testing.T) {
	d := newDriver(t)
	s, _ := start(t, d, sandbox.Spec{ID: "first"})
	m, err := readMeta(filepath.Join(d.dir, "first"))
	if err != nil {
		t.Fatal(err)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", m.PID))
	if err != nil {
		t.Fatal(err)
	}
	var state string
	var launcher int
	if _, err := fmt.Sscan(string(stat[bytes.LastIndexByte(stat, ')')+1:]), &state, &launcher); err != nil {
		t.Fatal(err)
	}
	if launcher == os.Getpid() {
		t.Fatal("the sandbox was started by this process itself")
	}
	if err := syscall.Kill(launcher, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		other, _ := start(t, d, sandbox.Spec{ID: fmt.Sprint("other", i)})
		if got := sh(t, other, works); got != "fine" {
			t.Errorf("in sandbox %d: %s", i, got)
		}
	}
	if got := sh(t, s, works); got != "fine" {
		t.Errorf("in the first: %s", got)
	}
}

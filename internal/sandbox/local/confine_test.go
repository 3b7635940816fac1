package local

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/local/box"
	"deckhand/internal/sandbox/sandboxtest"
)

// putProbe puts the program with the probes into a workspace.
func putProbe(t *testing.T, d *Driver, h sandbox.Handle) {
	t.Helper()
	program, err := os.ReadFile(runnerFile)
	if err != nil {
		t.Fatal(err)
	}
	sandboxtest.PutProgram(t, filepath.Join(d.dir, h.ID, box.WorkDir, "probe"), program)
}

func TestConfined(t *testing.T) {
	d := sharedDriver(t)
	s, h := start(t, d, sandbox.Spec{ID: "c"})
	putProbe(t, d, h)
	got := map[string]string{}
	for line := range strings.Lines(sh(t, s, "./probe probe")) {
		name, answer, _ := strings.Cut(strings.TrimSpace(line), ": ")
		got[name] = answer
	}
	want := map[string]string{
		"clone3": "ENOSYS", "io_uring": "ENOSYS",
		"packet": "EAFNOSUPPORT", "packet garbage": "EAFNOSUPPORT", "vsock": "EAFNOSUPPORT", "alg": "EAFNOSUPPORT", "netfilter": "EAFNOSUPPORT", "pair": "EAFNOSUPPORT",
		"space": "ENOTSUP", "space kept": "ENOTSUP", "space by ioctl": "ENOTSUP", "hole": "ok",
		"root of runner": "EACCES", "memory of runner": "EACCES", "program of runner": "EACCES",
		"write output": "EROFS", "write sysctl": "EROFS", "way out": "ENETUNREACH", "pidfd of runner": "ok",
		"socket 1": "ok", "socket 2": "ok", "socket 10": "ok", "socket 16": "ok", "loopback": "ok", "pair 1": "ok", "own limit": "ok",
	}
	for _, name := range strings.Split("mount,umount,open_tree,fsopen,unshare,setns,clone,clone garbage,chroot,bpf,perf,userfaultfd,keyctl,kexec,module,reboot,settime,sethostname,by handle,syslog,personality,device,raw,limit of runner,sti,sti garbage,ptrace runner,read runner,descriptor of runner", ",") {
		want[name] = "EPERM"
	}
	for name, answer := range want {
		if got[name] != answer {
			t.Errorf("%s: %q, wanted %q", name, got[name], answer)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d probes answered, wanted %d: %v", len(got), len(want), got)
	}
	if got := sh(t, s, "exec ./probe foreign"); got != " (exit "+strconv.Itoa(128+int(syscall.SIGSYS))+")" {
		t.Errorf("calling by another interface: %q", got)
	}
}

func TestRightsAreGone(t *testing.T) {
	d := sharedDriver(t)
	s, _ := start(t, d, sandbox.Spec{ID: "r"})
	const none = "0000000000000000"
	want := "CapInh: " + none + "\nCapPrm: " + none + "\nCapEff: " + none + "\nCapBnd: " + none + "\nCapAmb: " + none + "\nNoNewPrivs: 1\nSeccomp: 2"
	if got := sh(t, s, `grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status | tr '\t' ' '`); got != want {
		t.Errorf("a program inside has\n%s", got)
	}
	// The runner itself, every thread of it.
	for _, line := range []string{"CapEff: " + none, "CapPrm: " + none, "NoNewPrivs: 1", "Seccomp: 2"} {
		name, _, _ := strings.Cut(line, ":")
		if got := sh(t, s, `grep -h '^`+name+`:' /proc/1/task/*/status | tr '\t' ' ' | sort -u`); got != line {
			t.Errorf("threads of the runner have %q, wanted %q", got, line)
		}
	}
	if got := sh(t, s, "echo x > /dev/null && head -c 1 /dev/urandom | wc -c; chmod 600 /dev/null 2>/dev/null || echo kept"); got != "1\nkept" {
		t.Errorf("devices: %q", got)
	}
	if got := sh(t, s, "id -u; ulimit -c"); got != "0\n0" {
		t.Errorf("user and core size: %q", got)
	}
	if got := sh(t, s, `grep -v nosuid /proc/mounts`); got != " (exit 1)" {
		t.Errorf("set-user-ID programs would work on %q", got)
	}
}

func TestSignalsDoNotReachRunner(t *testing.T) {
	d := sharedDriver(t)
	s, _ := start(t, d, sandbox.Spec{ID: "k"})
	for sig := 1; sig <= 31; sig++ {
		sh(t, s, "kill -"+strconv.Itoa(sig)+" 1 2>/dev/null; true")
	}
	if got := sh(t, s, "echo alive"); got != "alive" {
		t.Errorf("after all signals: %q", got)
	}
	// What is started is not deaf itself.
	if got := sh(t, s, "kill -TERM $$; echo deaf"); got != " (exit 143)" {
		t.Errorf("a program that gets SIGTERM: %q", got)
	}
}

func TestHostIsHidden(t *testing.T) {
	d := sharedDriver(t)
	other, _ := start(t, d, sandbox.Spec{ID: "other"})
	sh(t, other, "echo canary > /workspace/canary; echo canary > /tmp/canary; echo canary > ~/canary")
	s, _ := start(t, d, sandbox.Spec{ID: "h"})
	gone := []string{"/etc/shadow", "/etc/gshadow", "/etc/ssh", "/etc/ssl/private", "/etc/sudoers", "/srv", "/mnt", "/media", "/boot", "/sys",
		"/var/run/docker.sock", "/run/docker.sock", "/lost+found", d.dir, filepath.Join(d.dir, "other"), runnerFile, "/.deckhand/state"}
	for _, path := range gone {
		if got := sh(t, s, "ls -d "+path+" 2>/dev/null"); got != " (exit 2)" {
			t.Errorf("%s is there: %q", path, got)
		}
	}
	if got := sh(t, s, "ls -A /root /home /workspace /tmp /var/tmp /run /var/log/apt"); strings.Contains(got, "canary") ||
		strings.Join(strings.Fields(got), "") != "/home:/root:/run:/tmp:/var/log/apt:/var/tmp:/workspace:" {
		t.Errorf("there is something in fresh folders: %q", got)
	}
	for _, name := range []string{"machine-id", "hosts", "hostname", "resolv.conf"} {
		ours, err := os.ReadFile("/etc/" + name)
		if err == nil && name != "hosts" && len(ours) > 0 && sh(t, s, "cat /etc/"+name) == strings.TrimSpace(string(ours)) {
			t.Errorf("/etc/%s is the machine's", name)
		}
	}
	if got := sh(t, s, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"); strings.Contains(got, filepath.Base(os.Args[0])) || !strings.HasPrefix(got, "runner box") {
		t.Errorf("processes: %q", got)
	}
	if got := sh(t, s, "ls /proc/keys /proc/timer_list >/dev/null; cat /proc/keys /proc/timer_list /proc/acpi/* 2>/dev/null"); strings.TrimSuffix(got, " (exit 1)") != "" {
		t.Errorf("/proc tells %q", got)
	}
	if got := sh(t, s, "env | grep -v -E '^(PATH|HOME|PWD|_|SHLVL|OLDPWD)='"); got != " (exit 1)" {
		t.Errorf("environment: %q", got)
	}
	if got := sh(t, s, "ls /proc/self/fd | tr '\\n' ' '"); got != "0 1 2 3 " {
		t.Errorf("descriptors: %q", got)
	}
	masked, _ := d.base.hidden()
	for _, path := range masked {
		if got := sh(t, s, "cat '"+path+"' 2>/dev/null; ls -A '"+path+"' 2>/dev/null"); got != "" && got != path && !strings.HasSuffix(got, " (exit 2)") {
			t.Errorf("%s is not masked: %q", path, got)
		}
	}
}

func TestHostIsUntouched(t *testing.T) {
	d := sharedDriver(t)
	s, _ := start(t, d, sandbox.Spec{ID: "u"})
	programs, err := os.ReadDir("/usr/bin")
	if err != nil {
		t.Fatal(err)
	}
	got := sh(t, s, "touch /usr/local/bin/deckhand-test /etc/deckhand-test /opt/deckhand-test /deckhand-test && echo made; touch /usr/bin/deckhand-test 2>/dev/null && echo mapped; rm -rf /usr/bin 2>/dev/null; true")
	if want := map[bool]string{true: "made\nmapped", false: "made"}[d.rights.Trees]; strings.TrimSuffix(got, " (exit 127)") != want && strings.TrimSuffix(got, " (exit 1)") != want {
		t.Errorf("inside: %q, wanted %q", got, want)
	}
	for _, path := range []string{"/usr/local/bin/deckhand-test", "/etc/deckhand-test", "/opt/deckhand-test", "/deckhand-test", "/usr/bin/deckhand-test"} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s was made on the machine", path)
		}
	}
	after, err := os.ReadDir("/usr/bin")
	if err != nil || len(after) != len(programs) {
		t.Errorf("there were %d programs in /usr/bin, and now %d (%v)", len(programs), len(after), err)
	}
	next, _ := start(t, d, sandbox.Spec{ID: "next"})
	if got := sh(t, next, "ls /usr/bin | wc -l; ls /deckhand-test 2>/dev/null"); !strings.HasPrefix(got, strconv.Itoa(len(programs))) {
		t.Errorf("the next sandbox sees %q, wanted %d programs", got, len(programs))
	}
}

func TestForkBomb(t *testing.T) {
	d := sharedDriver(t)
	s, h := start(t, d, sandbox.Spec{ID: "f", Limits: sandbox.Limits{Processes: 60}})
	got := sh(t, s, `i=0; while [ $i -lt 200 ]; do sleep 1000 >/dev/null 2>&1 & i=$((i+1)); done 2>&1; echo all`)
	if !strings.Contains(got, "fork") || strings.Contains(got, "all") {
		t.Errorf("200 processes: %q", got)
	}
	if running := strings.Count(processes(t, d, h), "sleep"); running < 20 || running > 60 {
		t.Errorf("%d processes run", running)
	}
	again, err := d.Attach(t.Context(), h)
	if err != nil {
		t.Fatalf("the runner does not answer: %v", err)
	}
	again.Close()
}

// processes are the names of what runs in a sandbox, as seen from outside.
func processes(t *testing.T, d *Driver, h sandbox.Handle) string {
	t.Helper()
	m, err := readMeta(filepath.Join(d.dir, h.ID))
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("ps", "-o", "comm=", "--ppid", strconv.Itoa(m.PID)).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestMemoryBomb(t *testing.T) {
	d := sharedDriver(t)
	s, h := start(t, d, sandbox.Spec{ID: "m", Limits: sandbox.Limits{Memory: 200 << 20}})
	putProbe(t, d, h)
	got := sh(t, s, "./probe eat 2>/dev/null")
	want := " (exit 137)" // killed
	if !d.groups.Has("memory") {
		want = " (exit 2)" // refused, and given up
	}
	if got != want {
		t.Errorf("taking too much memory: %q, wanted %q", got, want)
	}
	if got := sh(t, s, "echo alive"); got != "alive" {
		t.Errorf("after that: %q", got)
	}
}

func TestFileSize(t *testing.T) {
	d := sharedDriver(t)
	s, _ := start(t, d, sandbox.Spec{ID: "d", Limits: sandbox.Limits{Disk: 1 << 20}})
	if got := sh(t, s, "head -c 2000000 /dev/zero > f 2>/dev/null; stat -c %s f"); got != "1048576" {
		t.Errorf("a file larger than the disk limit has %s bytes", got)
	}
	// posix_fallocate writes to each block where the kernel cannot allocate them.
	if got := sh(t, s, "fallocate -x -l 512K g && stat -c %b g"); got != "1024" {
		t.Errorf("allocating space below the limit: %q", got)
	}
}

func TestDestroyHostileTree(t *testing.T) {
	d := sharedDriver(t)
	s, h := start(t, d, sandbox.Spec{ID: "t"})
	outside := filepath.Join(t.TempDir(), "keep")
	if err := os.WriteFile(outside, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	sh(t, s, `mkdir -p a/b/c; touch a/b/c/f; chmod 0 a/b/c a/b a; ln -s `+outside+` l; ln -s `+filepath.Dir(outside)+` ld; mkfifo p`)
	putProbe(t, d, h)
	if got := sh(t, s, "./probe deep"); got != "3000 deep" {
		t.Errorf("making a deep tree: %q", got)
	}
	if err := d.Destroy(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(d.dir, "t")); err == nil {
		t.Error("it is still there")
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
}

func TestLimitsAreSet(t *testing.T) {
	d := sharedDriver(t)
	if len(d.groups.Missing) > 0 {
		if os.Geteuid() == 0 {
			skip(t, "control groups cannot be used here: %v", d.groups.Missing)
		}
		return // this user has no group
	}
	_, h := start(t, d, sandbox.Spec{ID: "l", Limits: sandbox.Limits{CPUs: 0.5, Memory: 300 << 20, Processes: 77}})
	m, err := readMeta(filepath.Join(d.dir, "l"))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, dir := range m.Groups {
		for _, file := range []string{"memory.limit_in_bytes", "memory.max", "pids.max", "cpu.cfs_quota_us", "cpu.max"} {
			if b, err := os.ReadFile(filepath.Join(dir, file)); err == nil {
				all = append(all, strings.Fields(string(b))[0])
			}
		}
		procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil || strings.TrimSpace(string(procs)) != strconv.Itoa(m.PID) {
			t.Errorf("in %s are %q, wanted %d (%v)", dir, procs, m.PID, err)
		}
	}
	for _, want := range []string{strconv.Itoa(300 << 20), "77", "50000"} {
		if !strings.Contains(" "+strings.Join(all, " ")+" ", " "+want+" ") {
			t.Errorf("limits are %v, wanted one to be %s", all, want)
		}
	}
	if err := d.Stop(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	for _, dir := range m.Groups {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is still there", dir)
		}
	}
}

// skip says loudly what could not be tried.
func skip(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format, args...)
	}
	t.Skipf("SKIPPED: "+format, args...)
}

// In the unified hierarchy, a runner is born into its group.
func TestBornIntoUnifiedGroup(t *testing.T) {
	d := newDriver(t)
	if d.groups.V2 == "" {
		if os.Geteuid() != 0 {
			return // this user has no group
		}
		mounts, err := exec.Command("findmnt", "-n", "-o", "TARGET", "-t", "cgroup2").Output()
		if err != nil {
			skip(t, "there is no unified hierarchy: %v", err)
		}
		// It has no controllers, when others have them; processes can be in it all the same.
		d.groups.V2 = filepath.Join(strings.TrimSpace(string(mounts)), "deckhand-test")
		if err := os.Mkdir(d.groups.V2, 0o755); err != nil {
			skip(t, "the unified hierarchy cannot be used: %v", err)
		}
		t.Cleanup(func() { // after the driver's, which needs it
			if err := os.Remove(d.groups.V2); err != nil {
				t.Error(err)
			}
		})
		t.Cleanup(func() { d.Close() })
	}
	s, h := start(t, d, sandbox.Spec{ID: "v2"})
	sh(t, s, "true")
	m, err := readMeta(filepath.Join(d.dir, "v2"))
	if err != nil {
		t.Fatal(err)
	}
	procs, err := os.ReadFile(filepath.Join(d.groups.V2, d.groupPrefix()+"v2", "cgroup.procs"))
	if err != nil || strings.TrimSpace(string(procs)) != strconv.Itoa(m.PID) {
		t.Errorf("in the group are %q, wanted %d (%v)", procs, m.PID, err)
	}
	if err := d.Destroy(t.Context(), h); err != nil {
		t.Fatal(err)
	}
}

// A pipe that the server was started with ends with the server, not with its sandboxes.
func TestInheritedFilesAreClosed(t *testing.T) {
	if os.Getenv(runnerEnv) != "" {
		return // the real runner cannot be built here
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], 0); err != nil { // without close-on-exec, as a shell passes it on
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	name, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(pipe[1]))
	if err != nil {
		t.Fatal(err)
	}
	d := newDriver(t, func(o *Options) { o.Runner = sandboxtest.Runner(t) })
	s, _ := start(t, d, sandbox.Spec{ID: "i"})
	if got := sh(t, s, "echo up"); got != "up" {
		t.Fatalf("the sandbox says %q", got)
	}
	m, err := readMeta(filepath.Join(d.dir, "i"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("/proc/" + strconv.Itoa(m.PID) + "/fd/*")
	if err != nil || len(files) < 3 {
		t.Fatalf("the runner has %d files: %v", len(files), err)
	}
	for _, f := range files {
		if to, err := os.Readlink(f); err == nil && to == name {
			t.Errorf("the runner has %s of the server", name)
		}
	}
}

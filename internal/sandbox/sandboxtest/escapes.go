package sandboxtest

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"deckhand/internal/sandbox"
	"deckhand/internal/soak"
)

// escapeTests try to get out. Each attempt is a command that runs inside; it
// must be refused, and what it aimed at must be untouched.
var escapeTests = []test[*prison]{
	{name: "Rights", run: rights},
	{name: "SystemCalls", run: systemCalls},
	{name: "SetUID", run: setUID},
	{name: "HostFiles", run: hostFiles},
	{name: "OtherWorkspace", run: otherWorkspace},
	{name: "Kernel", run: kernelFiles},
	{name: "Devices", run: devices},
	{name: "Processes", run: otherProcesses},
	{name: "Runner", run: runnerMemory},
	{name: "RunnerFiles", run: runnerFiles},
	{name: "Connections", run: connections},
	{name: "Descriptors", run: descriptors},
	{name: "Environment", run: leakedEnvironment},
	{name: "Mounts", run: mountTable},
	{name: "OnlyLoopback", run: onlyLoopback},
	{name: "HostNetwork", run: hostNetwork},
	{name: "OtherNetwork", run: otherNetwork},
	{name: "Outside", run: outsideNetwork},
	{name: "AbstractSockets", run: abstractSockets},
	{name: "EngineSockets", run: engineSockets},
}

// limitTests use up what there is.
var limitTests = []test[Options]{
	{name: "ForkBomb", run: forkBomb, when: func(o Options) bool { return o.Limits }},
	{name: "FullOfProcesses", run: full, when: func(o Options) bool { return o.Limits }},
	{name: "MemoryBomb", run: memoryBomb, when: func(o Options) bool { return o.Limits }},
	{name: "Processors", run: processors, when: func(o Options) bool { return o.Limits }},
	{name: "Disk", run: diskFill, when: func(o Options) bool { return o.Disk }},
	{name: "KillRunner", run: killRunner},
}

// prison is two sandboxes and the helper in the first.
type prison struct {
	*box         // from which we try
	other *box   // which must not be reached
	h     string // the helper inside
	token string // in everything that must not be seen
	made  *testing.T
}

// Escapes tries to leave the sandbox. It is for drivers that are Confined.
func Escapes(t *testing.T, o Options) {
	soak.NotShort(t, "runs a whole suite")
	token := fmt.Sprintf("canary%d", os.Getpid())
	for _, name := range []string{"DECKHAND_CANARY", "CANARY"} { // before any driver is made
		t.Setenv(name, token)
	}
	apart := false
	t.Run("Walls", func(t *testing.T) {
		d := driver(t, o, refuseAll)
		p := &prison{box: enter(t, o, d, sandbox.Spec{}), other: enter(t, o, d, sandbox.Spec{ID: "other"}), token: token, made: t}
		p.h = p.program(t)
		// Nothing below may be tried before this is certain: without walls it would
		// leave, kill this machine's processes and write its files.
		if apart = t.Run("WallsStand", func(t *testing.T) { wallsStand(t, p) }); !apart {
			t.Fatal("there are no walls; nothing else is tried")
		}
		for _, test := range escapeTests {
			t.Run(test.name, func(t *testing.T) { test.run(t, p) })
		}
	})
	if !apart {
		return
	}
	for _, test := range limitTests {
		if test.when == nil || test.when(o) {
			t.Run(test.name, func(t *testing.T) { test.run(t, o) })
		}
	}
}

// wallsStand: network, files and processes are others than those of this
// machine. It only looks.
func wallsStand(t *testing.T, p *prison) {
	onlyLoopback(t, p)
	file := canary(t, os.TempDir(), p.token)
	if file == "" {
		t.Fatal("no canary could be put anywhere")
	}
	p.refused(t, "open read %s", file)
	self, err := os.Executable()
	must(t, err)
	if out := p.ok(t, "%s ps", p.h); strings.Contains(out, self) {
		t.Errorf("this test can be seen from inside: %s", out)
	}
	for _, space := range []string{"pid", "mnt", "net"} {
		ours, err := os.Readlink("/proc/self/ns/" + space)
		must(t, err)
		if theirs := p.ok(t, "readlink /proc/self/ns/%s", space); theirs == ours {
			t.Errorf("the %s namespace is that of this machine", space)
		}
	}
}

// refused runs the helper and checks that what it tried was refused.
func (p *prison) refused(t *testing.T, format string, args ...any) string {
	t.Helper()
	what := fmt.Sprintf(format, args...)
	r := p.sh(t, "%s %s", p.h, what)
	if r.Exit != 1 || !strings.Contains(r.Output, "refused:") {
		t.Errorf("%s was not refused (exit %d): %s", what, r.Exit, shorten(r.Output))
	}
	return r.Output
}

// rights: what runs inside has none, and gets none.
func rights(t *testing.T, p *prison) {
	status := func(how, text string) {
		t.Helper()
		for _, line := range []string{"CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000",
			"CapAmb:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"} {
			contains(t, "the status of "+how, text, line)
		}
	}
	status("a shell's child", p.ok(t, "cat /proc/self/status"))
	status("a shell", p.ok(t, "cat /proc/$$/status"))
	r, err := p.Run(within(t), sandbox.Process{Args: []string{"cat", "/proc/self/status"}}, nil)
	must(t, err)
	status("a program", string(r.Stdout))
	term, err := p.Terminal(within(t), sandbox.TerminalParams{Name: "rights", Rows: 50, Cols: 200})
	must(t, err)
	defer term.Close()
	_, err = term.Write([]byte("cat /proc/self/status > rights; exit\n"))
	must(t, err)
	for buf := make([]byte, 1024); err == nil; {
		_, err = term.Read(buf)
	}
	status("a terminal's child", p.get(t, "rights"))
}

// systemCalls: what no program needs, the kernel refuses before it looks at it.
func systemCalls(t *testing.T, p *prison) {
	list := p.sh(t, "%s syscall none", p.h).Output
	_, list, _ = strings.Cut(list, "[")
	list, _, _ = strings.Cut(list, "]")
	names := strings.Fields(list)
	if len(names) < 40 {
		t.Fatalf("the helper knows only %v", names)
	}
	for _, name := range names {
		out := p.refused(t, "syscall %s", name)
		word, _, _ := strings.Cut(strings.TrimPrefix(out, "refused: "), " ")
		switch word {
		case "EPERM", "EACCES", "ENOSYS", "EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT":
		case "EIO", "ENOTTY", "EINVAL": // how terminals refuse, and users that there are none of
			if !strings.HasPrefix(name, "tioc") && name != "setuid" {
				t.Errorf("%s was refused with %s, which says that it was looked at", name, word)
			}
		default:
			t.Errorf("%s was refused with %s, which says that it was looked at", name, word)
		}
	}
	for _, text := range []string{
		"unshare -Ur true", "unshare -m true", "mount -t tmpfs none /mnt", "umount /proc", "chroot / true", "mknod node b 254 0", "nsenter -t 1 -m true", "mount -o remount,rw /",
	} {
		if r := p.sh(t, "%s", text); r.Exit == 0 {
			t.Errorf("%s succeeded: %s", text, r.Output)
		}
	}
}

// setUID: the bit gives nothing.
func setUID(t *testing.T, p *prison) {
	before := p.ok(t, "%s rights", p.h)
	p.ok(t, "cp %s copy && chmod 6755 copy", p.h)
	same(t, "what the bit gives", p.ok(t, "./copy rights"), before)
	contains(t, "rights", before, "CapEff:\t0000000000000000")
	p.sh(t, "for id in 0 1 1000 65534; do chown $id:$id copy; chmod 6755 copy; ./copy rights; done")
	same(t, "the rights that the bit gives", p.ok(t, "./copy rights"), before)
}

// canary is a file on this machine that must not be visible inside.
func canary(t *testing.T, dir, token string) string {
	t.Helper()
	made, err := os.MkdirTemp(dir, token+"-")
	if err != nil {
		t.Logf("no canary in %s: %v", dir, err)
		return ""
	}
	t.Cleanup(func() { _ = os.RemoveAll(made) })
	must(t, os.Chmod(made, 0o755))
	file := made + "/" + token
	must(t, os.WriteFile(file, []byte(token+"\n"), 0o644))
	return file
}

// hostFiles: files of this machine stay invisible, even those that all its users may read.
func hostFiles(t *testing.T, p *prison) {
	home, _ := os.UserHomeDir()
	state := ""
	if p.options.State != nil {
		state = p.options.State(p.made) // that of the test which the driver was made for
	}
	made := 0
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm", "/run", home, os.TempDir()} {
		if dir == "" {
			continue
		}
		if file := canary(t, dir, p.token); file != "" {
			made++
			p.refused(t, "open read %s", file)
			p.refused(t, "open write %s", file)
			p.refused(t, "open read /proc/1/root%s", file)
			p.refused(t, "open read /proc/self/root/../..%s", file)
		}
	}
	if made == 0 {
		t.Fatal("no canary could be put anywhere")
	}
	out := p.ok(t, "%s find 5 %s", p.h, p.token)
	if strings.Contains(out, "found") {
		t.Errorf("canaries were found inside: %s", out)
	}
	if state != "" {
		entries, err := os.ReadDir(state)
		must(t, err)
		if len(entries) == 0 {
			t.Fatalf("the driver keeps nothing in %s; is that its folder?", state)
		}
		for _, e := range entries {
			if r := p.sh(t, "ls %s/%s", state, e.Name()); r.Exit == 0 {
				t.Errorf("the driver's own %s can be seen: %s", e.Name(), r.Output)
			}
		}
	}
	shadow, err := os.ReadFile("/etc/shadow")
	if err == nil {
		var w bytes.Buffer
		if r, err := p.Run(within(t), sandbox.Process{Args: []string{"cat", "/etc/shadow"}}, nil); err == nil {
			w.Write(r.Stdout)
		}
		if bytes.Equal(w.Bytes(), shadow) {
			t.Error("the passwords of this machine can be read")
		}
	}
	// The runner reads files for us. It must not see more than those inside.
	for _, file := range []string{"/proc/1/root/etc/shadow", "/proc/1/environ", "/proc/1/mem"} {
		var w strings.Builder
		if _, err := p.Read(within(t), sandbox.ReadParams{PathParams: at(file), Length: 100_000}, &w); err == nil && strings.Contains(w.String(), p.token) {
			t.Errorf("the runner gave away %s", file)
		}
	}
	if t.Failed() {
		return // what follows would write this machine's files
	}
	// Changing the system inside changes nothing here.
	for _, file := range []string{"/etc/hostname", "/etc/passwd", "/usr/bin/env", "/bin/sh"} {
		was, err := os.ReadFile(file)
		p.sh(t, "echo %s >> %s", p.token, file)
		is, again := os.ReadFile(file)
		if !bytes.Equal(was, is) || (err == nil) != (again == nil) {
			t.Errorf("%s of this machine was changed from inside", file)
		}
	}
}

// otherWorkspace: nor that of a neighbour.
func otherWorkspace(t *testing.T, p *prison) {
	name := p.token + "-neighbour"
	p.other.put(t, name, "secret of "+p.token)
	out := p.ok(t, "%s find 6 %s", p.h, name)
	if strings.Contains(out, "found") {
		t.Errorf("the neighbour's file was found: %s", out)
	}
	if r := p.sh(t, "cat %s", p.other.root+"/"+name); r.Exit == 0 {
		t.Errorf("the neighbour's file was read: %s", r.Output)
	}
	for _, file := range []string{"../" + name, "../other/ws/" + name, "/proc/1/cwd/" + name} {
		var w strings.Builder
		if _, err := p.Read(within(t), sandbox.ReadParams{PathParams: at(file)}, &w); err == nil {
			t.Errorf("the runner read %s: %s", file, w.String())
		}
	}
}

// kernelFiles: the kernel's own files are not for those inside.
func kernelFiles(t *testing.T, p *prison) {
	for _, file := range []string{
		"/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hostname", "/proc/sys/kernel/panic",
		"/proc/sys/vm/drop_caches", "/proc/sys/vm/overcommit_memory", "/proc/sys/fs/file-max", "/proc/sys/fs/binfmt_misc/register", "/proc/irq/0/smp_affinity",
		"/proc/1/mem", "/proc/acpi/wakeup", "/proc/bus/pci/00",
		"/sys/kernel/uevent_helper", "/sys/power/state", "/sys/kernel/mm/ksm/run", "/sys/module/kernel/parameters/panic", "/sys/fs/cgroup/cgroup.procs",
		"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/pids/pids.max", "/sys/fs/cgroup/release_agent",
	} {
		p.refused(t, "open write %s", file)
	}
	// These open, and refuse what is written.
	for file, word := range map[string]string{
		"/proc/1/comm": "x", "/proc/1/attr/current": "x", "/proc/1/uid_map": "'0 0 1'", "/proc/self/uid_map": "'0 0 1'", "/proc/self/oom_score_adj": "-999",
	} {
		p.refused(t, "write %s %s", file, word)
	}
	for _, file := range []string{"/proc/kcore", "/proc/kmsg", "/proc/1/mem", "/proc/1/environ", "/proc/1/maps", "/proc/kpagecount", "/proc/vmcore", "/sys/kernel/debug/x", "/proc/1/stack"} {
		// Where it is masked by an empty file, it opens and holds nothing.
		if r := p.sh(t, "%s open read %s", p.h, file); r.Exit != 1 && strings.TrimSpace(r.Output) != "empty" {
			t.Errorf("reading %s was not refused: %s", file, r.Output)
		}
	}
}

func devices(t *testing.T, p *prison) {
	names := []string{"mem", "kmem", "port", "kmsg", "vda", "sda", "nvme0n1", "vsock", "vhost-vsock", "kvm", "fuse", "net/tun", "loop-control", "mapper/control", "tty0", "console",
		"uinput", "snapshot", "hpet", "cuse", "autofs", "btrfs-control", "rtc0", "watchdog", "userfaultfd", "dri/card0", "input/event0"}
	entries, err := os.ReadDir("/dev")
	must(t, err)
	for _, e := range entries { // whatever disks there are
		if info, err := e.Info(); err == nil && info.Mode()&os.ModeDevice != 0 && info.Mode()&os.ModeCharDevice == 0 {
			names = append(names, e.Name())
		}
	}
	for _, name := range names {
		p.refused(t, "open read /dev/%s", name)
		p.refused(t, "open write /dev/%s", name)
	}
	same(t, "the usual devices", p.ok(t, "echo x > /dev/null; head -c 3 /dev/zero | wc -c | tr -d ' '; head -c 3 /dev/urandom | wc -c | tr -d ' '; test -c /dev/full && test -e /dev/tty && test -d /dev/pts && test -w /dev/shm && echo yes"), "3\n3\nyes")
}

// otherProcesses: those of the machine and of neighbours are not there.
func otherProcesses(t *testing.T, p *prison) {
	g := p.other.start(t, sandbox.Command{Text: "echo ready; sleep 98765"})
	g.shows(t, "ready")
	out := p.ok(t, "%s ps", p.h)
	self, err := os.Executable()
	must(t, err)
	for _, word := range []string{"98765", self, "go test", p.token} {
		if strings.Contains(out, word) {
			t.Errorf("a process with %q can be seen: %s", word, out)
		}
	}
	contains(t, "its own processes", out, p.h)
	p.refused(t, "signal 0 %d", os.Getpid()+1_000_000) // no such process, as a control
	// The number means no process inside, or one of those inside; either way the test lives on.
	p.sh(t, "kill -9 %d", os.Getpid())
	must(t, p.other.Interrupt(within(t), "", quiet))
	g.wait(t)
}

// runnerMemory: no process reads the runner's memory.
func runnerMemory(t *testing.T, p *prison) {
	pids := map[string]bool{"1": true}
	pids[p.ok(t, "echo $PPID")] = true
	for pid := range pids {
		p.refused(t, "ptrace %s", pid)
	}
	// A control: its own children it may look into.
	if r := p.sh(t, "sleep 1000 & %s ptrace $!; kill -9 $!", p.h); !strings.Contains(r.Output, "done") {
		t.Errorf("the attempts would have failed with any process: %s", r.Output)
	}
}

// runnerFiles: nor changes what it keeps, nor speaks to it.
func runnerFiles(t *testing.T, p *prison) {
	out := p.ok(t, "%s sockets", p.h)
	for _, name := range strings.Fields(out) {
		if name != "" {
			p.refused(t, "command %s", name)
		}
	}
	found := p.ok(t, "%s find 6 fence runner.sock .sock process.json results", p.h)
	for line := range strings.Lines(found) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "found "); ok && !strings.HasPrefix(path, "/etc/") && !strings.HasPrefix(path, "/var/lib/") {
			p.refused(t, "open write %s", path)
			p.refused(t, "command %s", path)
		}
	}
	for _, file := range []string{"/proc/1/exe", "/proc/1/root/.deckhand", "/.deckhand/runner", "/.deckhand/run/runner.sock"} {
		p.refused(t, "open write %s", file)
	}
	texts := []string{
		"test -s /.deckhand/runner && echo x > /.deckhand/runner", "test -s /.deckhand/runner && rm -f /.deckhand/runner", "mv /.deckhand /deckhand-moved",
		"echo 1 > /.deckhand/state/fence", "touch /.deckhand/state/x", "cat /.deckhand/state/results/*", "touch /.deckhand/run/x", "chmod 777 /.deckhand/run /.deckhand/state; touch /.deckhand/run/x",
		"mv /.deckhand/run /.deckhand/run2", "test -s /.deckhand/runner && mkdir -p /.deckhand/new",
		"test -d /.deckhand/run && rm -f /.deckhand/run/runner.sock && ! ls /.deckhand/run/runner.sock",
	}
	for _, text := range texts {
		if r := p.sh(t, "%s", text); r.Exit == 0 {
			t.Errorf("%s succeeded: %s", text, r.Output)
		}
	}
	// Its results and its claim cannot be forged: it remembers.
	must(t, p.Under(7).Ack(within(t), "x"))
	p.sh(t, "find / -xdev -name fence -exec sh -c 'echo 1 > {}' \\; 2>/dev/null")
	fails(t, "an old claim after an attempt to change it", p.Under(6).Ack(within(t), "x"), sandbox.ErrFenced)
}

// connections: no process takes over what connects the server to the runner.
func connections(t *testing.T, p *prison) {
	if !p.options.Connectors {
		t.Skip("there are no connectors")
	}
	const all = 6
	g := p.start(t, sandbox.Command{Shell: "thief", Text: fmt.Sprintf("%s connectors %d", p.h, all)})
	for n := 1; n < all; n++ { // beside the one of this connection
		g.shows(t, fmt.Sprintf("tried %d", n))
		again := attach(t, p.options, p.driver, p.handle)
		same(t, "a command over another connection", again.ok(t, "echo well"), "well")
	}
	if r := g.wait(t); r.Exit != 0 || strings.Contains(r.Output, "taken over") || strings.Contains(r.Output, "done") {
		t.Errorf("connectors were taken over (exit %d): %s", r.Exit, r.Output)
	}
}

// descriptors: no process inherits a file of the server.
func descriptors(t *testing.T, p *prison) {
	if out := p.ok(t, "%s fds", p.h); strings.Contains(out, "inherited") {
		t.Errorf("a command inherits %s", out)
	}
	r, err := p.Run(within(t), sandbox.Process{Args: []string{p.h, "fds"}}, nil)
	must(t, err)
	same(t, "what a program inherits", string(r.Stdout), "")
	// A file by a name that does not lead to it here is one of this machine.
	leaked := p.ok(t, `for f in /proc/$$/fd/*; do to=$(readlink $f); case $to in pipe:*|"") ;; *) test -e "$to" || echo "$to" ;; esac; done`)
	same(t, "files of this machine that the shell has open", leaked, "")
}

func leakedEnvironment(t *testing.T, p *prison) {
	for how, env := range map[string]string{
		"a shell": p.ok(t, "set; env"), "what can be seen of processes": p.ok(t, "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'; cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '"),
	} {
		for _, word := range []string{p.token, "DECKHAND_"} {
			if i := strings.Index(env, word); i >= 0 {
				t.Errorf("%s has %s", how, shorten(env[max(0, i-40):min(len(env), i+80)]))
			}
		}
	}
}

// mountTable: what belongs to the kernel is read-only. That it names the folder
// on this machine behind each mount cannot be helped.
func mountTable(t *testing.T, p *prison) {
	table := p.ok(t, "cat /proc/self/mountinfo")
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) > 5 && (f[4] == "/proc/sys" || f[4] == "/sys") && !strings.HasPrefix(f[5], "ro") {
			t.Errorf("%s can be written", f[4])
		}
	}
	if strings.Contains(table, p.token) {
		t.Errorf("there are canaries in the table of mounts:\n%s", table)
	}
}

// engineSockets: access to the engine means access to the machine.
func engineSockets(t *testing.T, p *prison) {
	for _, name := range []string{"/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock", "/run/user/0/podman/podman.sock",
		"/run/dbus/system_bus_socket", "/run/systemd/private", "/run/crio/crio.sock"} {
		p.refused(t, "unix %s", name)
	}
}

// after is a number that the helper printed after a word.
func after(t *testing.T, output, word string) int {
	t.Helper()
	_, rest, ok := strings.Cut(output, word+" ")
	n, err := strconv.Atoi(strings.TrimSpace(strings.SplitN(rest, "\n", 2)[0]))
	if !ok || err != nil {
		t.Fatalf("the helper did not say %q: %q", word, output)
	}
	return n
}

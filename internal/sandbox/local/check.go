package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/local/box"
	"deckhand/internal/sandbox/local/launcher"
)

// startFix says what to do about a failed start, "" if we do not know.
func startFix(err error) string {
	var at *fs.PathError
	switch {
	case errors.Is(err, unix.ENOSPC) && errors.As(err, &at) && at.Op != "fork/exec":
		return "The disk is full: free some space in the data directory."
	case errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EUSERS):
		return "The limit of namespaces is reached: raise the limits in /proc/sys/user/max_*_namespaces, for example: sysctl -w user.max_user_namespaces=15000."
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || strings.Contains(err.Error(), "not permitted") || strings.Contains(err.Error(), "permission denied"):
		if fix := namespaceFix(); fix != "" {
			return fix
		}
		return "If the server was started with chroot, start it without: the kernel allows no user namespaces there. If it runs in a container, the container needs --security-opt seccomp=unconfined --security-opt systempaths=unconfined (and apparmor=unconfined, where there is AppArmor)."
	}
	return ""
}

// sysctl reads a setting of the kernel, "" if it has none such.
func sysctl(name string) string {
	b, err := os.ReadFile("/proc/sys/" + strings.ReplaceAll(name, ".", "/"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// namespaceFix says which setting of the machine keeps us from user namespaces.
func namespaceFix() string {
	if sysctl("user.max_user_namespaces") == "0" {
		return "User namespaces are disabled; enable them: sysctl -w user.max_user_namespaces=15000."
	}
	if os.Geteuid() == 0 {
		return ""
	}
	if sysctl("kernel.unprivileged_userns_clone") == "0" {
		return "Only root can create user namespaces: run sysctl -w kernel.unprivileged_userns_clone=1, or run the server as root."
	}
	if sysctl("kernel.apparmor_restrict_unprivileged_userns") == "1" {
		return "AppArmor restricts user namespaces: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or give the server an AppArmor profile that allows userns."
	}
	return ""
}

// Check implements sandbox.Checker.
func (d *Driver) Check(ctx context.Context) []sandbox.Finding {
	found := []sandbox.Finding{checkNamespaces(), d.checkUsers()}
	found = append(found, d.checkLimits(), checkSignals(), checkFilter())
	trial := d.trial(ctx)
	_, unmapped := d.base.hidden()
	if unmapped != "" && d.rights.Ranges {
		found = append(found, sandbox.Finding{What: "installing software in sandboxes", Found: "system folders are read-only in sandboxes: " + unmapped,
			Fix: "make these files readable for all users, move them out of /usr, or set --sandbox-rootfs"})
	}
	d.mu.Lock()
	notes := make([]string, 0, len(d.told))
	for note := range d.told {
		notes = append(notes, note)
	}
	d.mu.Unlock()
	slices.Sort(notes)
	for _, note := range notes {
		found = append(found, sandbox.Finding{What: "restriction", Found: note, Fix: "sandboxes work with this restriction; a newer kernel, or a data directory on ext4, xfs or btrfs, may remove it"})
	}
	return append(found, trial)
}

// Possible is the quick part of Check: whether the machine has namespaces at all. It takes as long as starting a program.
func (d *Driver) Possible() error {
	for _, f := range []sandbox.Finding{checkNamespaces(), checkFilter()} {
		if f.Fatal {
			return fmt.Errorf("%s: %s. %s", f.What, f.Found, f.Fix)
		}
	}
	err := error(unix.ETXTBSY) // until no process that is being forked has a new runner open for writing
	for tries := 0; errors.Is(err, unix.ETXTBSY) && tries < 1000; tries++ {
		cmd := exec.Cmd{Path: "/proc/self/fd/" + strconv.Itoa(int(d.runner.Fd())), Args: []string{"runner", "version"}, Dir: "/", SysProcAttr: launcher.Attributes(launcher.Order{})}
		err = cmd.Run()
	}
	if err != nil {
		return fmt.Errorf("cannot start a process in new namespaces: %w. %s", err, startFix(err))
	}
	return nil
}

func checkNamespaces() sandbox.Finding {
	f := sandbox.Finding{What: "user namespaces"}
	if fix := namespaceFix(); fix != "" {
		f.Fatal, f.Found, f.Fix = true, "not available", fix
		return f
	}
	f.OK, f.Found = true, "allowed, at most "+sysctl("user.max_user_namespaces")
	return f
}

func (d *Driver) checkUsers() sandbox.Finding {
	f := sandbox.Finding{What: "users of sandboxes"}
	switch {
	case d.rights.Trees:
		f.OK, f.Found = true, "each sandbox has its own users and can change its system folders"
	case d.rights.Ranges:
		f.Found, f.Fix = "each sandbox has its own users, but its system folders are read-only", "run the server with CAP_SYS_ADMIN"
	default:
		f.Found = "all sandboxes run as the server's user, and their system folders are read-only: " + d.rights.Why
		f.Fix = "to install software in sandboxes, run the server as root; everything else works without root"
		f.OK = os.Geteuid() != 0
	}
	return f
}

func (d *Driver) checkLimits() sandbox.Finding {
	f := sandbox.Finding{OK: true, What: "limits on memory, processes and CPU", Found: "by control groups"}
	if why := d.groups.Why(); why != "" {
		f.OK, f.Found = false, "control groups cannot be used ("+why+"); memory is limited per process, processes per sandbox, and CPU not at all"
		f.Fix = "give the server a control group of its own: Delegate=yes in its systemd unit, or a writable /sys/fs/cgroup in its container. This is about the control group of this command; a server whose sandboxes have no such limits logs that when it starts"
	}
	return f
}

// checkSignals looks for landlock, which keeps what runs inside from signalling the runner.
func checkSignals() sandbox.Finding {
	f := sandbox.Finding{What: "landlock"}
	abi, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch {
	case e != 0:
		f.Found, f.Fix = "not supported by the kernel; the runner ignores signals from inside the sandbox", "no action needed; kernel 6.12 and later blocks these signals"
	case abi < 6:
		f.Found, f.Fix = fmt.Sprintf("version %d; the runner ignores signals from inside the sandbox", abi), "no action needed; kernel 6.12 and later blocks these signals"
	default:
		f.OK, f.Found = true, fmt.Sprintf("version %d", abi)
	}
	return f
}

func checkFilter() sandbox.Finding {
	f := sandbox.Finding{What: "system call filter (seccomp)"}
	action := uint32(unix.SECCOMP_RET_KILL_PROCESS)
	_, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	if e != 0 {
		f.Fatal, f.Found, f.Fix = true, "the kernel has none: "+e.Error(), "use a kernel with CONFIG_SECCOMP_FILTER"
		return f
	}
	f.OK, f.Found = true, "available"
	return f
}

// trial starts a sandbox and asks its runner for a word.
func (d *Driver) trial(ctx context.Context) sandbox.Finding {
	f := sandbox.Finding{What: "starting a sandbox", Fatal: true}
	dir, err := os.MkdirTemp(d.dir, scrapPrefix)
	if err == nil {
		err = d.tryAt(ctx, dir)
		err = errors.Join(err, os.RemoveAll(dir))
	}
	var u *sandbox.Unavailable
	switch {
	case errors.As(err, &u):
		f.Found, f.Fix = u.Cause.Error(), startFix(u.Cause)
	case err != nil:
		f.Found = err.Error()
	default:
		return sandbox.Finding{OK: true, What: f.What, Found: "works"}
	}
	if f.Fix == "" {
		f.Fix = "see the message above, or use --sandbox docker"
	}
	return f
}

func (d *Driver) tryAt(ctx context.Context, dir string) error {
	work := filepath.Join(dir, box.WorkDir)
	if err := errors.Join(os.Chmod(dir, 0o711), os.Mkdir(work, 0o755)); err != nil {
		return err
	}
	at := &place{id: "check", dir: dir}
	if d.rights.Ranges {
		first, err := d.users.take(filepath.Base(dir))
		if err != nil {
			return err
		}
		defer d.users.free(first)
		at.meta.User = first
		if err := os.Chown(work, int(first), int(first)); err != nil {
			return err
		}
	}
	s, err := d.look(ctx, at)
	if err != nil {
		return err
	}
	return s.Close()
}

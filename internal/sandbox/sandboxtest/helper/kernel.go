package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// raw makes a system call that x/sys has no function for.
func raw(number uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

func cstring(s string) uintptr {
	b := append([]byte(s), 0)
	return uintptr(unsafe.Pointer(&b[0]))
}

// zeros is room for the structures of calls whose contents do not matter: who
// may make the call is decided before they are read.
var zeros [4096]byte

func room() uintptr { return uintptr(unsafe.Pointer(&zeros[0])) }

// tries are attempts to use what no program in a sandbox needs. None does any
// harm should it succeed.
var tries = map[string]func() error{
	"mount-tmpfs":  func() error { return unix.Mount("none", os.TempDir(), "tmpfs", 0, "") },
	"mount-proc":   func() error { return unix.Mount("none", os.TempDir(), "proc", 0, "") },
	"mount-bind":   func() error { return unix.Mount("/proc", os.TempDir(), "", unix.MS_BIND, "") },
	"remount-rw":   func() error { return unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND, "") },
	"mount-shared": func() error { return unix.Mount("", "/", "", unix.MS_SHARED|unix.MS_REC, "") },
	"umount-proc":  func() error { return unix.Unmount("/proc", unix.MNT_DETACH) },
	"umount-dev":   func() error { return unix.Unmount("/dev", unix.MNT_DETACH) },
	"pivot_root":   func() error { return unix.PivotRoot("/", "/") },
	"chroot":       func() error { return unix.Chroot("/") },
	"open_tree": func() error {
		_, err := unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE|unix.AT_RECURSIVE)
		return err
	},
	"fsopen":        func() error { _, err := unix.Fsopen("tmpfs", 0); return err },
	"mount_setattr": func() error { return unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{}) },

	"unshare-user":   func() error { return apart(unix.CLONE_NEWUSER) },
	"unshare-mount":  func() error { return apart(unix.CLONE_NEWNS) },
	"unshare-net":    func() error { return apart(unix.CLONE_NEWNET) },
	"unshare-pid":    func() error { return apart(unix.CLONE_NEWPID) },
	"unshare-ipc":    func() error { return apart(unix.CLONE_NEWIPC) },
	"unshare-uts":    func() error { return apart(unix.CLONE_NEWUTS) },
	"unshare-cgroup": func() error { return apart(unix.CLONE_NEWCGROUP) },
	"clone-user":     func() error { return cloned(unix.CLONE_NEWUSER) },
	"clone-all":      func() error { return cloned(unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET) },

	"mknod-block": func() error { return node(unix.S_IFBLK, 254, 0) },
	"mknod-mem":   func() error { return node(unix.S_IFCHR, 1, 1) },
	"mknod-kmsg":  func() error { return node(unix.S_IFCHR, 1, 11) },

	"bpf": func() error { return raw(unix.SYS_BPF, 0, room(), 128) },
	"perf_event_open": func() error {
		_, err := unix.PerfEventOpen(&unix.PerfEventAttr{
			Type: unix.PERF_TYPE_SOFTWARE, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})), Config: unix.PERF_COUNT_SW_TASK_CLOCK,
			Bits: unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv,
		}, 0, -1, -1, 0)
		return err
	},
	"userfaultfd":    func() error { return raw(unix.SYS_USERFAULTFD, 1|unix.O_CLOEXEC) }, // user mode only
	"io_uring_setup": func() error { return raw(unix.SYS_IO_URING_SETUP, 4, room()) },
	"add_key": func() error {
		_, err := unix.AddKey("user", "sandboxtest", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
		return err
	},
	"request_key":       func() error { _, err := unix.RequestKey("user", "sandboxtest", "", 0); return err },
	"keyctl":            func() error { _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true); return err },
	"kexec_load":        func() error { return raw(unix.SYS_KEXEC_LOAD, 0, 0, 0, 0) },
	"init_module":       func() error { return raw(unix.SYS_INIT_MODULE, room(), 64, cstring("")) },
	"delete_module":     func() error { return raw(unix.SYS_DELETE_MODULE, cstring("sandboxtest_none"), unix.O_NONBLOCK) },
	"open_by_handle_at": func() error { return handle() },
	"syslog":            func() error { return raw(unix.SYS_SYSLOG, 3, room(), uintptr(len(zeros))) },
	"swapon":            func() error { return raw(unix.SYS_SWAPON, cstring("/sandboxtest-none"), 0) },
	"acct":              func() error { return raw(unix.SYS_ACCT, cstring("/sandboxtest-none")) },
	"quotactl":          func() error { return raw(unix.SYS_QUOTACTL, 0x800003<<8, cstring("/sandboxtest-none"), 0, room()) },
	"sethostname":       func() error { return unix.Sethostname([]byte("sandboxtest")) },

	"socket-raw":     func() error { return socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP) },
	"socket-raw6":    func() error { return socket(unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6) },
	"socket-packet":  func() error { return socket(unix.AF_PACKET, unix.SOCK_RAW, 0x0300) },
	"socket-packetd": func() error { return socket(unix.AF_PACKET, unix.SOCK_DGRAM, 0x0300) },
	"socket-vsock":   func() error { return socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0) },
	"netlink-link":   newLink,
	"netlink-audit":  func() error { return audit() },

	"tiocsti":   func() error { b := byte('#'); return raw(unix.SYS_IOCTL, 0, unix.TIOCSTI, uintptr(unsafe.Pointer(&b))) },
	"tioclinux": func() error { b := byte(2); return raw(unix.SYS_IOCTL, 0, 0x541C, uintptr(unsafe.Pointer(&b))) },
	"setuid":    func() error { return setuid() },
}

// try makes one of the attempts.
func try(args []string) error {
	name, err := text(args, 0)
	if err != nil {
		return err
	}
	f := tries[name]
	if f == nil {
		return fmt.Errorf("%w: syscall %v", errUsage, names(tries))
	}
	// Some change the thread: it must not be reused.
	runtime.LockOSThread()
	if err := f(); err != nil {
		return err
	}
	fmt.Println("done", name)
	return nil
}

func apart(flags int) error { return unix.Unshare(flags) }

// cloned starts a process in namespaces of its own.
func cloned(flags uintptr) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.Command(self, "fds")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	return c.Run()
}

func node(kind uint32, major, minor uint32) error {
	dir, err := os.MkdirTemp("", "node")
	if err != nil {
		return fmt.Errorf("%w: %v", errUsage, err)
	}
	defer os.RemoveAll(dir)
	return unix.Mknod(dir+"/node", kind|0o600, int(unix.Mkdev(major, minor)))
}

func socket(family, kind, protocol int) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// handle opens a file by its number, which needs no path that leads to it.
func handle() error {
	dir, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	fd, err := unix.OpenByHandleAt(dir, unix.NewFileHandle(1, make([]byte, 8)), unix.O_RDONLY)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// setuid becomes another user, who may own what this one may not read.
func setuid() error {
	other := 0
	if os.Getuid() == 0 {
		other = 65534
	}
	return raw(unix.SYS_SETUID, uintptr(other))
}

// newLink asks the kernel for another network interface.
func newLink() error {
	return ask(unix.NETLINK_ROUTE, unix.RTM_NEWLINK, unix.NLM_F_CREATE|unix.NLM_F_EXCL, link("bridge"))
}

// audit asks who listens to the kernel's audit.
func audit() error { return ask(unix.NETLINK_AUDIT, 1000, 0, nil) }

// link is the message that makes an interface of a kind.
func link(kind string) []byte {
	name := attr(unix.IFLA_IFNAME, []byte("sandboxtest0\x00"))
	info := attr(unix.IFLA_LINKINFO, attr(unix.IFLA_INFO_KIND, []byte(kind)))
	return append(make([]byte, unix.SizeofIfInfomsg), append(name, info...)...)
}

func attr(kind uint16, value []byte) []byte {
	size := unix.SizeofRtAttr + len(value)
	b := make([]byte, (size+3)&^3)
	*(*uint16)(unsafe.Pointer(&b[0])) = uint16(size)
	*(*uint16)(unsafe.Pointer(&b[2])) = kind
	copy(b[unix.SizeofRtAttr:], value)
	return b
}

// ask sends one message to the kernel and waits for what it says.
func ask(protocol int, kind, flags uint16, body []byte) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	b := make([]byte, unix.SizeofNlMsghdr, unix.SizeofNlMsghdr+len(body))
	h := (*unix.NlMsghdr)(unsafe.Pointer(&b[0]))
	h.Len, h.Type, h.Flags, h.Seq = uint32(unix.SizeofNlMsghdr+len(body)), kind, unix.NLM_F_REQUEST|unix.NLM_F_ACK|flags, 1
	if err := unix.Sendto(fd, append(b, body...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	var in [8192]byte
	n, _, err := unix.Recvfrom(fd, in[:], 0)
	if err != nil {
		return err
	}
	if n >= unix.SizeofNlMsghdr+4 && (*unix.NlMsghdr)(unsafe.Pointer(&in[0])).Type == unix.NLMSG_ERROR {
		if errno := *(*int32)(unsafe.Pointer(&in[unix.SizeofNlMsghdr])); errno != 0 {
			return unix.Errno(-errno)
		}
	}
	return nil
}

// trace looks into another process in every way there is, and says which of
// them succeeded.
func trace(args []string) error {
	pid, err := number(args, 0)
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	proc := "/proc/" + strconv.Itoa(pid) + "/"
	folder := func(name string) error { _, err := os.ReadDir(proc + name); return err }
	file := func(name string) error { return open([]string{"read", proc + name}) }
	ways := map[string]func() error{
		"seize":    func() error { return raw(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid), 0, 0) },
		"vm_readv": func() error { return peek(pid) }, "pidfd": func() error { return steal(pid) },
		"mem": func() error { return file("mem") }, "environ": func() error { return file("environ") },
		"maps": func() error { return file("maps") }, "root": func() error { return folder("root") },
		"cwd": func() error { return folder("cwd") }, "fd": func() error { return links(proc + "fd") },
		"setns-mnt": func() error { return enter(proc + "ns/mnt") }, "setns-net": func() error { return enter(proc + "ns/net") },
		"setns-user": func() error { return enter(proc + "ns/user") },
	}
	var refused error
	done := 0
	for _, name := range names(ways) {
		if err := ways[name](); err != nil {
			refused = fmt.Errorf("%s: %w", name, err)
			continue
		}
		fmt.Println("done", name)
		done++
	}
	if done > 0 {
		return nil
	}
	return refused
}

// peek reads the memory of another process.
func peek(pid int) error {
	var b [8]byte
	local := []unix.Iovec{{Base: &b[0], Len: 8}}
	_, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: 0x400000, Len: 8}}, 0)
	if err == unix.EFAULT {
		return nil // it was allowed to look and there was nothing
	}
	return err
}

// steal takes a file that another process has open.
func steal(pid int) error {
	p, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(p)
	fd, err := unix.PidfdGetfd(p, 0, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// links reads what the files are that another process has open. Their numbers
// alone tell nothing.
func links(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, err = os.Readlink(dir + "/" + e.Name()); err == nil {
			return nil
		}
	}
	return err
}

// enter joins a namespace of another process.
func enter(name string) error {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Setns(fd, 0)
}

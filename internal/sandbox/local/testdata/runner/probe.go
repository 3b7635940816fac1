package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// probe tries what must not work inside and says what came of it, one per line.
func probe() {
	call := func(name string, number uintptr, args ...uintptr) {
		var a [6]uintptr
		copy(a[:], args)
		_, _, e := syscall.RawSyscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
		say(name, e)
	}
	text := func(s string) uintptr { b, _ := syscall.BytePtrFromString(s); return uintptr(unsafe.Pointer(b)) }
	const garbage = 1 << 40 // above what the kernel looks at

	call("mount", unix.SYS_MOUNT, text("tmpfs"), text("/tmp"), text("tmpfs"))
	call("umount", unix.SYS_UMOUNT2, text("/proc/sys"), unix.MNT_DETACH)
	call("open_tree", unix.SYS_OPEN_TREE, ^uintptr(99), text("/"), unix.OPEN_TREE_CLONE)
	call("fsopen", unix.SYS_FSOPEN, text("tmpfs"))
	call("unshare", unix.SYS_UNSHARE, unix.CLONE_NEWUSER)
	fd, _ := unix.Open("/proc/self/ns/net", unix.O_RDONLY, 0)
	call("setns", unix.SYS_SETNS, uintptr(fd), 0)
	call("clone", unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD))
	call("clone garbage", unix.SYS_CLONE, garbage|unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD))
	call("clone3", unix.SYS_CLONE3)
	call("chroot", unix.SYS_CHROOT, text("/tmp"))
	call("bpf", unix.SYS_BPF)
	call("perf", unix.SYS_PERF_EVENT_OPEN)
	call("userfaultfd", unix.SYS_USERFAULTFD)
	call("keyctl", unix.SYS_KEYCTL)
	call("io_uring", unix.SYS_IO_URING_SETUP)
	call("kexec", unix.SYS_KEXEC_LOAD)
	call("module", unix.SYS_FINIT_MODULE)
	call("reboot", unix.SYS_REBOOT)
	call("settime", unix.SYS_CLOCK_SETTIME)
	call("sethostname", unix.SYS_SETHOSTNAME)
	call("by handle", unix.SYS_OPEN_BY_HANDLE_AT)
	call("syslog", unix.SYS_SYSLOG, 3)
	call("personality", unix.SYS_PERSONALITY, 0x0400000) // READ_IMPLIES_EXEC
	call("device", unix.SYS_MKNODAT, ^uintptr(99), text("/tmp/disk"), unix.S_IFBLK|0o600, 0xfe00)

	call("packet", unix.SYS_SOCKET, unix.AF_PACKET, unix.SOCK_RAW, 0)
	call("packet garbage", unix.SYS_SOCKET, garbage|unix.AF_PACKET, unix.SOCK_RAW, 0)
	call("vsock", unix.SYS_SOCKET, unix.AF_VSOCK, unix.SOCK_STREAM, 0)
	call("alg", unix.SYS_SOCKET, unix.AF_ALG, unix.SOCK_SEQPACKET, 0)
	call("netfilter", unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER)
	call("raw", unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)
	var pair [2]int32
	call("pair", unix.SYS_SOCKETPAIR, unix.AF_TIPC, unix.SOCK_STREAM, 0, uintptr(unsafe.Pointer(&pair)))
	limit := unix.Rlimit{Cur: 3, Max: 3}
	call("limit of runner", unix.SYS_PRLIMIT64, 1, unix.RLIMIT_NOFILE, uintptr(unsafe.Pointer(&limit)))
	call("sti", unix.SYS_IOCTL, 0, unix.TIOCSTI, text("x"))
	call("sti garbage", unix.SYS_IOCTL, 0, garbage|unix.TIOCSTI, text("x"))

	file, _ := unix.Open("space", unix.O_CREAT|unix.O_RDWR, 0o600)
	call("space", unix.SYS_FALLOCATE, uintptr(file), 0, 0, 4096)
	call("space kept", unix.SYS_FALLOCATE, uintptr(file), garbage|unix.FALLOC_FL_KEEP_SIZE, 0, 4096)
	reserve := [6]int64{2: 4096}                                                                         // struct space_resv
	call("space by ioctl", unix.SYS_IOCTL, uintptr(file), 0x40305828, uintptr(unsafe.Pointer(&reserve))) // FS_IOC_RESVSP

	call("ptrace runner", unix.SYS_PTRACE, unix.PTRACE_ATTACH, 1)
	var b [8]byte
	local, remote := unix.Iovec{Base: &b[0], Len: 8}, unix.Iovec{Base: &b[0], Len: 8}
	call("read runner", unix.SYS_PROCESS_VM_READV, 1, uintptr(unsafe.Pointer(&local)), 1, uintptr(unsafe.Pointer(&remote)), 1)
	pidfd, err := unix.PidfdOpen(1, 0)
	say("pidfd of runner", err)
	call("descriptor of runner", unix.SYS_PIDFD_GETFD, uintptr(pidfd), 2)
	for fd := range 64 {
		name := fmt.Sprintf("/proc/1/fd/%d/secret", fd)
		if _, err := os.ReadFile(name); err == nil {
			fmt.Println("state: READ by", name)
		}
		if err := os.WriteFile(name, nil, 0o600); err == nil {
			fmt.Println("state: WRITTEN by", name)
		}
	}
	_, err = os.ReadDir("/proc/1/root")
	say("root of runner", err)
	_, err = os.Open("/proc/1/mem")
	say("memory of runner", err)
	_, err = os.Open("/proc/1/exe")
	say("program of runner", err)
	say("write output", os.WriteFile("/.deckhand/output/mine", nil, 0o600))
	say("write sysctl", os.WriteFile("/proc/sys/kernel/hostname", []byte("x"), 0))
	_, err = net.Dial("tcp", "192.0.2.1:80")
	say("way out", err)

	// What must work.
	for _, family := range []int{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK} {
		fd, err := unix.Socket(family, unix.SOCK_DGRAM, 0)
		say(fmt.Sprint("socket ", family), err)
		unix.Close(fd)
	}
	call("pair 1", unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_STREAM, 0, uintptr(unsafe.Pointer(&pair)))
	call("own limit", unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CORE, uintptr(unsafe.Pointer(&unix.Rlimit{})))
	call("hole", unix.SYS_FALLOCATE, uintptr(file), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, 4096)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	say("loopback", err)
	if err == nil {
		l.Close()
	}
}

func say(name string, err error) {
	var e syscall.Errno
	switch {
	case errors.As(err, &e) && e == 0 || err == nil:
		fmt.Println(name + ": ok")
	case errors.As(err, &e):
		fmt.Println(name + ": " + unix.ErrnoName(e))
	default:
		fmt.Println(name + ": " + err.Error())
	}
}

// eat takes so much memory, page by page.
func eat(mebibytes int) {
	var all [][]byte
	for range mebibytes {
		b := make([]byte, 1<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		all = append(all, b)
	}
	fmt.Println("ate", len(all))
}

// foreign makes a call by another interface to the kernel.
func foreign() {
	_, _, e := syscall.RawSyscall(0x40000000+unix.SYS_GETPID, 0, 0, 0)
	fmt.Println("still here:", e)
}

// deep makes folders in folders, deeper than any path is long.
func deep(levels int) {
	for range levels {
		if err := unix.Mkdir("deep", 0o755); err != nil {
			fmt.Println(err)
			return
		}
		if err := unix.Chdir("deep"); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(levels, "deep")
}

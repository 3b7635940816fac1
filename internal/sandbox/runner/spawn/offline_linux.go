package spawn

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// architectures are what the kernel calls those that a runner is built for.
var architectures = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// offlineDenied are the calls with which a process could open a socket, or use one of another process.
var offlineDenied = []uint32{unix.SYS_SOCKET, unix.SYS_IO_URING_SETUP, unix.SYS_PTRACE, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD}

// denySockets keeps what the calling thread starts from opening sockets. Calls of another
// architecture, whose numbers mean something else, are denied altogether.
func denySockets() error {
	const (
		atCall = 0
		atArch = 4
		perm   = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
		// x32 calls have a bit on top of the usual numbers.
		x32 = 0x40000000
	)
	arch, known := architectures[runtime.GOARCH]
	if !known {
		return fmt.Errorf("there is no filter of system calls for %s", runtime.GOARCH)
	}
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	// deny skips the answer unless the test is met.
	deny := func(test uint16, value uint32, yes, no uint8) []unix.SockFilter {
		return []unix.SockFilter{{Code: unix.BPF_JMP | test | unix.BPF_K, K: value, Jt: yes, Jf: no}, {Code: unix.BPF_RET | unix.BPF_K, K: perm}}
	}
	p := append([]unix.SockFilter{load(atArch)}, deny(unix.BPF_JEQ, arch, 1, 0)...)
	p = append(p, load(atCall))
	p = append(p, deny(unix.BPF_JGE, x32, 0, 1)...)
	for _, call := range offlineDenied {
		p = append(p, deny(unix.BPF_JEQ, call, 0, 1)...)
	}
	p = append(p, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up new privileges: %w", err)
	}
	prog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); e != 0 {
		return fmt.Errorf("filtering system calls: %w", e)
	}
	return nil
}

// systemPath is where programs of the system are. What people and scripts add is elsewhere.
const systemPath = "/usr/bin:/bin:/usr/sbin:/sbin"

// SystemFirst is the environment with the programs of the system before all others.
func SystemFirst(env []string) []string {
	path := systemPath
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok && v != "" {
			path = systemPath + ":" + v
		}
	}
	env = slices.DeleteFunc(slices.Clone(env), func(e string) bool { return strings.HasPrefix(e, "PATH=") })
	return append(env, "PATH="+path)
}

//go:build linux && amd64

package clock

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Run becomes the program if this process was started for that, and returns otherwise. It must
// be called on the main thread, which a function init can ensure with runtime.LockOSThread.
func Run() {
	if len(os.Args) < 3 || os.Args[1] != Stage {
		return
	}
	fmt.Fprintln(os.Stderr, "torture: the clock cannot be set:", become(os.Args[2], os.Args[2:]))
	os.Exit(1)
}

// become installs the filter, hands it over and becomes the program.
func become(path string, args []string) error {
	const socket = 3
	unix.CloseOnExec(socket)
	listener, err := install()
	if err != nil {
		return err
	}
	if err := unix.Sendmsg(socket, []byte{0}, unix.UnixRights(listener), nil, 0); err != nil {
		return err
	}
	if _, _, e := unix.RawSyscall(unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0); e != 0 {
		return e
	}
	return syscall.Exec(path, args, os.Environ())
}

// install adds a filter that hands readings of the wall clock to the owner of the listener.
func install() (int, error) {
	const (
		atCall, atArch, atArg0 = 0, 4, 16
		load                   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal                  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		give                   = unix.BPF_RET | unix.BPF_K
	)
	filter := []unix.SockFilter{
		{Code: load, K: atArch},
		{Code: equal, K: unix.AUDIT_ARCH_X86_64, Jf: 5},
		{Code: load, K: atCall},
		{Code: equal, K: unix.SYS_CLOCK_GETTIME, Jf: 3},
		{Code: load, K: atArg0},
		{Code: equal, K: unix.CLOCK_REALTIME, Jf: 1},
		{Code: give, K: unix.SECCOMP_RET_USER_NOTIF},
		{Code: give, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	fd, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&program)))
	if e != 0 {
		return 0, e
	}
	return int(fd), nil
}

func lines(text []byte) func(func(string) bool) { return strings.Lines(string(text)) }

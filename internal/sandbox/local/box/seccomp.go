package box

import (
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The filter is written here, without a library, for three reasons: a call of another
// architecture must end the process, not pass; arguments that the kernel takes as 32 bits must
// be compared as 32 bits, or garbage in the upper half walks past; and the runner, which is
// started for every sandbox, must not carry a table of all system calls.

// denied are the calls that answer EPERM: those that make or change mounts and
// namespaces, reach into the kernel or the machine, or have been its weak spots.
var denied = append([]uint32{
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
	unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR,
	unix.SYS_UNSHARE, unix.SYS_SETNS,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_FANOTIFY_INIT,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_ACCT,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_SYSLOG, unix.SYS_VHANGUP, unix.SYS_NFSSERVCTL, unix.SYS_LOOKUP_DCOOKIE,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
}, deniedHere...)

// absent are the calls that answer ENOSYS, so that programs do it the old way.
// The flags of clone3 lie in memory, where a filter cannot see them, as do the attributes of file_setattr.
var absent = []uint32{unix.SYS_CLONE3, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_FILE_SETATTR}

// reserving are the requests of ioctl that take disk space without writing, faster than a disk
// limit can be measured. The kernel does the first three for regular files of every file system.
var reserving = []uint32{
	0x40305828, 0x4030582a, 0x40305839, // FS_IOC_RESVSP, FS_IOC_RESVSP64, FS_IOC_ZERO_RANGE
	0x4030580a, 0x4030580b, 0x40305824, 0x40305825, // XFS_IOC_ALLOCSP, FREESP, ALLOCSP64, FREESP64, before Linux 5.17
	0x401c5820, // FS_IOC_FSSETXATTR, which sets how much XFS allocates for one byte
}

const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// Offsets in struct seccomp_data. Both architectures are little-endian, so the
// lower half of an argument comes first.
const (
	atCall = 0
	atArch = 4
	atArgs = 16
)

// What a filter answers.
const (
	allow = unix.SECCOMP_RET_ALLOW
	kill  = unix.SECCOMP_RET_KILL_PROCESS
	perm  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	nosys = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	nofam = unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)
	nosup = unix.SECCOMP_RET_ERRNO | uint32(unix.EOPNOTSUPP)
)

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

func arg(n uint32) unix.SockFilter { return load(atArgs + 8*n) }

func ret(answer uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: answer}
}

// jump compares what was loaded and skips so many instructions.
func jump(test uint16, value uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, K: value, Jt: yes, Jf: no}
}

// program is the whole filter.
func program() []unix.SockFilter {
	p := []unix.SockFilter{load(atArch), jump(unix.BPF_JEQ, auditArch, 1, 0), ret(kill), load(atCall)}
	p = append(p, otherABI...)
	p = append(p, anyOf(absent, nosys)...)
	p = append(p, anyOf(denied, perm)...)
	p = append(p, when(unix.SYS_CLONE, arg(0), jump(unix.BPF_JSET, newNamespaces, 0, 1), ret(perm))...)
	// Unix, internet, and the kernel's messages about interfaces and sockets.
	p = append(p, when(unix.SYS_SOCKET, arg(0),
		jump(unix.BPF_JEQ, unix.AF_UNIX, 7, 0), jump(unix.BPF_JEQ, unix.AF_INET, 6, 0), jump(unix.BPF_JEQ, unix.AF_INET6, 5, 0),
		jump(unix.BPF_JEQ, unix.AF_NETLINK, 0, 3), arg(2),
		jump(unix.BPF_JEQ, unix.NETLINK_ROUTE, 2, 0), jump(unix.BPF_JEQ, unix.NETLINK_SOCK_DIAG, 1, 0),
		ret(nofam))...)
	// Pairs of sockets are of the only family that is meant to have them.
	p = append(p, when(unix.SYS_SOCKETPAIR, arg(0), jump(unix.BPF_JEQ, unix.AF_UNIX, 1, 0), ret(nofam))...)
	// Limits of one's own process only: those of the runner, by any of its threads, are not for others to set.
	p = append(p, when(unix.SYS_PRLIMIT64, arg(0), jump(unix.BPF_JEQ, 0, 5, 0),
		arg(2), jump(unix.BPF_JEQ, 0, 0, 2), load(atArgs+2*8+4), jump(unix.BPF_JEQ, 0, 1, 0),
		ret(perm))...)
	// Keys that the terminal's other end did not type, the console, line disciplines; disk space.
	p = append(p, when(unix.SYS_IOCTL, slices.Concat([]unix.SockFilter{arg(1)},
		anyOf([]uint32{unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSETD}, perm), anyOf(reserving, nosup))...)...)
	// Holes only: programs that want to allocate space write zeros instead, which the disk limit can stop.
	p = append(p, when(unix.SYS_FALLOCATE, arg(1),
		jump(unix.BPF_JEQ, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 1, 0), ret(nosup))...)
	// Linux, its 32-bit sizes, without random addresses (debuggers), and asking which.
	p = append(p, when(unix.SYS_PERSONALITY, arg(0),
		jump(unix.BPF_JEQ, 0xffffffff, 2, 0), jump(unix.BPF_JSET, ^uint32(personalities), 0, 1),
		ret(perm))...)
	return append(p, ret(allow))
}

// anyOf answers for the calls of a list, and goes on for others. The kernel
// works through the filter for every call there is when it is loaded, so a list
// is cut in halves until it is short.
func anyOf(calls []uint32, answer uint32) []unix.SockFilter {
	calls = slices.Sorted(slices.Values(calls))
	if len(calls) > 4 {
		half := len(calls) / 2
		low, high := anyOf(calls[:half], answer), anyOf(calls[half:], answer)
		// After the lower half, the upper one cannot be meant any more.
		low = append(low, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA, K: uint32(len(high))})
		return append(append([]unix.SockFilter{jump(unix.BPF_JGE, calls[half], uint8(len(low)), 0)}, low...), high...)
	}
	var out []unix.SockFilter
	for i, n := range calls {
		// The last one skips the answer if it is not meant either.
		left := uint8(len(calls) - 1 - i)
		skip := uint8(0)
		if left == 0 {
			skip = 1
		}
		out = append(out, jump(unix.BPF_JEQ, n, left, skip))
	}
	return append(out, ret(answer))
}

// personalities are the bits that may be asked for: PER_LINUX32, UNAME26, ADDR_NO_RANDOMIZE.
const personalities = 0x0008 | 0x0020000 | 0x0040000

// when runs the instructions for one call only. They end by falling off their end
// for what they let pass, which is then allowed.
func when(call uint32, body ...unix.SockFilter) []unix.SockFilter {
	out := []unix.SockFilter{jump(unix.BPF_JEQ, call, 0, uint8(len(body)+1))}
	out = append(out, body...)
	return append(out, ret(allow))
}

// filterCalls puts the filter on all threads.
func filterCalls() error {
	p := program()
	prog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	thread, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	if e != 0 {
		return fmt.Errorf("filtering system calls: %w", e)
	}
	if thread != 0 {
		return fmt.Errorf("filtering system calls: thread %d cannot have the filter", thread)
	}
	return nil
}

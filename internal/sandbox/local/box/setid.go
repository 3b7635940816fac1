package box

import (
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// setID are the bits of a mode by which a program runs with the rights of its file's owner or group.
const setID = unix.S_ISUID | unix.S_ISGID

// creates are the flags of open that make it use its mode.
const creates = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY

// modes are the calls whose argument of this number is a mode.
var modes = append([]struct{ call, arg uint32 }{
	{unix.SYS_FCHMOD, 1}, {unix.SYS_FCHMODAT, 2}, {unix.SYS_FCHMODAT2, 2}, {unix.SYS_MKNODAT, 2},
}, modesHere...)

// withoutSetID is a filter that refuses to make files with these bits. The mode for openat2 lies in memory, so that call is absent.
func withoutSetID() []unix.SockFilter {
	p := []unix.SockFilter{load(atArch), jump(unix.BPF_JEQ, auditArch, 1, 0), ret(kill), load(atCall)}
	p = append(p, otherABI...)
	p = append(p, anyOf([]uint32{unix.SYS_OPENAT2}, nosys)...)
	for _, m := range modes {
		p = append(p, when(m.call, arg(m.arg), jump(unix.BPF_JSET, setID, 0, 1), ret(perm))...)
	}
	for _, o := range slices.Concat([]opening{{unix.SYS_OPENAT, 2}}, opensHere) {
		p = append(p, when(o.call, arg(o.flags), jump(unix.BPF_JSET, creates, 0, 3), arg(o.flags+1), jump(unix.BPF_JSET, setID, 0, 1), ret(perm))...)
	}
	return append(p, ret(allow))
}

// opening is a call that opens a file. Its mode follows its flags.
type opening struct{ call, flags uint32 }

// KeepFolder keeps what the calling thread starts from making files with the setuid or setgid bit. It is for a workspace that is a folder of
// the machine: its other users could run such files there, with the rights of the folder's user. Existing files keep their bits.
func KeepFolder() error {
	p := withoutSetID()
	prog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); e != 0 {
		return fmt.Errorf("filtering modes of files: %w", e)
	}
	return nil
}

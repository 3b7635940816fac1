package box

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// deniedHere are the denied calls that only this architecture has.
var deniedHere = []uint32{
	unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_CREATE_MODULE, unix.SYS_GET_KERNEL_SYMS, unix.SYS_QUERY_MODULE,
	unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS__SYSCTL, unix.SYS_MODIFY_LDT,
}

// otherABI ends processes that use the x32 interface, which has the usual numbers with an
// additional high bit. -1 is no call at all.
var otherABI = []unix.SockFilter{
	jump(unix.BPF_JEQ, 0xffffffff, 2, 0),
	jump(unix.BPF_JGE, 0x40000000, 0, 1),
	ret(kill),
}

// modesHere and opensHere are the calls with modes that only this architecture has.
var (
	modesHere = []struct{ call, arg uint32 }{{unix.SYS_CHMOD, 1}, {unix.SYS_CREAT, 1}, {unix.SYS_MKNOD, 1}}
	opensHere = []opening{{unix.SYS_OPEN, 1}}
)

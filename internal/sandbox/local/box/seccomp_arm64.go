package box

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// deniedHere are the denied calls that only this architecture names so.
var deniedHere = []uint32{unix.SYS_KEXEC_FILE_LOAD}

// otherABI is empty: there is only one interface with this architecture's mark.
var otherABI []unix.SockFilter

// modesHere and opensHere are empty: there are only the calls that every architecture has.
var (
	modesHere []struct{ call, arg uint32 }
	opensHere []opening
)

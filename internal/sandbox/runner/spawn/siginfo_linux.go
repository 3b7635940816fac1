package spawn

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// siginfoPID takes si_pid out of a siginfo: the first word of its union, which
// starts at the next multiple of a pointer's size after three ints.
func siginfoPID(info *unix.Siginfo) int {
	const word = unsafe.Sizeof(uintptr(0))
	offset := (3*unsafe.Sizeof(int32(0)) + word - 1) / word * word
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(info), offset)))
}

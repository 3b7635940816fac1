// Package machine knows the machine that the program runs on: how much memory and
// how many processes it has, its kernel, and how to return unused memory.
package machine

import (
	"cmp"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Memory is how much memory there is for this process and its sandboxes, in bytes: the machine's, or that of the
// container it runs in.
func Memory() int64 {
	most := int64(4 << 30) // if the system does not say
	if n := installed(); n > 0 {
		most = n
	}
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if n := readNumber(file); n > 0 {
			most = min(most, n)
		}
	}
	return most
}

// Tasks is how many processes and threads there can be.
func Tasks() int {
	most := int64(32 << 10)
	for i, file := range []string{"/proc/sys/kernel/threads-max", "/proc/sys/kernel/pid_max"} {
		if n := readNumber(file); n > 0 && (i == 0 || n < most) {
			most = n
		}
	}
	return int(most)
}

// System returns the name and release of the kernel, such as Linux 6.1.0; "" if they are unknown.
func System() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
}

// readNumber reads a file with one number, 0 if it has none.
func readNumber(file string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// LiveSandboxes returns how many sandboxes may run before the least recently used ones are suspended: the number that the
// operator has chosen, or one per 64 MiB of memory if that is 0.
func LiveSandboxes(chosen int) int { return cmp.Or(chosen, max(100, int(Memory()/(64<<20)))) }

// Package rights finds out what the server may do for sandboxes: give them users of their own, and hand mounts to them.
package rights

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Rights are what this process may do.
type Rights struct {
	// Ranges says that sandboxes have ranges of users of their own.
	Ranges bool
	// Trees says that mounts can be made here and handed to sandboxes, with
	// their owners mapped.
	Trees bool
	// Why says what is missing for Ranges.
	Why string
}

// Find looks at what this process is. Sandboxes get users from first up to last.
func Find(first, last uint64) Rights {
	if os.Geteuid() != 0 {
		return Rights{Why: "the server is not root"}
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return Rights{Why: err.Error()}
	}
	for _, c := range []int{unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_KILL} {
		if data[0].Effective&(1<<c) == 0 {
			return Rights{Why: "the server is root without the capabilities to act for other users (CHOWN, DAC_OVERRIDE, FOWNER, SETUID, SETGID, KILL)"}
		}
	}
	for _, file := range []string{"/proc/self/uid_map", "/proc/self/gid_map"} {
		b, err := os.ReadFile(file)
		if err != nil || !mapped(string(b), first, last) {
			return Rights{Why: "the server is root in a user namespace that has too few users"}
		}
	}
	return Rights{Ranges: true, Trees: canMount("/")}
}

// mapped says whether an id map has all users that sandboxes may get.
func mapped(text string, first, last uint64) bool {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		inside, e1 := strconv.ParseUint(f[0], 10, 64)
		size, e2 := strconv.ParseUint(f[2], 10, 64)
		if e1 == nil && e2 == nil && inside <= first && inside+size >= last {
			return true
		}
	}
	return false
}

// canMount says whether a folder can be made a mount to hand over.
func canMount(dir string) bool {
	fd, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}

// Package deleted measures deleted files that are still open: they have no name, but use
// disk space.
package deleted

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Bytes returns the size of the deleted files that processes have open. Each process is a
// folder of /proc; ended processes have none.
func Bytes(processes []string) int64 {
	type inode struct{ dev, ino uint64 }
	seen := map[inode]bool{}
	var total int64
	for _, process := range processes {
		dir := filepath.Join(process, "fd")
		names, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, name := range names {
			info, err := os.Stat(filepath.Join(dir, name.Name())) // what it leads to, also without a name
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			st, ok := info.Sys().(*syscall.Stat_t)
			if ok && st.Nlink == 0 && uint64(st.Dev) != memory() && !seen[inode{uint64(st.Dev), st.Ino}] {
				seen[inode{uint64(st.Dev), st.Ino}] = true
				total += st.Blocks * 512
			}
		}
	}
	return total
}

// memory is the device of files that never had a name and are in memory only.
var memory = sync.OnceValue(func() uint64 {
	fd, err := unix.MemfdCreate("deckhand", unix.MFD_CLOEXEC)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return 0
	}
	return uint64(st.Dev)
})

package box

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// stack makes a copy of the whole tree the root where the kernel would refuse to replace the root. pivot_root needs a root that is
// mounted on something. An initial ramfs, from which small virtual machines run, is mounted on nothing. It stays under the root of
// the sandbox, as the empty one does on other machines: only a process that may unmount the root could see it, and in the
// sandbox none may.
func stack() error {
	var st unix.Statfs_t
	if err := unix.Statfs("/", &st); err != nil || st.Type != unix.RAMFS_MAGIC && st.Type != unix.TMPFS_MAGIC {
		return err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || !unattached(string(mounts)) {
		return err
	}
	tree, err := cloneTree("/", true)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	if err := attach(tree, "/"); err != nil {
		return err
	}
	if err := unix.Fchdir(tree); err != nil {
		return err
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("entering the copy of the root: %w", err)
	}
	return nil
}

// unattached reports whether the root in a mount table is its own parent.
func unattached(mounts string) bool {
	for line := range strings.Lines(mounts) {
		if f := strings.Fields(line); len(f) > 4 && f[4] == "/" && f[0] == f[1] {
			return true
		}
	}
	return false
}

//go:build linux

package tree

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Give changes the owners of the open folder and of everything below it: users and
// groups become what to makes of them. The folder itself is changed last.
func Give(root int, to func(uint32) uint32) error {
	change := func(dir int, name string, st *unix.Stat_t, flags int) error {
		uid, gid := to(st.Uid), to(st.Gid)
		if uid == st.Uid && gid == st.Gid {
			return nil
		}
		return unix.Fchownat(dir, name, int(uid), int(gid), flags)
	}
	self := func(dir int) error {
		var st unix.Stat_t
		if err := unix.Fstat(dir, &st); err != nil {
			return err
		}
		return change(dir, "", &st, unix.AT_EMPTY_PATH)
	}
	file := func(dir int, name string, st *unix.Stat_t) error {
		return change(dir, name, st, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err := Walk(root, Visitor{File: file, Leave: self}); err != nil {
		return fmt.Errorf("changing owners: %w", err)
	}
	return self(root)
}

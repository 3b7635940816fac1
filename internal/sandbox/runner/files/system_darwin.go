package files

import "golang.org/x/sys/unix"

// mountID reports false: mounts have no IDs on this system, and device numbers tell them apart.
func mountID(int, string) (uint64, bool) { return 0, false }

// renameNew renames a file and replaces none.
func renameNew(from int, old string, to int, name string) error {
	return unix.RenameatxNp(from, old, to, name, unix.RENAME_EXCL)
}

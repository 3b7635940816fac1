package tree

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// fileCost is what a file takes up at least: also an empty one needs its place
// in the file system's tables, of which there is an end.
const fileCost = 1024

// count is what was found. names are those that files have beside their first.
type count struct{ bytes, files, names int64 }

// Usage counts the bytes that the folders take up on disk, what has several
// names once. A folder that does not exist takes up nothing. A file system has
// room for so many files as well as for so many bytes: who has a larger part of
// the files than of the bytes is counted by the files.
func Usage(paths ...string) (int64, error) {
	type inode struct{ dev, ino uint64 }
	seen := map[inode]bool{}
	var total count
	add := func(_ int, _ string, st *unix.Stat_t) error {
		if st.Nlink > 1 && st.Mode&unix.S_IFMT != unix.S_IFDIR {
			i := inode{st.Dev, st.Ino}
			if seen[i] {
				total.names++
				return nil
			}
			seen[i] = true
		}
		total.bytes += max(st.Blocks*512, fileCost)
		total.files++
		return nil
	}
	var perFile int64
	for _, path := range paths {
		before := total.names
		share, byName, err := usage(path, add, &total)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
		perFile = max(perFile, share)
		if byName {
			total.files += total.names - before
		}
	}
	return max(total.bytes, total.files*perFile), nil
}

// usage counts one folder, and says how many bytes its file system has for each
// file. A folder that is being moved around in is counted again from its
// beginning, a few times.
func usage(path string, add func(int, string, *unix.Stat_t) error, total *count) (perFile int64, byName bool, err error) {
	root, err := openRoot(path)
	if err != nil {
		return 0, false, err
	}
	defer unix.Close(root)
	before := *total
	for range 5 {
		*total = before
		if err = walk(root, visitor{file: add, enter: add}); !errors.Is(err, ErrMoved) {
			perFile, byName = bytesPerFile(root)
			return perFile, byName, err
		}
	}
	return 0, false, err
}

// bytesPerFile is the size of a file system by how many files it can have; 0 if
// it can have any number. byName says that each name of a file counts as one, as
// in a tmpfs.
func bytesPerFile(fd int) (share int64, byName bool) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil || st.Files == 0 {
		return 0, false
	}
	return int64(st.Blocks) * int64(st.Bsize) / int64(st.Files), st.Type == unix.TMPFS_MAGIC
}

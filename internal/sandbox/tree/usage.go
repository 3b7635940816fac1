//go:build linux

package tree

import (
	"errors"
	"io/fs"
	"maps"

	"golang.org/x/sys/unix"
)

// fileCost is what a file takes up at least: also an empty one needs its place
// in the file system's tables, of which there is an end.
const fileCost = 1024

// count is what was found.
type count struct{ bytes, files int64 }

// inode tells files with several names from each other.
type inode struct{ dev, ino uint64 }

// Usage counts the bytes that the folders take up on disk, what has several
// names once. A folder that does not exist takes up nothing. A file system has
// room for so many files as well as for so many bytes: who has a larger part of
// the files than of the bytes is counted by the files, whose number is files; otherwise that is 0.
func Usage(paths ...string) (bytes, files int64, err error) {
	seen := map[inode]bool{}
	var total count
	var perFile int64
	for _, path := range paths {
		found, share, err := usage(path, seen)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, 0, err
		}
		total.bytes += found.bytes
		total.files += found.files
		perFile = max(perFile, share)
	}
	if byFiles := total.files * perFile; byFiles > total.bytes {
		return byFiles, total.files, nil
	}
	return total.bytes, 0, nil
}

// usage counts one folder without what was seen in others, and says how many bytes
// its file system has for each file. A folder that is being moved around in is counted
// again from its beginning, a few times.
func usage(path string, seen map[inode]bool) (found count, perFile int64, err error) {
	root, err := openRoot(path)
	if err != nil {
		return count{}, 0, err
	}
	defer unix.Close(root)
	perFile, byName := bytesPerFile(root)
	for range 5 {
		found = count{}
		here := map[inode]bool{}
		add := func(_ int, _ string, st *unix.Stat_t) error {
			if st.Nlink > 1 && st.Mode&unix.S_IFMT != unix.S_IFDIR {
				i := inode{st.Dev, st.Ino}
				if seen[i] || here[i] {
					if byName {
						found.files++
					}
					return nil
				}
				here[i] = true
			}
			found.bytes += max(st.Blocks*512, fileCost)
			found.files++
			return nil
		}
		if err = Walk(root, Visitor{File: add, Enter: add}); !errors.Is(err, ErrMoved) {
			maps.Copy(seen, here)
			return found, perFile, err
		}
	}
	return count{}, 0, err
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

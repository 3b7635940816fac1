package tree

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// fileCost is what a file takes up at least: also an empty one needs its place
// in the file system's tables, of which there is an end.
const fileCost = 1024

// Usage counts the bytes that the folders take up on disk, what has several
// names once. A folder that does not exist takes up nothing.
func Usage(paths ...string) (int64, error) {
	type inode struct{ dev, ino uint64 }
	seen := map[inode]bool{}
	var total int64
	add := func(_ int, _ string, st *unix.Stat_t) error {
		if st.Nlink > 1 && st.Mode&unix.S_IFMT != unix.S_IFDIR {
			i := inode{st.Dev, st.Ino}
			if seen[i] {
				return nil
			}
			seen[i] = true
		}
		total += max(st.Blocks*512, fileCost)
		return nil
	}
	for _, path := range paths {
		if err := usage(path, add, &total); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
	}
	return total, nil
}

// usage counts one folder. One that is being moved around in is counted again
// from its beginning, a few times.
func usage(path string, add func(int, string, *unix.Stat_t) error, total *int64) error {
	root, err := openRoot(path)
	if err != nil {
		return err
	}
	defer unix.Close(root)
	before := *total
	for range 5 {
		*total = before
		if err = walk(root, visitor{file: add, enter: add}); !errors.Is(err, ErrMoved) {
			return err
		}
	}
	return err
}

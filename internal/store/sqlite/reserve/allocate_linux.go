package reserve

import (
	"os"

	"golang.org/x/sys/unix"
)

// allocate allocates blocks up to end and leaves the length of the file as it is.
func allocate(f *os.File, end int64) error {
	return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, end)
}

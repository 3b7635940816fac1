package checkpoint

import (
	"time"

	"golang.org/x/sys/unix"
)

// vacancy identifies an empty folder. As long as its change time stays the same, it is empty: each new entry
// changes that time, and programs cannot set it.
type vacancy struct {
	dev, ino uint64
	changed  unix.Timespec
}

// vacant returns the folder as it is now, before it is read. It is the zero vacancy if the folder has changed so recently that
// another change would not be noticed.
func vacant(dir string) (v vacancy) {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil || time.Since(time.Unix(st.Ctim.Unix())) <= racyTime {
		return vacancy{}
	}
	return vacancy{uint64(st.Dev), st.Ino, st.Ctim}
}

// still reports whether the folder is known to be empty.
func (v vacancy) still(dir string) bool { return v != vacancy{} && v == vacant(dir) }

package reserve

import "os"

// ahead keeps blocks of the disk allocated behind the end of the write-ahead log. They belong
// to that file, so what others write in the same moment cannot take them: messages are
// stored on a disk that sandboxes have filled. Where the file system cannot allocate, or
// allocates anew for every write, there is only the Reserve.
type ahead struct {
	path          string
	size          int64 // 0 for none
	allocated     int64 // up to where in the file
	writes, bytes int   // since the length of the file was looked at
}

// After so many writes or bytes the length of the file is looked at. A write changes a few pages.
const (
	lookWrites = 64
	lookBytes  = 1 << 20
)

func (a *ahead) wrote(writes, bytes int) {
	a.writes += writes
	a.bytes += bytes
	if a.writes >= lookWrites || a.bytes >= lookBytes {
		a.writes, a.bytes = 0, 0
		a.allocate()
	}
}

// allocate does nothing most of the time: SQLite begins the file anew and does not shorten it.
func (a *ahead) allocate() {
	if a.size < smallest {
		return
	}
	info, err := os.Stat(a.path)
	if err != nil || info.Size()+a.size <= a.allocated {
		return
	}
	// SQLite has no locks on this file, which closing it would drop.
	f, err := os.OpenFile(a.path, os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer f.Close()
	for _, end := range []int64{info.Size() + a.size + a.size/2, info.Size() + a.size} {
		if allocate(f, end) == nil {
			a.allocated = end
			return
		}
	}
}

// Package memo keeps small files in memory that are read often and change seldom.
package memo

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// racyTime is the minimum age of a file's last change at which its times reveal the next change: the kernel's clock
	// for files has a coarse resolution.
	racyTime = 20 * time.Millisecond
	maxFiles = 4096
)

// Files are decoded files. The zero value is empty. Values are shared: do not change what they point to.
type Files[T any] struct {
	// Decode makes a value from the content of a file.
	Decode func([]byte) (T, error)

	mu    sync.Mutex
	known map[string]known[T]
}

type known[T any] struct {
	version version
	value   T
}

// version is what differs between two versions of a file, if each is a new file that was renamed to the name.
type version struct {
	inode uint64
	size  int64
	time  int64 // nanoseconds; of the inode, which no program can set
}

// Read returns the value of a file as it is now.
func (f *Files[T]) Read(path string) (T, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		var none T
		return none, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	v := version{st.Ino, st.Size, st.Ctim.Nano()}
	f.mu.Lock()
	k, ok := f.known[path]
	f.mu.Unlock()
	if ok && k.version == v {
		return k.value, nil
	}
	settled := time.Since(time.Unix(0, v.time)) > racyTime
	body, err := os.ReadFile(path)
	if err != nil {
		var none T
		return none, err
	}
	value, err := f.Decode(body)
	if err != nil || !settled {
		return value, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known == nil || len(f.known) >= maxFiles {
		f.known = map[string]known[T]{}
	}
	f.known[path] = known[T]{v, value}
	return value, nil
}

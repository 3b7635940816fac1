// Package reserve keeps space for what must be written when the disk is full.
package reserve

import (
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// Reserve is a file that takes up space for when there is no other: when the disk is
// full it is made smaller step by step, so that ends can still be recorded, and made again
// when there is room. Until then nothing else is written. A step is little, since others
// may take the space before it is used.
type Reserve struct {
	path string
	size int64 // 0 for no reserve

	mu   sync.Mutex
	left int64 // how large the file is

	ahead ahead
}

const (
	// steps is in how many steps the reserve is given back.
	steps = 8
	// lastSteps are the steps for a conversation that is stopped, deleted or failed: what
	// other ends have used up does not keep a person from that.
	lastSteps = 2
)

// smallest is what is of no use: a commit needs some pages at least.
const smallest = 64 << 10

// Path is where the reserve of a database lies.
func Path(path string) string { return path + "-reserve" }

// Open makes the reserve beside the database, at most a sixteenth of the disk.
func Open(path string, size int64) *Reserve {
	r := &Reserve{path: Path(path), size: size}
	if size <= 0 {
		return r
	}
	_, all, err := Space(path)
	if err == nil {
		r.size = min(size, all/16)
	}
	if info, err := os.Stat(r.path); err == nil {
		r.left = min(info.Size(), r.size)
	}
	r.Ready()
	r.ahead = ahead{path: path + "-wal", size: r.size}
	r.ahead.allocate()
	return r
}

// Wrote is told of every commit, by the one goroutine that writes.
func (r *Reserve) Wrote(writes, bytes int) { r.ahead.wrote(writes, bytes) }

// Release gives a step of the space back, or one of the last if final. It says whether
// there was any to give.
func (r *Reserve) Release(final bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.size < smallest {
		return false
	}
	step, least := r.size/steps, int64(0)
	if !final {
		least = lastSteps * step
	}
	if r.left <= least {
		return false
	}
	r.left = max(r.left-step, least)
	return os.Truncate(r.path, r.left) == nil
}

// Ready says whether ordinary writes may be made: not while some of the reserve is used
// and cannot be had again.
func (r *Reserve) Ready() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.size < smallest || r.left == r.size {
		return true
	}
	free, _, err := Space(filepath.Dir(r.path))
	if err != nil || free < 2*r.size || !r.fill() {
		return false
	}
	r.left = r.size
	return true
}

// Halve gives back half of a reserve that is not open yet. It says whether there was any.
func Halve(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() > 0 && os.Truncate(path, info.Size()/2) == nil
}

// Low says that less is left on the disk than the reserve holds: the next writes may fail.
func (r *Reserve) Low() bool {
	if r.size < smallest {
		return false
	}
	free, _, err := Space(filepath.Dir(r.path))
	return err == nil && free < r.size
}

// fill writes the file. What is in it cannot be compressed.
func (r *Reserve) fill() bool {
	if r.size < smallest {
		return false
	}
	f, err := os.OpenFile(r.path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return false
	}
	_, err = io.CopyN(f, rand.Reader, r.size)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(r.path+".new", r.path)
	}
	if err != nil {
		_ = os.Remove(r.path + ".new")
	}
	return err == nil
}

// Space is how many bytes can be written to the file system that holds path, and how
// many it has.
func Space(path string) (free, all int64, err error) {
	var st syscall.Statfs_t
	err = syscall.Statfs(path, &st)
	return int64(st.Bavail) * int64(st.Bsize), int64(st.Blocks) * int64(st.Bsize), err
}

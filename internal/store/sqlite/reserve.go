package sqlite

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"deckhand/internal/session"
)

// reserve is a file that takes up space for when there is no other: when the disk is
// full it is removed, so that ends can still be recorded, and made again when there is
// room. Until then nothing else is written.
type reserve struct {
	path string
	size int64 // 0 for no reserve

	mu    sync.Mutex
	spent bool
}

// minReserve is what is of no use: a commit needs some pages at least.
const minReserve = 64 << 10

// reservePath is where the reserve of a database lies.
func reservePath(path string) string { return path + "-reserve" }

// openReserve makes the reserve beside the database, at most a sixteenth of the disk.
func openReserve(path string, size int64) *reserve {
	r := &reserve{path: reservePath(path), size: size}
	if size <= 0 {
		return r
	}
	_, all, err := space(path)
	if err == nil {
		r.size = min(size, all/16)
	}
	if info, err := os.Stat(r.path); err != nil || info.Size() != r.size {
		r.spent = true
		r.ready()
	}
	return r
}

// release gives the space back. It says whether there was any to give.
func (r *reserve) release() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.size < minReserve || r.spent {
		return false
	}
	r.spent = true
	return os.Remove(r.path) == nil
}

// ready says whether ordinary writes may be made: not while the reserve is spent and
// cannot be had again.
func (r *reserve) ready() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.size < minReserve || !r.spent {
		return true
	}
	free, _, err := space(filepath.Dir(r.path))
	if err != nil || free < 2*r.size || !r.fill() {
		return false
	}
	r.spent = false
	return true
}

// low says that less is left on the disk than the reserve holds: the next writes may fail.
func (r *reserve) low() bool {
	if r.size < minReserve {
		return false
	}
	free, _, err := space(filepath.Dir(r.path))
	return err == nil && free < r.size
}

// fill writes the file. What is in it cannot be compressed.
func (r *reserve) fill() bool {
	if r.size < minReserve {
		return false
	}
	content := make([]byte, r.size)
	_, _ = rand.Read(content)
	err := os.WriteFile(r.path+".new", content, 0o600)
	if err == nil {
		err = os.Rename(r.path+".new", r.path)
	}
	if err != nil {
		_ = os.Remove(r.path + ".new")
	}
	return err == nil
}

// space is how many bytes can be written to the file system that holds path, and how
// many it has.
func space(path string) (free, all int64, err error) {
	var st syscall.Statfs_t
	err = syscall.Statfs(path, &st)
	return int64(st.Bavail) * int64(st.Bsize), int64(st.Blocks) * int64(st.Bsize), err
}

// closing says that a batch only records how something ended. These may use the reserve.
func closing(b session.Batch) bool {
	for _, e := range b.Events {
		switch e.Payload.(type) {
		case session.Stopped, session.Deleted, session.Failed, session.Noted, session.ToolReturned, session.CommandEnded, session.ModelFailed,
			session.TurnEnded, session.StateChanged, session.PauseRequested, session.Paused, session.Settled, session.ApprovalGiven:
		default:
			return false
		}
	}
	return true
}

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
// full it is made smaller step by step, so that ends can still be recorded, and made again
// when there is room. Until then nothing else is written. A step is little, since others
// may take the space before it is used.
type reserve struct {
	path string
	size int64 // 0 for no reserve

	mu   sync.Mutex
	left int64 // how large the file is
}

const (
	// reserveSteps is in how many steps the reserve is given back.
	reserveSteps = 8
	// lastSteps are the steps for a conversation that is stopped, deleted or failed: what
	// other ends have used up does not keep a person from that.
	lastSteps = 2
)

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
	if info, err := os.Stat(r.path); err == nil {
		r.left = min(info.Size(), r.size)
	}
	r.ready()
	return r
}

// release gives a step of the space back, or one of the last if final. It says whether
// there was any to give.
func (r *reserve) release(final bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.size < minReserve {
		return false
	}
	step, least := r.size/reserveSteps, int64(0)
	if !final {
		least = lastSteps * step
	}
	if r.left <= least {
		return false
	}
	r.left = max(r.left-step, least)
	return os.Truncate(r.path, r.left) == nil
}

// ready says whether ordinary writes may be made: not while some of the reserve is used
// and cannot be had again.
func (r *reserve) ready() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.size < minReserve || r.left == r.size {
		return true
	}
	free, _, err := space(filepath.Dir(r.path))
	if err != nil || free < 2*r.size || !r.fill() {
		return false
	}
	r.left = r.size
	return true
}

// halve gives back half of a reserve that is not open yet. It says whether there was any.
func halve(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() > 0 && os.Truncate(path, info.Size()/2) == nil
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

// final says that a batch records that a conversation is stopped, deleted or failed.
func final(b session.Batch) bool {
	for _, e := range b.Events {
		switch e.Payload.(type) {
		case session.Stopped, session.Deleted, session.Failed:
			return true
		}
	}
	return false
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

// Package limit holds a sandbox to its disk limit from inside, while no server is attached to
// its runner: commands continue then, and would be measured by nothing.
package limit

import (
	"context"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/deleted"
	"deckhand/internal/sandbox/meter"
	"deckhand/internal/sandbox/tree"
)

// Runner is what the limit is held for.
type Runner interface {
	// Alone waits until the last server has left, and returns what is closed when one
	// attaches; nil when the runner ends.
	Alone() <-chan struct{}
	Busy() bool
	EndAll(ctx context.Context, why string) error
}

// endTime is how long ending everything may take before it is tried again.
const endTime = 10 * time.Second

// others is how many sandboxes are taken to write at the same time: a runner knows of itself only.
const others = 4

// Hold measures the folders of a sandbox whenever no server is attached, and ends everything in
// it that writes more than the limit allows. It returns when the runner ends.
func Hold(r Runner, limit int64, folders ...string) {
	for attached := r.Alone(); attached != nil; attached = r.Alone() {
		m := meter.New(box{Runner: r, folders: folders}, limit)
		m.Watch(context.Background(), attached, r.Busy, func(error) {})
	}
}

// box implements meter.Sandbox.
type box struct {
	Runner
	folders []string
}

func (b box) Space() sandbox.Space {
	var st unix.Statfs_t
	if unix.Statfs(b.folders[0], &st) != nil {
		return sandbox.Space{}
	}
	return sandbox.Space{Bytes: int64(st.Blocks) * st.Bsize, FreeBytes: int64(st.Bavail) * st.Bsize,
		Inodes: int64(st.Files), FreeInodes: int64(st.Ffree), Writers: others}
}

func (b box) Usage(context.Context) (sandbox.Usage, error) {
	bytes, files, err := tree.Usage(b.folders...)
	return sandbox.Usage{Bytes: bytes, Files: files}, err
}

func (b box) Unlinked(context.Context) (int64, error) {
	processes, err := filepath.Glob("/proc/[0-9]*")
	return deleted.Bytes(processes), err
}

func (b box) EndAll(ctx context.Context, why string) error {
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	return b.Runner.EndAll(ctx, why)
}

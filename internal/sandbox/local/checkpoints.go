package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/checkpoint"
	"deckhand/internal/sandbox/local/cgroup"
)

// places is the driver as its checkpoints see it.
type places struct{ *Driver }

// Place implements checkpoint.Driver.
func (d places) Place(h sandbox.Handle) (string, checkpoint.Workspace, error) {
	dir, err := d.path(h)
	if err != nil {
		return "", checkpoint.Workspace{}, err
	}
	m, _ := readMeta(dir) // without one, there is no workspace either
	w := m.checkpointed(dir)
	if _, err := os.Lstat(w.Dir); errors.Is(err, fs.ErrNotExist) {
		return "", w, fmt.Errorf("%w: %s has no workspace", sandbox.ErrGone, h.ID)
	}
	return dir, w, nil
}

// Quiet implements checkpoint.Driver. If this process dies, a frozen sandbox stays so until the next one has finished the
// restore: see Attach.
func (d places) Quiet(ctx context.Context, h sandbox.Handle, do func() error) error {
	return d.with(ctx, h, func(p *place) error {
		if p.meta.alive() && cgroup.Freeze(ctx, p.meta.Groups) == nil {
			defer func() { _ = cgroup.Thaw(p.meta.Groups) }()
		}
		return do()
	})
}

// checkpointed is the workspace of the sandbox in dir.
func (m meta) checkpointed(dir string) checkpoint.Workspace {
	w := checkpoint.Workspace{Dir: m.workspace(dir)}
	if m.User != 0 && m.Folder == "" {
		w.First, w.Size = m.User, rangeSize
	}
	return w
}

// recallRestore completes a restore in which the last server died, and lets the sandbox go on. A server that still runs
// does that itself.
func (d *Driver) recallRestore(dir string, m meta) {
	if !checkpoint.Interrupted(dir) {
		return
	}
	folder, err := os.Open(dir)
	if err != nil {
		return
	}
	defer folder.Close()
	if unix.Flock(int(folder.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		d.Finish(dir, m.checkpointed(dir))
		_ = unhold(dir, m)
	}
}

package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/local/cgroup"
	"deckhand/internal/sandbox/local/checkpoint"
)

// checkpointDir holds the checkpoints of a sandbox, out of its reach.
const checkpointDir = "checkpoints"

// minFree is how much of the disk stays free of checkpoints.
const minFree = 512 << 20

// store returns the checkpoints of a sandbox, and its workspace.
func (d *Driver) store(h sandbox.Handle) (*checkpoint.Store, checkpoint.Workspace, error) {
	dir, err := d.path(h)
	if err != nil {
		return nil, checkpoint.Workspace{}, err
	}
	m, _ := readMeta(dir) // without one, there is no workspace either
	w := workspaceOf(dir, m)
	if _, err := os.Lstat(w.Dir); errors.Is(err, fs.ErrNotExist) {
		return nil, w, fmt.Errorf("%w: %s has no workspace", sandbox.ErrGone, h.ID)
	}
	return d.stores.Of(filepath.Join(dir, checkpointDir)), w, nil
}

func workspaceOf(dir string, m meta) checkpoint.Workspace {
	w := checkpoint.Workspace{Dir: m.workspace(dir)}
	if m.User != 0 && m.Folder == "" {
		w.First, w.Size = m.User, rangeSize
	}
	return w
}

// Checkpoint implements sandbox.Checkpointer. It reads beside a running sandbox.
func (d *Driver) Checkpoint(ctx context.Context, h sandbox.Handle) (sandbox.Checkpoint, error) {
	release, err := d.checkpoints.Acquire(ctx, h.ID)
	if err != nil {
		return sandbox.Checkpoint{}, err
	}
	defer release()
	s, w, err := d.store(h)
	if err != nil {
		return sandbox.Checkpoint{}, err
	}
	if space, err := d.Space(); err == nil && space.FreeBytes < minFree {
		return sandbox.Checkpoint{}, fmt.Errorf("%w: less than %d MiB of the disk are free", sandbox.ErrTooBig, minFree>>20)
	}
	t, err := s.Take(ctx, w)
	return checkpointOf(t), checkpointError(err)
}

func checkpointOf(t checkpoint.Taken) sandbox.Checkpoint {
	return sandbox.Checkpoint{Number: t.Number, Files: t.Files, Changed: t.Changed, LeftOut: t.LeftOut, Bytes: t.Bytes}
}

func checkpointError(err error) error {
	switch {
	case errors.Is(err, checkpoint.ErrTooLarge):
		return fmt.Errorf("%w: %w", sandbox.ErrTooBig, err)
	case errors.Is(err, checkpoint.ErrNone):
		return fmt.Errorf("%w: %w", sandbox.ErrNoCheckpoint, err)
	}
	return err
}

// Checkpoints implements sandbox.Checkpointer.
func (d *Driver) Checkpoints(_ context.Context, h sandbox.Handle) (out sandbox.Checkpoints, err error) {
	s, _, err := d.store(h)
	if err != nil {
		return out, err
	}
	if out.Numbers, err = s.Numbers(); err == nil {
		out.Bytes, err = s.Bytes()
	}
	return out, err
}

// Restore implements sandbox.Checkpointer. What runs in the sandbox is frozen meanwhile, if the machine can do that. If
// this process dies, it stays frozen until the next one has finished the restore: see Attach.
func (d *Driver) Restore(ctx context.Context, h sandbox.Handle, number int) (out sandbox.Restored, err error) {
	err = d.with(ctx, h, func(p *place) error {
		release, err := d.checkpoints.Acquire(ctx, h.ID)
		if err != nil {
			return err
		}
		defer release()
		s, w, err := d.store(h)
		if err != nil {
			return err
		}
		if p.meta.alive() {
			if err := cgroup.Freeze(ctx, p.meta.Groups); err == nil {
				defer func() { _ = cgroup.Thaw(p.meta.Groups) }()
			}
		}
		r, err := s.Restore(ctx, w, number)
		out = sandbox.Restored{Before: checkpointOf(r.Undo), Changed: r.Changed, Kept: r.Kept}
		return checkpointError(err)
	})
	if err == nil && out.Before.Number == 0 {
		err = fmt.Errorf("%w: %s has no workspace", sandbox.ErrGone, h.ID)
	}
	return out, err
}

// finishRestore completes a restore in which a server died. If that fails, the next use tries again. A restore of this
// process is waited for.
func (d *Driver) finishRestore(dir string, m meta) {
	s := checkpoint.Open(filepath.Join(dir, checkpointDir))
	if !s.Pending() {
		return
	}
	release, err := d.checkpoints.Acquire(context.Background(), filepath.Base(dir))
	if err == nil {
		defer release()
		err = s.Finish(workspaceOf(dir, m))
	}
	if err != nil {
		d.log.Warn("an interrupted restore of a workspace cannot be finished", "workspace", dir, "error", err)
	}
}

// recallRestore completes a restore in which the last server died, and lets the sandbox go on. A server that still runs
// does that itself.
func (d *Driver) recallRestore(dir string, m meta) {
	if !checkpoint.Open(filepath.Join(dir, checkpointDir)).Pending() {
		return
	}
	folder, err := os.Open(dir)
	if err != nil {
		return
	}
	defer folder.Close()
	if unix.Flock(int(folder.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return
	}
	d.finishRestore(dir, m)
	if m.alive() {
		_ = unhold(dir, m)
	}
}

// Compare implements sandbox.Checkpointer.
func (d *Driver) Compare(_ context.Context, a, b sandbox.CheckpointOf) ([]sandbox.FileChange, error) {
	from, _, err := d.store(a.Handle)
	if err != nil {
		return nil, err
	}
	to, _, err := d.store(b.Handle)
	if err != nil {
		return nil, err
	}
	changes, err := from.Compare(a.Number, to, b.Number)
	out := make([]sandbox.FileChange, len(changes))
	for i, c := range changes {
		out[i] = sandbox.FileChange{Path: c.Path, Status: statuses[c.Status], Old: c.Old, New: c.New}
	}
	return out, checkpointError(err)
}

var statuses = map[byte]string{'A': "added", 'D': "deleted", 'M': "modified"}

// CheckpointFile implements sandbox.Checkpointer.
func (d *Driver) CheckpointFile(_ context.Context, c sandbox.CheckpointOf, path string, most int64) ([]byte, bool, error) {
	s, _, err := d.store(c.Handle)
	if err != nil {
		return nil, false, err
	}
	content, found, err := s.Content(c.Number, strings.TrimPrefix(path, "/"), most)
	return content, found, checkpointError(err)
}

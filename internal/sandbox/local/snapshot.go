package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/checkpoint"
	"deckhand/internal/sandbox/local/box"
	"deckhand/internal/sandbox/tree"
)

// Snapshot implements sandbox.Snapshotter. Concurrent writes of the sandbox are in the copy or
// not, file by file. The copy includes installed software, and nothing of the runner's own
// state.
func (d *Driver) Snapshot(ctx context.Context, h sandbox.Handle, id string) error {
	from, err := d.path(h)
	if err != nil {
		return err
	}
	to, err := d.path(d.handle(id))
	if err != nil {
		return err
	}
	if from == to {
		return fmt.Errorf("%w: %s cannot be a copy of itself", sandbox.ErrInvalid, id)
	}
	// Always in the same order, or two copies could wait for each other.
	for _, name := range []string{min(h.ID, id), max(h.ID, id)} {
		release, err := d.locks.Acquire(ctx, name)
		if err != nil {
			return err
		}
		defer release()
	}
	source, err := d.open(ctx, h.ID, false)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s has no workspace", sandbox.ErrGone, h.ID)
	}
	if err != nil {
		return err
	}
	defer source.close()
	if source.meta.Folder != "" {
		return fmt.Errorf("%w: the workspace of %s is a folder of this machine, which is not copied", sandbox.ErrInvalid, h.ID)
	}
	d.Finish(source.dir, source.meta.checkpointed(source.dir))
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("%w: %s has a workspace already", fs.ErrExist, id)
	}
	scrap, err := os.MkdirTemp(d.dir, scrapPrefix)
	if err != nil {
		return err
	}
	if err := d.fill(ctx, source, scrap, id); err != nil {
		return errors.Join(err, tree.Remove(scrap))
	}
	// It gets its name when it is complete.
	if err := os.Rename(scrap, to); err != nil {
		return errors.Join(err, tree.Remove(scrap))
	}
	return nil
}

// fill makes the folder scrap a copy of source.
func (d *Driver) fill(ctx context.Context, source *place, scrap, id string) error {
	lock, err := d.openAt(ctx, id, scrap) // so that it is not removed as a leftover
	if err != nil {
		return err
	}
	defer lock.close()
	if err := os.Chmod(scrap, 0o711); err != nil {
		return err
	}
	var ids tree.IDs
	m := meta{Generation: 1}
	if source.meta.User != 0 {
		if m.User, err = d.users.take(id); err != nil {
			return err
		}
		ids = tree.IDs{From: source.meta.User, To: m.User, Size: rangeSize}
	}
	for _, name := range []string{box.UpDir, box.HomeDir, box.WorkDir} {
		if err = ctx.Err(); err == nil {
			err = tree.Copy(filepath.Join(source.dir, name), filepath.Join(scrap, name), ids)
		}
		if err != nil {
			d.users.free(m.User)
			return err
		}
	}
	if err := checkpoint.Share(source.dir, scrap); err != nil {
		d.users.free(m.User)
		return err
	}
	return m.write(scrap)
}

package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/checkpoint"
)

var _ sandbox.Checkpointer = (*Driver)(nil)

// Bare implements sandbox.Bare.
func (*Driver) Bare() {}

// places implements checkpoint.Driver.
type places struct{ *Driver }

// Place implements checkpoint.Driver.
func (d places) Place(h sandbox.Handle) (string, checkpoint.Workspace, error) {
	if err := sandbox.CheckID(h.ID); err != nil {
		return "", checkpoint.Workspace{}, err
	}
	dir, err := d.workspace(h.ID)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %s has no workspace", sandbox.ErrGone, h.ID)
	}
	return d.dir(h.ID), checkpoint.Workspace{Dir: dir}, err
}

// Quiet implements checkpoint.Driver. It does not stop running programs: without a sandbox, they would stay frozen if
// this process died.
func (d places) Quiet(_ context.Context, h sandbox.Handle, do func() error) error {
	defer d.lock(h.ID)()
	return do()
}

// Space implements checkpoint.Driver.
func (d places) Space() (sandbox.Space, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(d.Dir, &st); err != nil {
		return sandbox.Space{}, err
	}
	return sandbox.Space{Bytes: int64(st.Blocks) * st.Bsize, FreeBytes: int64(st.Bavail) * st.Bsize}, nil
}

// finish completes a restore during which a server died.
func (d *Driver) finish(id string) {
	if dir := d.dir(id); checkpoint.Interrupted(dir) {
		if workspace, err := d.workspace(id); err == nil {
			d.Finish(dir, checkpoint.Workspace{Dir: workspace})
		}
	}
}

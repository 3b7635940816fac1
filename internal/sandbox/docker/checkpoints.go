package docker

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"path"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/volume"
	"github.com/moby/moby/client"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker/names"
	"deckhand/internal/sandbox/docker/pool"
	"deckhand/internal/sandbox/docker/words"
)

// Checkpoints are stored in a separate volume. A helper container mounts this volume and the workspace, has no network, and runs only
// the runner, which keeps the checkpoints. The sandbox never mounts the second volume, and the server reads no files of a sandbox, so
// the engine can be on another machine.

// emptyFirst is checkpoint 1 of a workspace that was empty at first. It is created together with the next checkpoint.
var emptyFirst = sandbox.Checkpoint{Number: 1}

// Checkpoint implements sandbox.Checkpointer. A new workspace without files needs no helper.
func (d *Driver) Checkpoint(ctx context.Context, h sandbox.Handle) (out sandbox.Checkpoint, err error) {
	if _, err := d.folder(ctx, h.ID); err != nil {
		return out, err
	}
	store, err := d.find.Volume(ctx, names.Store, h.ID)
	if err != nil {
		return out, err
	}
	list, _ := d.helpers.List(h.ID)
	fresh := isEmpty(store) && len(list.Numbers) == 1 && list.Numbers[0] == emptyFirst.Number
	at := time.Now() // before looking, so that files created later are newer
	if (store == nil || fresh) && d.empty(ctx, h.ID) {
		if _, err := d.makeStore(ctx, h.ID, true); err != nil {
			return out, err
		}
		d.helpers.SetEmpty(h.ID, at)
		return emptyFirst, nil
	}
	err = d.helpers.With(ctx, h, func(r pool.Runner) error {
		out, err = r.Take(ctx)
		return err
	})
	return out, err
}

// empty reports whether there is a container whose workspace has no files.
func (d *Driver) empty(ctx context.Context, id string) bool {
	box, err := d.find.Container(ctx, names.Box, id)
	if err != nil || box == nil {
		return false
	}
	got, err := d.engine.CopyFromContainer(ctx, box.ID, client.CopyFromContainerOptions{SourcePath: sandbox.Workspace + "/."})
	if err != nil {
		return false
	}
	defer got.Content.Close()
	r := tar.NewReader(got.Content)
	head, err := r.Next()
	if err == nil && path.Clean(head.Name) == "." { // the folder itself, which Podman leaves out
		_, err = r.Next()
	}
	return err == io.EOF
}

// Checkpoints implements sandbox.Checkpointer.
func (d *Driver) Checkpoints(ctx context.Context, h sandbox.Handle) (out sandbox.Checkpoints, err error) {
	if _, err := d.folder(ctx, h.ID); err != nil {
		return out, err
	}
	if list, ok := d.helpers.List(h.ID); ok {
		return list, nil
	}
	if store, err := d.find.Volume(ctx, names.Store, h.ID); err != nil || store == nil {
		return out, err
	}
	err = d.helpers.With(ctx, h, func(pool.Runner) error { return nil }) // With refreshes the list
	out, _ = d.helpers.List(h.ID)
	return out, err
}

// Restore implements sandbox.Checkpointer. A running sandbox is paused. If this process dies, the sandbox stays paused until the
// next process has completed the restore: see settle.
func (d *Driver) Restore(ctx context.Context, h sandbox.Handle, p sandbox.RestoreParams) (out sandbox.Restored, err error) {
	if _, err := d.folder(ctx, h.ID); err != nil {
		return out, err
	}
	old, unlock, err := d.take(ctx, h)
	if err != nil {
		return out, err
	}
	defer unlock()
	release, err := d.restoring.Acquire(ctx, h.ID)
	if err != nil {
		return out, err
	}
	defer release()
	err = d.helpers.With(ctx, h, func(r pool.Runner) error {
		paused := false
		if old != nil && old.State != nil && old.State.Running {
			_, err := d.engine.ContainerPause(ctx, old.ID, client.ContainerPauseOptions{})
			paused = err == nil
		}
		out, err = r.Restore(ctx, p)
		if _, answered := sandbox.Refusal(err); paused && (err == nil || answered) {
			d.unpause(ctx, old.ID)
		}
		return err
	})
	return out, err
}

func (d *Driver) unpause(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTime)
	defer cancel()
	if _, err := d.engine.ContainerUnpause(ctx, id, client.ContainerUnpauseOptions{}); err != nil && !words.IsAsleep(err) && !words.IsNotThere(err) {
		d.log.Warn("a container could not be unpaused", "container", id, "error", err)
	}
}

// settle waits for a restore, and completes a restore during which a server died. The helper of such a restore still exists.
func (d *Driver) settle(ctx context.Context, h sandbox.Handle) error {
	release, err := d.restoring.Acquire(ctx, h.ID)
	if err != nil {
		return err
	}
	defer release()
	if d.helpers.Has(h.ID) {
		return nil
	}
	if helper, err := d.find.Container(ctx, names.Helper, h.ID); err != nil || helper == nil {
		return err
	}
	err = d.helpers.With(ctx, h, func(r pool.Runner) error {
		_, err := r.Settle(ctx)
		return err
	})
	if errors.Is(err, sandbox.ErrGone) {
		return nil // no workspace, so nothing to complete
	}
	if err != nil {
		return err
	}
	if old, err := d.find.Container(ctx, names.Box, h.ID); err == nil && old != nil && old.State != nil && old.State.Status == container.StatePaused {
		d.unpause(ctx, old.ID)
	}
	return nil
}

// Unrecorded implements sandbox.Checkpointer. The helper of a restore that was not recorded still exists.
func (d *Driver) Unrecorded(ctx context.Context, mine func(id string) bool) (out []sandbox.Unrecorded, err error) {
	got, err := d.engine.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: d.find.Filter()})
	if err != nil {
		return nil, d.words.Says(err)
	}
	for _, c := range got.Items {
		kind, id := d.find.Of(c.Labels)
		if kind != names.Helper || !mine(id) {
			continue
		}
		h := d.handle(id, data{Image: c.Labels[names.Image]})
		if e := d.settle(ctx, h); e != nil {
			err = errors.Join(err, e)
			continue
		}
		e := d.helpers.With(ctx, h, func(r pool.Runner) error {
			u, err := r.Settle(ctx)
			if u.Handle = h; err == nil && len(u.Note) > 0 {
				out = append(out, u)
			}
			return err
		})
		if !errors.Is(e, sandbox.ErrGone) {
			err = errors.Join(err, e)
		}
	}
	return out, err
}

// Recorded implements sandbox.Checkpointer.
func (d *Driver) Recorded(ctx context.Context, h sandbox.Handle) error {
	return d.helpers.With(ctx, h, func(r pool.Runner) error { return r.Recorded(ctx) })
}

// Compare implements sandbox.Checkpointer. For two sandboxes, it starts a temporary container with both stores.
func (d *Driver) Compare(ctx context.Context, a, b sandbox.CheckpointOf) (out []sandbox.FileChange, err error) {
	p := sandbox.CompareParams{From: a.Number, To: b.Number, Other: a.Handle.ID != b.Handle.ID}
	compare := func(r pool.Runner) error {
		out, err = r.Compare(ctx, p)
		return err
	}
	if !p.Other {
		return out, d.helpers.With(ctx, a.Handle, compare)
	}
	var stores []string
	for _, h := range []sandbox.Handle{a.Handle, b.Handle} {
		if _, err := d.folder(ctx, h.ID); err != nil {
			return nil, err
		}
		if err := d.settle(ctx, h); err != nil {
			return nil, err
		}
		store, err := d.find.Volume(ctx, names.Store, h.ID)
		if err != nil || store == nil {
			return nil, errors.Join(err, sandbox.ErrNoCheckpoint)
		}
		stores = append(stores, store.Name)
	}
	c, err := d.passing(ctx, a.Handle)
	if err != nil {
		return nil, err
	}
	c.store, c.other = stores[0], stores[1]
	made, err := d.make(ctx, c)
	if err != nil {
		return nil, err
	}
	defer d.discard(ctx, made)
	box, err := d.connect(ctx, link{id: a.Handle.ID, container: made, program: c.program, isolated: true})
	if err != nil {
		return nil, err
	}
	defer box.Close()
	return out, compare(box.CheckpointRunner())
}

// CheckpointFile implements sandbox.Checkpointer.
func (d *Driver) CheckpointFile(ctx context.Context, c sandbox.CheckpointOf, path string, most int64) (content []byte, found bool, err error) {
	err = d.helpers.With(ctx, c.Handle, func(r pool.Runner) error {
		got, err := r.File(ctx, sandbox.CheckpointFileParams{Number: c.Number, Path: path, Most: most})
		content, found = got.Content, got.Found
		return err
	})
	return content, found, err
}

// isEmpty reports whether a volume with checkpoints is of a workspace that was empty at first.
func isEmpty(store *volume.Volume) bool { return store != nil && store.Labels[names.Empty] != "" }

func (d *Driver) makeStore(ctx context.Context, id string, empty bool) (*volume.Volume, error) {
	var labels map[string]string
	if empty {
		labels = map[string]string{names.Empty: "1"}
	}
	return d.find.Make(ctx, names.Store, id, labels)
}

// removeStore removes the helper and the checkpoints of a sandbox.
func (d *Driver) removeStore(ctx context.Context, id string) error {
	return d.helpers.Alone(ctx, id, func() error {
		d.helpers.Forget(id)
		if err := d.removeHelper(ctx, id); err != nil {
			return d.words.Says(err)
		}
		return d.removeVolume(ctx, names.Store, id)
	})
}

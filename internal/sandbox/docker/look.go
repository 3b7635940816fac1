package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/moby/moby/client"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker/bind"
	"deckhand/internal/sandbox/docker/names"
	"deckhand/internal/sandbox/docker/words"
)

// View opens the volume where the engine keeps it, if that is on this machine
// and we may.
func (d *Driver) View(ctx context.Context, h sandbox.Handle) (*os.Root, error) {
	folder, err := d.folder(ctx, h.ID)
	if err == nil {
		err = d.settle(ctx, h)
	}
	if err != nil {
		return nil, err
	}
	if !d.engine.Local || folder == "" {
		return nil, sandbox.ErrUnseen
	}
	root, err := os.OpenRoot(folder)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("%w: %w", sandbox.ErrUnseen, err)
	}
	return root, err
}

// folder is where the engine keeps a workspace. ErrGone if there is none.
func (d *Driver) folder(ctx context.Context, id string) (string, error) {
	if err := sandbox.CheckID(id); err != nil {
		return "", err
	}
	v, err := d.find.Volume(ctx, names.Box, id)
	if err == nil && v == nil {
		err = fmt.Errorf("%w: it has no workspace", sandbox.ErrGone)
	}
	if err != nil {
		return "", err
	}
	return cmp.Or(v.Labels[names.Folder], v.Mountpoint), nil
}

// Inspect starts a container beside the sandbox's own that can only read the
// workspace.
func (d *Driver) Inspect(ctx context.Context, h sandbox.Handle) (*sandbox.Sandbox, error) {
	if _, err := d.folder(ctx, h.ID); err != nil { // the engine would make one
		return nil, err
	}
	if err := d.settle(ctx, h); err != nil {
		return nil, err
	}
	p, err := d.passing(ctx, h)
	if err != nil {
		return nil, err
	}
	made, err := d.make(ctx, p)
	if err != nil {
		return nil, err
	}
	var once sync.Once
	box, err := d.connect(ctx, link{
		id: h.ID, container: made, program: p.program, isolated: true,
		onClose: func() { once.Do(func() { d.discard(context.Background(), made) }) },
	})
	if err != nil {
		err = d.deaf(ctx, made, err, p)
		d.discard(ctx, made)
		return nil, err
	}
	return box, nil
}

// passing plans a container for one look at h's workspace, of the same image.
func (d *Driver) passing(ctx context.Context, h sandbox.Handle) (*plan, error) {
	s := shape{Image: dataOf(h).Image, Prepared: d.options.Runner == "", Network: sandbox.Isolated, User: d.options.User}
	v, err := d.find.Volume(ctx, names.Box, h.ID)
	if err == nil && v == nil {
		err = fmt.Errorf("%w: it has no workspace", sandbox.ErrGone)
	}
	if err == nil && v.Labels[names.Folder] != "" {
		err = d.bound(ctx, &s, v.Labels[names.Folder])
	}
	if err != nil {
		return nil, err
	}
	if s.Image == "" {
		old, err := d.find.Container(ctx, names.Box, h.ID)
		if err != nil {
			return nil, err
		}
		s.Image = d.options.Image
		if old != nil {
			s.Image = old.Config.Labels[names.Image]
		}
	}
	if s.Image == "" {
		return nil, words.Unavailable(nil, "No container image is set, so the workspace cannot be read. Set a default with --sandbox-image.")
	}
	img, here, err := d.image(ctx, s.Image)
	if err == nil && !here {
		if err = d.pull(ctx, s.Image, func(sandbox.Progress) {}); err == nil {
			img, _, err = d.image(ctx, s.Image)
		}
	}
	if err != nil {
		return nil, err
	}
	return &plan{
		shape: s, id: h.ID, name: d.find.Names.Passing(h.ID), volume: v.Name, image: img,
		limits: sandbox.Limits{}.OrDefault(), passing: true,
	}, nil
}

// Snapshot copies the volume. The engine packs what is in one and unpacks it
// into the other, so it works with every image and wherever the engine is; two
// containers that are never started give it access to them.
func (d *Driver) Snapshot(ctx context.Context, h sandbox.Handle, id string) error {
	if _, err := d.folder(ctx, h.ID); err != nil {
		return err
	}
	if err := d.settle(ctx, h); err != nil {
		return err
	}
	return d.helpers.Alone(ctx, h.ID, func() error { return d.snapshot(ctx, h, id) }) // no checkpoint is made during the copy
}

func (d *Driver) snapshot(ctx context.Context, h sandbox.Handle, id string) (err error) {
	unlock, err := d.busy.Acquire(ctx, id)
	if err != nil {
		return err
	}
	defer unlock()
	switch _, err := d.folder(ctx, id); {
	case err == nil:
		return fmt.Errorf("%w: the sandbox %s has a workspace already", fs.ErrExist, id)
	case !errors.Is(err, sandbox.ErrGone):
		return err
	}
	from, err := d.passing(ctx, h)
	if err != nil {
		return err
	}
	if from.Folder != "" {
		return fmt.Errorf("%w: the workspace of %s is a folder of this machine, which is not copied", sandbox.ErrInvalid, h.ID)
	}
	from.program = runnerPath // never run, so it need not be there
	to := *from
	to.id, to.volume, to.name = id, d.find.Workspace(id)[0], d.find.Names.Passing(id)
	to.writes = true
	store, err := d.find.Volume(ctx, names.Store, h.ID)
	if err != nil {
		return err
	}
	if store != nil {
		from.store, to.store = store.Name, d.find.Names.Store(id)[0]
	}
	source, err := d.create(ctx, from)
	if err != nil {
		return d.words.Start(err, from.Image, from.Prepared)
	}
	defer d.discard(ctx, source)
	// The volume is made by itself, so that it has the labels of a workspace and
	// starts empty whatever the image has at its place.
	if _, err := d.find.Make(ctx, names.Box, id, nil); err != nil {
		return err
	}
	defer func() {
		if err != nil { // half a copy is worse than none
			tidy, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTime)
			defer cancel()
			if left := errors.Join(d.removeStore(tidy, id), d.removeVolume(tidy, names.Box, id)); left != nil {
				d.log.Warn("half a copy of a workspace could not be removed", "volume", to.volume, "error", left)
			}
		}
	}()
	if store != nil {
		if _, err := d.makeStore(ctx, id, isEmpty(store)); err != nil {
			return err
		}
	}
	target, err := d.create(ctx, &to)
	if err != nil {
		return d.words.Start(err, to.Image, to.Prepared)
	}
	defer d.discard(ctx, target)
	if store != nil {
		if err := d.copyFolder(ctx, source, target, storePath); err != nil {
			return err
		}
	}
	return d.copyFolder(ctx, source, target, sandbox.Workspace)
}

// copyFolder copies a folder of a container to another one.
func (d *Driver) copyFolder(ctx context.Context, from, to, folder string) error {
	pack, err := d.engine.CopyFromContainer(ctx, from, client.CopyFromContainerOptions{SourcePath: folder + "/."})
	if err != nil {
		return fmt.Errorf("packing %s: %w", folder, d.words.Says(err))
	}
	defer pack.Content.Close()
	if d.isPodman(ctx) { // it does not see volumes from the top folder, and keeps all links
		err = d.copyIn(ctx, to, folder, pack.Content)
	} else {
		// Docker refuses links that lead out of the folder in which it unpacks, so it is the top one.
		moved := bind.Moved(pack.Content, folder)
		err = d.copyIn(ctx, to, "/", moved)
		moved.Close()
	}
	if err != nil {
		return fmt.Errorf("unpacking %s: %w", folder, d.words.Says(err))
	}
	return nil
}

package docker

import (
	"context"
	"errors"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker/names"
)

// startHelper starts the helper of a sandbox, or connects to an existing one. ErrGone if the sandbox has no workspace.
func (d *Driver) startHelper(ctx context.Context, h sandbox.Handle) (box *sandbox.Sandbox, made string, err error) {
	if _, err := d.folder(ctx, h.ID); err != nil {
		return nil, "", err
	}
	store, err := d.makeStore(ctx, h.ID, false)
	if err != nil {
		return nil, "", err
	}
	if store == nil {
		return nil, "", sandbox.ErrGone
	}
	if box, made, err = d.connectHelper(ctx, h, store.Name); err != nil {
		return nil, "", err
	}
	if err := box.CheckpointRunner().Begin(ctx, sandbox.BeginParams{Empty: isEmpty(store)}); err != nil {
		box.Close()
		return nil, "", err
	}
	return box, made, nil
}

// connectHelper connects to the existing container, or creates one.
func (d *Driver) connectHelper(ctx context.Context, h sandbox.Handle, store string) (box *sandbox.Sandbox, made string, err error) {
	for range 2 {
		var program string
		made, program, err = d.adopt(ctx, h.ID)
		var p *plan
		if made == "" && err == nil {
			if p, err = d.passing(ctx, h); err != nil {
				return nil, "", err
			}
			p.name, p.helper, p.writes, p.store = d.find.Names.Helper(h.ID)[0], true, true, store
			made, err = d.make(ctx, p)
			program = p.program
		}
		if err == nil {
			box, err = d.connect(ctx, link{id: h.ID, container: made, program: program, isolated: true})
		}
		if err == nil || ctx.Err() != nil || errors.Is(err, names.ErrForeign) {
			return box, made, err
		}
		if p != nil && made != "" {
			err = d.deaf(ctx, made, err, p)
		}
		if left := d.removeHelper(ctx, h.ID); left != nil || p != nil {
			return nil, "", errors.Join(err, left)
		}
	}
	return nil, "", err
}

// adopt finds a helper of an earlier server, and starts it if it has stopped.
func (d *Driver) adopt(ctx context.Context, id string) (made, program string, err error) {
	c, err := d.find.Container(ctx, names.Helper, id)
	if err != nil || c == nil {
		return "", "", err
	}
	if c.State == nil || c.State.Status != container.StateRunning {
		_, err = d.engine.ContainerStart(ctx, c.ID, client.ContainerStartOptions{})
	}
	return c.ID, c.Config.Labels[names.Runner], err
}

// removeHelper removes the helper of a sandbox, if there is one.
func (d *Driver) removeHelper(ctx context.Context, id string) error {
	c, err := d.find.Container(ctx, names.Helper, id)
	if err != nil || c == nil {
		return err
	}
	return d.remove(ctx, c.ID)
}

// discardHelper removes the container of a helper that is not in use any more.
func (d *Driver) discardHelper(made string) {
	ctx, cancel := context.WithTimeout(context.Background(), tidyTime)
	defer cancel()
	if err := d.remove(ctx, made); err != nil {
		d.log.Warn("the container that keeps checkpoints could not be removed", "container", made, "error", err)
	}
}

// stores returns the mounts of volumes with checkpoints, and the arguments of the runner for them.
func (p *plan) stores() (mounts []mount.Mount, args []string) {
	at := func(volume, target string) {
		if volume != "" {
			mounts = append(mounts, mount.Mount{Type: mount.TypeVolume, Source: volume, Target: target, ReadOnly: !p.writes,
				VolumeOptions: &mount.VolumeOptions{NoCopy: true}})
		}
	}
	if p.store != "" {
		args = []string{"--checkpoints", storePath}
	}
	if p.Folder != "" {
		args = append(args, "--unmeasured")
	}
	at(p.store, storePath)
	at(p.other, storePath+sandbox.OtherCheckpoints)
	return mounts, args
}

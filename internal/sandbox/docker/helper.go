package docker

import (
	"context"
	"errors"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"deckhand/internal/sandbox"
)

// startHelper starts the helper of a sandbox, or connects to an existing one. ErrGone if the sandbox has no workspace.
func (d *Driver) startHelper(ctx context.Context, h sandbox.Handle) (*sandbox.Sandbox, error) {
	if _, err := d.folder(ctx, h.ID); err != nil {
		return nil, err
	}
	labels, found, err := d.store(ctx, h.ID)
	if err == nil && !found {
		err = d.makeStore(ctx, h.ID, false)
	}
	if err != nil {
		return nil, err
	}
	box, err := d.connectHelper(ctx, h)
	if err != nil {
		return nil, err
	}
	if err := box.CheckpointRunner().Begin(ctx, sandbox.BeginParams{Empty: labels[labelEmpty] != ""}); err != nil {
		box.Close()
		return nil, err
	}
	return box, nil
}

// connectHelper connects to the existing container, or creates one.
func (d *Driver) connectHelper(ctx context.Context, h sandbox.Handle) (box *sandbox.Sandbox, err error) {
	for range 2 {
		made, program, err := d.adopt(ctx, h.ID)
		var p *plan
		if made == "" && err == nil {
			if p, err = d.passing(ctx, h); err != nil {
				return nil, err
			}
			p.name, p.helper, p.writes, p.store = d.helperName(h.ID), true, true, d.storeName(h.ID)
			made, err = d.make(ctx, p)
			program = p.program
		}
		if err == nil {
			box, err = d.connect(ctx, link{id: h.ID, container: made, program: program, isolated: true})
		}
		if err == nil || ctx.Err() != nil || errors.Is(err, errForeign) {
			return box, err
		}
		if p != nil && made != "" {
			err = d.deaf(ctx, made, err, p)
		}
		if left := d.remove(ctx, d.helperName(h.ID)); left != nil || p != nil {
			return nil, errors.Join(err, left)
		}
	}
	return nil, err
}

// adopt finds a helper of an earlier server, and starts it if it has stopped.
func (d *Driver) adopt(ctx context.Context, id string) (made, program string, err error) {
	got, err := d.engine.ContainerInspect(ctx, d.helperName(id), client.ContainerInspectOptions{})
	if isNotThere(err) {
		return "", "", nil
	}
	if err != nil {
		return "", "", d.engineSays(err)
	}
	c := got.Container
	if c.Config == nil || c.Config.Labels[labelHelper] != id {
		return "", "", unavailable(errForeign, "The container %s was not created by Deckhand. Remove or rename it.", d.helperName(id))
	}
	if c.State == nil || c.State.Status != container.StateRunning {
		_, err = d.engine.ContainerStart(ctx, c.ID, client.ContainerStartOptions{})
	}
	return c.ID, c.Config.Labels[labelRunner], err
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

package docker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker/names"
	"deckhand/internal/sandbox/docker/words"
)

// Stop ends the container and keeps it with its volume.
func (d *Driver) Stop(ctx context.Context, h sandbox.Handle) error {
	old, unlock, err := d.take(ctx, h)
	if err != nil {
		return err
	}
	defer unlock()
	if old == nil {
		return nil
	}
	grace := 1
	_, err = d.engine.ContainerStop(ctx, old.ID, client.ContainerStopOptions{Timeout: &grace})
	if err != nil && !words.IsNotThere(err) {
		return fmt.Errorf("stopping the container %s: %w", d.find.Names.Container(h.ID)[0], d.words.Says(err))
	}
	return nil
}

// Destroy removes the container and the volume.
func (d *Driver) Destroy(ctx context.Context, h sandbox.Handle) error {
	old, unlock, err := d.take(ctx, h)
	if err != nil {
		return err
	}
	defer unlock()
	if old != nil {
		if err := d.remove(ctx, old.ID); err != nil {
			return d.words.Says(err)
		}
	}
	if err := d.removeStore(ctx, h.ID); err != nil {
		return err
	}
	return d.removeVolume(ctx, names.Box, h.ID)
}

// take waits for exclusive use of a sandbox, drops the connection prepared for it, and finds its
// container. A foreign container counts as none.
func (d *Driver) take(ctx context.Context, h sandbox.Handle) (*container.InspectResponse, func(), error) {
	if err := sandbox.CheckID(h.ID); err != nil {
		return nil, nil, err
	}
	unlock, err := d.busy.Acquire(ctx, h.ID)
	if err != nil {
		return nil, nil, err
	}
	d.drop(h.ID)
	old, err := d.find.Container(ctx, names.Box, h.ID)
	if errors.Is(err, names.ErrForeign) {
		d.log.Warn("a container has the name of a sandbox and is left alone", "error", err)
		return nil, unlock, nil
	}
	if err != nil {
		unlock()
		return nil, nil, err
	}
	return old, unlock, nil
}

// removeVolume removes a volume if its labels say that it belongs to a sandbox.
func (d *Driver) removeVolume(ctx context.Context, k names.Kind, id string) error {
	v, err := d.find.Volume(ctx, k, id)
	if errors.Is(err, names.ErrForeign) {
		d.log.Warn("a volume was not removed, because it was not created by Deckhand", "error", err)
		return nil
	}
	if err != nil || v == nil {
		return err
	}
	name := v.Name
	_, err = d.engine.VolumeRemove(ctx, name, client.VolumeRemoveOptions{})
	if errdefs.IsConflict(err) || err != nil && words.Holds(words.Brief(err), "being used") { // it is being inspected
		if err := d.removePassing(ctx, func(of string, _ time.Time) bool { return of == id }); err != nil {
			return err
		}
		_, err = d.engine.VolumeRemove(ctx, name, client.VolumeRemoveOptions{})
	}
	if err != nil && !words.IsNotThere(err) {
		return fmt.Errorf("removing the volume %s: %w", name, d.words.Says(err))
	}
	return nil
}

// passingTime is how long a look at a workspace may take. What is older was left
// by a server that died while it looked.
const passingTime = 15 * time.Minute

// removePassing removes the containers for one look that which chooses, by whose
// workspace they look at and when they were made.
func (d *Driver) removePassing(ctx context.Context, which func(id string, made time.Time) bool) error {
	got, err := d.engine.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: d.find.Filter()})
	if err != nil {
		return d.words.Says(err)
	}
	for _, c := range got.Items {
		kind, id := d.find.Of(c.Labels)
		if kind != names.Passing || !which(id, time.Unix(c.Created, 0)) {
			continue
		}
		if err := d.remove(ctx, c.ID); err != nil {
			return err
		}
	}
	return nil
}

// List names all sandboxes of this instance: those with a container, and those
// of which only the workspace is left.
func (d *Driver) List(ctx context.Context) ([]sandbox.Found, error) {
	containers, err := d.engine.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: d.find.Filter()})
	if err != nil {
		return nil, d.words.Says(err)
	}
	volumes, err := d.engine.VolumeList(ctx, client.VolumeListOptions{Filters: d.find.Filter()})
	if err != nil {
		return nil, d.words.Says(err)
	}
	var found []sandbox.Found
	known := map[string]bool{}
	old := false
	for _, c := range containers.Items {
		kind, id := d.find.Of(c.Labels)
		if kind == names.Passing {
			old = old || time.Unix(c.Created, 0).Before(time.Now().Add(-passingTime))
			continue
		}
		if kind != names.Box || known[id] {
			continue
		}
		known[id] = true
		found = append(found, sandbox.Found{
			Handle:  d.handle(id, data{Container: c.ID, Image: c.Labels[names.Image], Runner: c.Labels[names.Runner], User: c.Labels[names.Connector]}),
			Running: c.State == container.StateRunning || c.State == container.StateRestarting || c.State == container.StatePaused,
		})
	}
	for _, v := range volumes.Items {
		if kind, id := d.find.Of(v.Labels); kind == names.Box && !known[id] {
			known[id] = true
			found = append(found, sandbox.Found{Handle: d.handle(id, data{})})
		}
	}
	if old {
		before := time.Now().Add(-passingTime)
		if err := d.removePassing(ctx, func(_ string, made time.Time) bool { return made.Before(before) }); err != nil {
			d.log.Warn("a container that was left of a look at a workspace could not be removed", "error", err)
		}
	}
	return found, nil
}

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
	if err != nil && !isNotThere(err) {
		return fmt.Errorf("stopping the container %s: %w", d.container(h.ID), d.engineSays(err))
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
			return d.engineSays(err)
		}
	}
	if err := d.removeStore(ctx, h.ID); err != nil {
		return err
	}
	return d.removeVolume(ctx, d.volume(h.ID), labelID, h.ID)
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
	old, err := d.look(ctx, h.ID)
	if errors.Is(err, errForeign) {
		d.log.Warn("a container has the name of a sandbox and is left alone", "container", d.container(h.ID))
		return nil, unlock, nil
	}
	if err != nil {
		unlock()
		return nil, nil, err
	}
	return old, unlock, nil
}

// removeVolume removes a volume if its label says that it belongs to a sandbox.
func (d *Driver) removeVolume(ctx context.Context, name, label, id string) error {
	got, err := d.engine.VolumeInspect(ctx, name, client.VolumeInspectOptions{})
	if isNotThere(err) {
		return nil
	}
	if err != nil {
		return d.engineSays(err)
	}
	if got.Volume.Labels[label] != id {
		d.log.Warn("a volume was not removed, because it was not created by Deckhand", "volume", name)
		return nil
	}
	_, err = d.engine.VolumeRemove(ctx, name, client.VolumeRemoveOptions{})
	if errdefs.IsConflict(err) || err != nil && holds(brief(err), "being used") { // it is being inspected
		if err := d.removePassing(ctx, func(of string, _ time.Time) bool { return of == id }); err != nil {
			return err
		}
		_, err = d.engine.VolumeRemove(ctx, name, client.VolumeRemoveOptions{})
	}
	if err != nil && !isNotThere(err) {
		return fmt.Errorf("removing the volume %s: %w", name, d.engineSays(err))
	}
	return nil
}

// passingTime is how long a look at a workspace may take. What is older was left
// by a server that died while it looked.
const passingTime = 15 * time.Minute

// removePassing removes the containers for one look that which chooses, by whose
// workspace they look at and when they were made.
func (d *Driver) removePassing(ctx context.Context, which func(id string, made time.Time) bool) error {
	got, err := d.engine.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: d.ours()})
	if err != nil {
		return d.engineSays(err)
	}
	for _, c := range got.Items {
		id, passing := c.Labels[labelPassing]
		if !passing || !d.isOurs(c.Labels) || !which(id, time.Unix(c.Created, 0)) {
			continue
		}
		if err := d.remove(ctx, c.ID); err != nil {
			return err
		}
	}
	return nil
}

// isOurs checks what a filter was asked for: an engine may give what has one of
// the labels where we meant all of them.
func (d *Driver) isOurs(labels map[string]string) bool {
	return labels[labelOurs] == "1" && labels[labelInstance] == d.options.Instance
}

// List names all sandboxes of this instance: those with a container, and those
// of which only the workspace is left.
func (d *Driver) List(ctx context.Context) ([]sandbox.Found, error) {
	containers, err := d.engine.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: d.ours()})
	if err != nil {
		return nil, d.engineSays(err)
	}
	volumes, err := d.engine.VolumeList(ctx, client.VolumeListOptions{Filters: d.ours()})
	if err != nil {
		return nil, d.engineSays(err)
	}
	var found []sandbox.Found
	known := map[string]bool{}
	old := false
	for _, c := range containers.Items {
		if !d.isOurs(c.Labels) {
			continue
		}
		if _, passing := c.Labels[labelPassing]; passing {
			old = old || time.Unix(c.Created, 0).Before(time.Now().Add(-passingTime))
			continue
		}
		id := c.Labels[labelID]
		if id == "" || known[id] {
			continue
		}
		known[id] = true
		found = append(found, sandbox.Found{
			Handle:  d.handle(id, data{Container: c.ID, Image: c.Labels[labelImage], Runner: c.Labels[labelRunner], User: c.Labels[labelConnector]}),
			Running: c.State == container.StateRunning || c.State == container.StateRestarting || c.State == container.StatePaused,
		})
	}
	for _, v := range volumes.Items {
		if id := v.Labels[labelID]; d.isOurs(v.Labels) && id != "" && !known[id] {
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

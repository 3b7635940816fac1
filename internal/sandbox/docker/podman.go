package docker

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

// Podman speaks the Docker API with an accent. What it says otherwise than
// Docker, and does otherwise, is all here.

// about describes an engine. arch is its architecture as Go calls it.
type about struct {
	podman bool
	arch   string
}

// about asks the engine once. If it does not respond, all is unknown: the next request returns a better error.
func (d *Driver) about(ctx context.Context) about {
	if known := d.known.Load(); known != nil {
		return *known
	}
	got, err := d.engine.ServerVersion(ctx, client.ServerVersionOptions{})
	if err != nil {
		return about{}
	}
	a := about{arch: got.Arch}
	for _, part := range got.Components {
		a.podman = a.podman || part.Name == "Podman Engine"
	}
	d.known.Store(&a)
	return a
}

// isPodman reports whether the engine is Podman.
func (d *Driver) isPodman(ctx context.Context) bool { return d.about(ctx).podman }

// help does what Docker does by itself when it makes a container: label a new
// volume, and refuse to mount what is not there (Podman makes an empty folder).
func (d *Driver) help(ctx context.Context, p *plan, labels map[string]string) error {
	if d.engine.Local {
		for _, m := range p.Mounts {
			if _, err := os.Stat(m.Source); errors.Is(err, fs.ErrNotExist) {
				return unavailable(err, "A folder to mount into the sandbox does not exist: %s", m.Source)
			}
		}
	}
	if p.passing {
		return nil // its volume exists
	}
	_, err := d.engine.VolumeCreate(ctx, client.VolumeCreateOptions{Name: p.volume, Labels: labels})
	if err != nil && !isExisting(err) {
		return err
	}
	return nil
}

// isExisting reports whether a volume could not be created because it exists.
func isExisting(err error) bool {
	return errdefs.IsConflict(err) || holds(brief(err), "already exists")
}

// isTaken reports that there is a container of that name. Podman calls it an
// error of its own.
func isTaken(err error) bool {
	return err != nil && (errdefs.IsConflict(err) || holds(brief(err), "is already in use"))
}

// isAsleep reports that a container does not run or is paused.
func isAsleep(err error) bool {
	return err != nil && (errdefs.IsConflict(err) || holds(brief(err), "container state improper"))
}

// isNotThere reports that the engine does not know what it was asked about.
// Podman says it otherwise when the container goes while it is looked at.
func isNotThere(err error) bool {
	return err != nil && (errdefs.IsNotFound(err) || holds(brief(err), "no such container"))
}

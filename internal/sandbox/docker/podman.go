package docker

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"deckhand/internal/sandbox/docker/words"
	"github.com/moby/moby/client"
)

// Podman speaks the Docker API with an accent. What it says otherwise than
// Docker, and does otherwise, is all here.

// about describes an engine. arch is its architecture as Go calls it; unlimited says that it ignores ulimits.
type about struct {
	podman    bool
	unlimited bool
	arch      string
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
	if a.podman {
		host, ok := d.engine.Podman(ctx)
		a.unlimited = ok && host.Security.Rootless
	}
	d.known.Store(&a)
	return a
}

// isPodman reports whether the engine is Podman.
func (d *Driver) isPodman(ctx context.Context) bool { return d.about(ctx).podman }

// startContainer starts a container. Podman unmounts a container some time after it has copied files into it, longer if many are
// started at once, and a start during that time fails: it is repeated for half a second.
func (d *Driver) startContainer(ctx context.Context, id string) error {
	for pause := 15 * time.Millisecond; ; pause *= 2 {
		_, err := d.engine.ContainerStart(ctx, id, client.ContainerStartOptions{})
		if err == nil || pause > time.Second/4 || !unmounted(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// unmounted reports that Podman believes a container to be mounted that it has unmounted: no start of it will succeed.
func unmounted(err error) bool { return err != nil && words.Holds(words.Brief(err), words.Storage) }

// remakes is how often a container is made again for this reason.
const remakes = 3

// help does what Docker does by itself when it makes a container: label a new
// volume, and refuse to mount what is not there (Podman makes an empty folder).
func (d *Driver) help(ctx context.Context, p *plan, labels map[string]string) error {
	if d.engine.Local {
		for _, m := range p.Mounts {
			if _, err := os.Stat(m.Source); errors.Is(err, fs.ErrNotExist) {
				return words.Unavailable(err, "A folder to mount into the sandbox does not exist: %s", m.Source)
			}
		}
	}
	if p.passing {
		return nil // its volume exists
	}
	_, err := d.engine.VolumeCreate(ctx, client.VolumeCreateOptions{Name: p.volume, Labels: labels})
	if err != nil && !words.IsExisting(err) {
		return err
	}
	return nil
}

package docker

import (
	"context"
	"strings"

	"github.com/moby/moby/client"

	"deckhand/internal/sandbox/docker/bind"
)

// A folder of this machine is mounted in place of the volume. The volume still exists, is empty, and its label names the folder: all
// containers of the sandbox find the folder by it, and removing the volume does not touch the folder.
const labelFolder = "deckhand.folder"

// bound fills in the shape of a sandbox that works in a folder.
func (d *Driver) bound(ctx context.Context, s *shape, folder string) (err error) {
	if s.Folder, err = bind.Folder(folder, d.engine.Address, d.engine.Local); err != nil {
		return err
	}
	if s.User == "" {
		got, err := d.engine.Info(ctx, client.InfoOptions{})
		if err != nil {
			return d.engineSays(err)
		}
		s.User = bind.User(holds(strings.Join(got.Info.SecurityOptions, " "), "rootless"))
	}
	return nil
}

// mark creates the volume that names the folder.
func (d *Driver) mark(ctx context.Context, p *plan) error {
	if p.Folder == "" {
		return nil
	}
	labels := d.ourLabels(p)
	labels[labelFolder] = p.Folder
	_, err := d.engine.VolumeCreate(ctx, client.VolumeCreateOptions{Name: p.volume, Labels: labels})
	if err != nil && !isExisting(err) {
		return d.engineSays(err)
	}
	if now, err := d.marked(ctx, p.id); err != nil || now == p.Folder {
		return err
	}
	return unavailable(nil, "The sandbox %s has another workspace than %s. Start a new conversation in this folder.", p.id, p.Folder)
}

// marked returns the folder that a sandbox works in; "" for a volume.
func (d *Driver) marked(ctx context.Context, id string) (string, error) {
	got, err := d.engine.VolumeInspect(ctx, d.volume(id), client.VolumeInspectOptions{})
	if isNotThere(err) {
		return "", nil
	}
	if err != nil {
		return "", d.engineSays(err)
	}
	return got.Volume.Labels[labelFolder], nil
}

// homeFolder is the home of a user that may not exist in the image.
const homeFolder = "home"

// folderEnv is the environment of a container that works in a folder: its user may have no home in the image.
func (p *plan) folderEnv() []string {
	if p.Folder == "" || strings.HasPrefix(p.user(), "0:") {
		return nil
	}
	return []string{"HOME=" + home + "/" + homeFolder}
}

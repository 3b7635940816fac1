package docker

import (
	"context"
	"maps"
	"strings"

	"github.com/moby/moby/api/types/volume"
	"github.com/moby/moby/client"

	"deckhand/internal/sandbox/docker/bind"
	"deckhand/internal/sandbox/docker/names"
	"deckhand/internal/sandbox/docker/words"
)

// A folder of this machine is mounted in place of the volume. The volume still exists, is empty, and its label names the folder: all
// containers of the sandbox find the folder by it, and removing the volume does not touch the folder.

// bound fills in the shape of a sandbox that works in a folder.
func (d *Driver) bound(ctx context.Context, s *shape, folder string) (err error) {
	if s.Folder, err = bind.Folder(folder, d.engine.Address, d.engine.Local); err != nil {
		return err
	}
	if s.User == "" {
		got, err := d.engine.Info(ctx, client.InfoOptions{})
		if err != nil {
			return d.words.Says(err)
		}
		s.User = bind.User(words.Holds(strings.Join(got.Info.SecurityOptions, " "), "rootless"))
	}
	return nil
}

// mark finds the workspace of a container that is to be made, and creates the volume that names a folder. It reports whether the
// workspace has a name of an older version: the container may have one, too.
func (d *Driver) mark(ctx context.Context, p *plan) (older bool, err error) {
	p.volume = d.find.Workspace(p.id)[0]
	var v *volume.Volume
	if p.Folder == "" {
		v, err = d.find.Volume(ctx, names.Box, p.id)
	} else {
		labels := maps.Clone(p.labels)
		if labels == nil {
			labels = map[string]string{}
		}
		labels[names.Folder] = p.Folder
		v, err = d.find.Make(ctx, names.Box, p.id, labels)
	}
	if err != nil || v == nil {
		return false, err
	}
	older = v.Name != p.volume
	p.volume = v.Name
	if p.Folder != "" && v.Labels[names.Folder] != p.Folder {
		err = words.Unavailable(nil, "The sandbox %s has another workspace than %s. Start a new conversation in this folder.", p.id, p.Folder)
	}
	return older, err
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

package docker

import (
	"context"
	"strings"

	"github.com/containerd/errdefs"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker/names"
	"deckhand/internal/sandbox/docker/words"
)

// image is what has to be known of an image before a container is made of it.
type image struct {
	id   string
	user string
}

// pull pulls an image that the engine does not have.
func (d *Driver) pull(ctx context.Context, name string, progress func(sandbox.Progress)) error {
	if d.options.Pull == "never" {
		return words.Unavailable(nil, "The container engine does not have the image %s, and --sandbox-pull is never. Pull the image on the machine of the engine.", name)
	}
	return d.pulls.Pull(ctx, name, progress)
}

// refresh pulls the image of a sandbox that has no container yet.
func (d *Driver) refresh(ctx context.Context, id, name string, progress func(sandbox.Progress)) error {
	if old, err := d.find.Container(ctx, names.Box, id); err != nil || old != nil {
		return err
	}
	return d.pulls.Pull(ctx, name, progress)
}

// image looks for an image that the engine has.
func (d *Driver) image(ctx context.Context, name string) (image, bool, error) {
	got, err := d.engine.ImageInspect(ctx, name)
	if errdefs.IsNotFound(err) {
		return image{}, false, nil
	}
	if err != nil {
		return image{}, false, d.words.Pull(err, name)
	}
	img := image{id: got.ID}
	if got.Config != nil {
		img.user = got.Config.User
	}
	if got.Os != "" && !strings.EqualFold(got.Os, "linux") {
		return img, true, words.Unavailable(nil, "The image %s is for %s; a sandbox needs one for Linux.", name, got.Os)
	}
	return img, true, nil
}

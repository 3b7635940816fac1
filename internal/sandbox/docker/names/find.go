package names

import (
	"context"
	"errors"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/volume"
	"github.com/moby/moby/client"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker/words"
)

// ErrForeign means that something has a name of the driver and does not belong to the sandbox.
var ErrForeign = errors.New("not made by us")

// Finder finds containers and volumes of an instance on an engine.
type Finder struct {
	Names
	Engine *client.Client
	Words  words.Words
}

// Container finds the container of a sandbox, which is a Box or a Helper; nil if there is none. A container of an older name is found if it
// belongs to the sandbox, and otherwise ignored.
func (f Finder) Container(ctx context.Context, k Kind, id string) (*container.InspectResponse, error) {
	called := f.Names.Container(id)
	if k == Helper {
		called = f.Names.Helper(id)
	}
	for i, name := range called {
		got, err := f.Engine.ContainerInspect(ctx, name, client.ContainerInspectOptions{})
		switch {
		case words.IsNotThere(err):
		case err != nil:
			return nil, f.Words.Says(err)
		case got.Container.Config != nil && f.Is(got.Container.Config.Labels, k, id):
			return &got.Container, nil
		case i == 0:
			return nil, words.Unavailable(ErrForeign, "The container %s was not created by Deckhand. Remove or rename it.", name)
		}
	}
	return nil, sandbox.CheckID(id)
}

// Volume finds a volume of a sandbox, which is a Box or a Store, as Container does.
func (f Finder) Volume(ctx context.Context, k Kind, id string) (*volume.Volume, error) {
	called := f.Workspace(id)
	if k == Store {
		called = f.Names.Store(id)
	}
	for i, name := range called {
		got, err := f.Engine.VolumeInspect(ctx, name, client.VolumeInspectOptions{})
		switch {
		case words.IsNotThere(err):
		case err != nil:
			return nil, f.Words.Says(err)
		case f.Is(got.Volume.Labels, k, id):
			return &got.Volume, nil
		case i == 0:
			return nil, f.foreign(name)
		}
	}
	return nil, sandbox.CheckID(id)
}

func (f Finder) foreign(volume string) error {
	return words.Unavailable(ErrForeign, "The volume %s was not created by Deckhand. Remove it, or start a new conversation.", volume)
}

// Make creates a volume of a sandbox, unless it has one, and returns it.
func (f Finder) Make(ctx context.Context, k Kind, id string, labels map[string]string) (*volume.Volume, error) {
	if v, err := f.Volume(ctx, k, id); v != nil || err != nil {
		return v, err
	}
	name := f.Workspace(id)[0]
	if k == Store {
		name = f.Names.Store(id)[0]
	}
	_, err := f.Engine.VolumeCreate(ctx, client.VolumeCreateOptions{Name: name, Labels: f.Labels(k, id, labels)})
	if err != nil && !words.IsExisting(err) {
		return nil, f.Words.Says(err)
	}
	return f.Volume(ctx, k, id) // another server may have been faster
}

// Filter finds what belongs to this instance. An engine may return what has one of the labels, so Of decides.
func (n Names) Filter() client.Filters {
	return make(client.Filters).Add("label", Ours+"=1", Instance+"="+n.Instance)
}

package docker

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker/check"
	"deckhand/internal/sandbox/docker/names"
	"deckhand/internal/sandbox/docker/words"
)

// What several engines need to know of each other is here; see package engines.

// EngineOf returns the address of the engine in a handle; "" in a handle of an older server.
func EngineOf(h sandbox.Handle) string {
	var v data
	_ = json.Unmarshal(h.Data, &v)
	return v.Engine
}

// EngineID returns the ID of the engine in a handle; see data.
func EngineID(h sandbox.Handle) string {
	var v data
	_ = json.Unmarshal(h.Data, &v)
	return v.EngineID
}

// ID returns the ID of the engine; "" if it has none or was not asked yet.
func (d *Driver) ID() string {
	if id := d.id.Load(); id != nil {
		return *id
	}
	return ""
}

// Identify asks the engine for its ID, which is the same at all addresses of the engine. Engines of one machine can have the same ID, and
// so can copies of a machine, so the name of the machine and the folder of the engine are part of it. It is "" for Podman, which says
// another one each time.
func (d *Driver) Identify(ctx context.Context) (string, error) {
	got, err := d.engine.Info(ctx, client.InfoOptions{})
	if err != nil {
		return "", d.words.Says(err)
	}
	id := ""
	if i := got.Info; i.ID != "" && !d.isPodman(ctx) {
		id = strings.Join([]string{i.ID, i.Name, i.DockerRootDir}, " ")
	}
	d.id.Store(&id)
	return id, nil
}

// here returns an error if a sandbox is on another engine than this one, which may have the same address on another machine. It also
// makes sure that the ID of the engine is known.
func (d *Driver) here(ctx context.Context, last sandbox.Handle) error {
	want := EngineID(last)
	if d.id.Load() != nil && (want == "" || want == d.ID()) {
		return nil
	}
	id, err := d.Identify(ctx)
	if err != nil || want == "" || want == id {
		return err
	}
	has, err := d.Has(ctx, last.ID) // its ID may have changed
	if err == nil && !has {
		err = words.Unavailable(nil, "The workspace of this conversation is on another container engine than the one that is now at %s.", d.engine.Address)
	}
	return err
}

// Address returns the address of the engine.
func (d *Driver) Address() string { return d.engine.Address }

// Has reports whether the engine has a container or the workspace of a sandbox.
func (d *Driver) Has(ctx context.Context, id string) (bool, error) {
	old, err := d.find.Container(ctx, names.Box, id)
	if old != nil || err != nil && !errors.Is(err, names.ErrForeign) {
		return old != nil, err
	}
	_, err = d.folder(ctx, id)
	if errors.Is(err, sandbox.ErrGone) {
		return false, nil
	}
	return err == nil, err
}

// HasImage reports whether the engine has an image; "" is the default one.
func (d *Driver) HasImage(ctx context.Context, name string) (bool, error) {
	if name == "" {
		name = d.options.Image
	}
	_, here, err := d.image(ctx, name)
	return here, err
}

// State describes the engine.
func (d *Driver) State(ctx context.Context) (sandbox.Engine, error) {
	got, err := d.engine.Info(ctx, client.InfoOptions{})
	if err != nil {
		return sandbox.Engine{Address: d.engine.Address}, d.words.Says(err)
	}
	i := got.Info
	product := "Docker "
	if d.isPodman(ctx) {
		product = "Podman "
	}
	s := sandbox.Engine{Address: d.engine.Address, Version: product + i.ServerVersion, CPUs: i.NCPU, Memory: i.MemTotal}
	for _, option := range i.SecurityOptions {
		s.Rootless = s.Rootless || strings.Contains(option, "rootless")
	}
	return s, nil
}

// Live returns the IDs of all sandboxes that run on the engine, also those of other servers.
func (d *Driver) Live(ctx context.Context) ([]string, error) {
	got, err := d.engine.ContainerList(ctx, client.ContainerListOptions{Filters: make(client.Filters).Add("label", names.Ours+"=1")})
	if err != nil {
		return nil, d.words.Says(err)
	}
	var ids []string
	for _, c := range got.Items {
		instance := c.Labels[names.Instance]
		if kind, id := (names.Names{Instance: instance}).Of(c.Labels); kind == names.Box && c.State != container.StateExited {
			ids = append(ids, instance+"/"+id)
		}
	}
	return ids, nil
}

// Instance returns whose sandboxes the driver starts.
func (d *Driver) Instance() string { return d.options.Instance }

// Check asks the engine what it can do, and looks for the runner and the image.
func (d *Driver) Check(ctx context.Context) []sandbox.Finding {
	return check.Engine{Engine: d.engine, Runner: d.options.Runner, Image: d.options.Image, Answers: d.Ping,
		HasImage: func(ctx context.Context) (bool, error) { return d.HasImage(ctx, "") }}.Check(ctx)
}

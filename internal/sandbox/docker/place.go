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
)

// What several engines need to know of each other is here; see package engines.

// EngineOf returns the address of the engine in a handle; "" in a handle of an older server.
func EngineOf(h sandbox.Handle) string {
	var v data
	_ = json.Unmarshal(h.Data, &v)
	return v.Engine
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
	s := sandbox.Engine{Address: d.engine.Address, Version: i.ServerVersion, CPUs: i.NCPU, Memory: i.MemTotal}
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

package main

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/drivers"
	"deckhand/internal/sandbox/host"
	"deckhand/internal/sandbox/sandboxtest"
)

// This file is all that a new sandbox driver needs: what it declares, and a line
// that registers it.
func init() { drivers.Register(raft) }

var raft = sandbox.Kind{
	Properties: sandbox.Properties{Name: "raft", Label: "for a test", SlowStart: true, Folders: true},
	Open: func(o sandbox.Options) (sandbox.Driver, error) {
		d, err := host.New(host.Options{Dir: o.Dir, Runner: o.Runner, Logger: o.Logger})
		return &raftDriver{Driver: d}, err
	},
}

// raftStarted has the ids of the sandboxes that were started by this driver.
var raftStarted sync.Map

// raftDriver runs commands as the host driver does, under a name of its own.
type raftDriver struct{ *host.Driver }

func (d *raftDriver) Start(ctx context.Context, spec sandbox.Spec, progress func(sandbox.Progress)) (sandbox.Handle, error) {
	h, err := d.Driver.Start(ctx, spec, progress)
	h.Driver = raft.Name
	if err == nil {
		raftStarted.Store(spec.ID, true)
	}
	return h, err
}

func (d *raftDriver) List(ctx context.Context) ([]sandbox.Found, error) {
	found, err := d.Driver.List(ctx)
	for i := range found {
		found[i].Handle.Driver = raft.Name
	}
	return found, err
}

func (d *raftDriver) Check(context.Context) []sandbox.Finding {
	return []sandbox.Finding{{OK: true, What: "wood", Found: "floats"}}
}

// A driver that is registered is a value of --sandbox, and all that its properties and
// abilities say takes effect, without a change anywhere else.
func TestNewDriver(t *testing.T) {
	t.Parallel()
	b := serve(t, "", "--sandbox", raft.Name, "--runner-path", sandboxtest.Runner(t))
	b.demo("scripted/demo")
	id := b.create("$ echo afloat at $((40+2))")
	b.said(id, 0, "afloat at 42")
	if _, ok := raftStarted.Load(id); !ok {
		t.Error("the command ran in a sandbox of another driver")
	}
	b.remove(id)

	if code, out, errs := command(t, "doctor", "--sandbox", raft.Name, "--data-dir", filepath.Join(t.TempDir(), "data"), "--addr", "127.0.0.1:0", "--runner-path", sandboxtest.Runner(t)); code != 0 || !strings.Contains(out, "wood: floats") {
		t.Errorf("%d %s%s", code, out, errs)
	}
	if _, out, _ := command(t, "serve", "--help"); !strings.Contains(strings.Join(strings.Fields(out), " "), "host (NO sandbox), raft (for a test), or auto (docker if available, otherwise local)") {
		t.Error(out)
	}
	if got, err := drivers.ForFolder(raft.Name); err != nil || got.Name != raft.Name {
		t.Error(got, err)
	}
}

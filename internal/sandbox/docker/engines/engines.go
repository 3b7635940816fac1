// Package engines spreads sandboxes over several container engines.
//
// A new sandbox is started on the engine with the lowest load, and stays there: its handle has the address of the engine,
// and the log has the handle. Copies are made on the engine of the original. While an engine does not answer,
// its sandboxes are unavailable, with an error that names the engine, and new sandboxes are started on the others.
package engines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/docker"
	"deckhand/internal/sandbox/docker/connect"
	"deckhand/internal/sandbox/lock"
)

// Kind is the docker driver as a server chooses it.
var Kind = sandbox.Kind{
	Properties: sandbox.Properties{Name: docker.Name, Label: "any image", Auto: 2, Images: true, SlowStart: true, Confined: true, Folders: true},
	Open: func(o sandbox.Options) (sandbox.Driver, error) {
		return Open(docker.Options{Runner: o.Runner, RunnerFor: o.RunnerFor, Image: o.Image, Pull: o.Pull, Reach: o.Reach, User: o.User, Instance: o.Instance, Outward: o.Outward, Logger: o.Logger}, o.EngineHosts)
	},
}

// Set is a sandbox.Driver on one or more engines.
type Set struct {
	log     *slog.Logger
	pull    string
	engines []*engine
	starts  lock.Table // by sandbox

	ctx    context.Context
	cancel context.CancelFunc
	asking sync.WaitGroup

	mu     sync.Mutex
	places map[string]place
	// starting has the sandboxes that are being started, by engine.
	starting map[*engine]map[string]bool
}

// place is where a sandbox is. It is sure if a handle says so.
type place struct {
	*engine
	sure bool
}

// engine is one of the engines.
type engine struct {
	*docker.Driver
	mu    sync.Mutex
	down  bool
	state sandbox.Engine
}

var (
	_ sandbox.Driver       = (*Set)(nil)
	_ sandbox.Viewer       = (*Set)(nil)
	_ sandbox.Inspector    = (*Set)(nil)
	_ sandbox.Snapshotter  = (*Set)(nil)
	_ sandbox.Checker      = (*Set)(nil)
	_ sandbox.Pinger       = (*Set)(nil)
	_ sandbox.Checkpointer = (*Set)(nil)
	_ sandbox.EngineLister = (*Set)(nil)
	_ sandbox.Sharer       = (*Set)(nil)
)

// Open returns a Set of the engines at the addresses; see connect.Open. Without one, it is the default engine. It does not connect yet.
func Open(o docker.Options, hosts []string) (*Set, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Set{log: o.Logger, pull: o.Pull, places: map[string]place{}, starting: map[*engine]map[string]bool{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if len(hosts) == 0 {
		hosts = []string{o.Host}
	}
	for _, host := range hosts {
		o.Host = host
		d, err := docker.New(o)
		if err != nil {
			where := "--docker-host " + connect.Masked(host)
			if host == "" {
				where = connect.Default()
			}
			return nil, errors.Join(fmt.Errorf("%s: %w", where, err), s.Close())
		}
		s.engines = append(s.engines, &engine{Driver: d})
		if s.configured(d.Address()) != s.engines[len(s.engines)-1] {
			return nil, errors.Join(fmt.Errorf("--docker-host %s is set twice", d.Address()), s.Close())
		}
	}
	return s, nil
}

// Close closes all unused connections. Sandboxes keep running.
func (s *Set) Close() error {
	s.cancel()
	s.asking.Wait()
	var err error
	for _, e := range s.engines {
		err = errors.Join(err, e.Close())
	}
	return err
}

// configured returns the engine with an address, or nil.
func (s *Set) configured(address string) *engine {
	for _, e := range s.engines {
		if e.Address() == address {
			return e
		}
	}
	return nil
}

// Ping fails if no engine answers.
func (s *Set) Ping(ctx context.Context) error {
	if len(s.engines) == 1 {
		return s.engines[0].Ping(ctx)
	}
	var all error
	for _, a := range ask(ctx, s, func(ctx context.Context, e *engine) (struct{}, error) { return struct{}{}, e.Ping(ctx) }) {
		if a.err == nil {
			return nil
		}
		all = errors.Join(all, a.err)
	}
	return all
}

// Start starts a sandbox where it is, or a new one on the engine with the lowest load.
func (s *Set) Start(ctx context.Context, spec sandbox.Spec, progress func(sandbox.Progress)) (sandbox.Handle, error) {
	if err := sandbox.CheckID(spec.ID); err != nil {
		return sandbox.Handle{}, err
	}
	e, placed, err := s.engineFor(ctx, spec)
	if err != nil {
		return sandbox.Handle{}, err
	}
	h, err := e.Start(ctx, spec, progress)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.starting[e], e.Instance()+"/"+spec.ID)
	switch {
	case err == nil:
		s.places[spec.ID] = place{e, true}
	case placed && s.places[spec.ID].engine == e:
		delete(s.places, spec.ID) // if there is something of it, it is found again
	}
	return h, err
}

// engineFor returns the engine for a start; placed is true if it was chosen for a new sandbox. Two starts of a new sandbox
// choose the same engine.
func (s *Set) engineFor(ctx context.Context, spec sandbox.Spec) (e *engine, placed bool, err error) {
	unlock, err := s.starts.Acquire(ctx, spec.ID)
	if err != nil {
		return nil, false, err
	}
	defer unlock()
	last := spec.Last
	last.ID = spec.ID
	e, err = s.find(ctx, last)
	// A sandbox that never ran has nothing to lose on an engine that does not answer.
	fresh := len(spec.Last.Data) == 0 && !spec.Copied
	switch {
	case e != nil || err != nil && !(fresh && len(s.engines) > 1):
		return e, false, err
	case len(s.engines) == 1:
		return s.engines[0], false, nil
	}
	if e, err = s.choose(ctx, spec); err != nil {
		return nil, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places[spec.ID] = place{engine: e}
	if s.starting[e] == nil {
		s.starting[e] = map[string]bool{}
	}
	s.starting[e][e.Instance()+"/"+spec.ID] = true
	return e, true, nil
}

// Attach connects to a sandbox.
func (s *Set) Attach(ctx context.Context, h sandbox.Handle) (*sandbox.Sandbox, error) {
	return at(ctx, s, h, func(e *engine) (*sandbox.Sandbox, error) { return e.Attach(ctx, h) })
}

// Stop stops a sandbox.
func (s *Set) Stop(ctx context.Context, h sandbox.Handle) error {
	e, err := s.find(ctx, h)
	if e == nil {
		return err
	}
	return e.Stop(ctx, h)
}

// Destroy removes a sandbox with its workspace. If no engine is known to have it, remains of it are removed from all. What an engine
// has that is not configured any more stays there.
func (s *Set) Destroy(ctx context.Context, h sandbox.Handle) error {
	if err := sandbox.CheckID(h.ID); err != nil {
		return err
	}
	e, err := s.find(ctx, h)
	var gone *unconfigured
	switch {
	case e != nil:
		err = e.Destroy(ctx, h)
	case errors.As(err, &gone):
		s.log.Warn("the workspace of a deleted conversation stays on a container engine that is not configured", "sandbox", h.ID, "engine", gone.address)
		err = nil
	case err == nil:
		for _, e := range s.engines {
			err = errors.Join(err, e.Destroy(ctx, h))
		}
	}
	if err == nil {
		s.mu.Lock()
		delete(s.places, h.ID)
		s.mu.Unlock()
	}
	return err
}

// View opens a workspace, if it is on this machine.
func (s *Set) View(ctx context.Context, h sandbox.Handle) (*os.Root, error) {
	return at(ctx, s, h, func(e *engine) (*os.Root, error) { return e.View(ctx, h) })
}

// Inspect starts a temporary sandbox that can read a workspace.
func (s *Set) Inspect(ctx context.Context, h sandbox.Handle) (*sandbox.Sandbox, error) {
	return at(ctx, s, h, func(e *engine) (*sandbox.Sandbox, error) { return e.Inspect(ctx, h) })
}

// Snapshot copies a workspace. The copy is on the same engine.
func (s *Set) Snapshot(ctx context.Context, h sandbox.Handle, id string) error {
	_, err := at(ctx, s, h, func(e *engine) (struct{}, error) {
		err := e.Snapshot(ctx, h, id)
		if err == nil {
			s.mu.Lock()
			s.places[id] = place{e, true}
			s.mu.Unlock()
		}
		return struct{}{}, err
	})
	return err
}

// Checkpoint implements sandbox.Checkpointer.
func (s *Set) Checkpoint(ctx context.Context, h sandbox.Handle) (sandbox.Checkpoint, error) {
	return at(ctx, s, h, func(e *engine) (sandbox.Checkpoint, error) { return e.Checkpoint(ctx, h) })
}

// Checkpoints implements sandbox.Checkpointer.
func (s *Set) Checkpoints(ctx context.Context, h sandbox.Handle) (sandbox.Checkpoints, error) {
	return at(ctx, s, h, func(e *engine) (sandbox.Checkpoints, error) { return e.Checkpoints(ctx, h) })
}

// Restore implements sandbox.Checkpointer.
func (s *Set) Restore(ctx context.Context, h sandbox.Handle, p sandbox.RestoreParams) (sandbox.Restored, error) {
	return at(ctx, s, h, func(e *engine) (sandbox.Restored, error) { return e.Restore(ctx, h, p) })
}

// Recorded implements sandbox.Checkpointer.
func (s *Set) Recorded(ctx context.Context, h sandbox.Handle) error {
	_, err := at(ctx, s, h, func(e *engine) (struct{}, error) { return struct{}{}, e.Recorded(ctx, h) })
	return err
}

// CheckpointFile implements sandbox.Checkpointer.
func (s *Set) CheckpointFile(ctx context.Context, c sandbox.CheckpointOf, path string, most int64) (content []byte, found bool, err error) {
	content, err = at(ctx, s, c.Handle, func(e *engine) (b []byte, err error) {
		b, found, err = e.CheckpointFile(ctx, c, path, most)
		return b, err
	})
	return content, found, err
}

// Compare implements sandbox.Checkpointer. Both workspaces must be on the same engine, as copies are.
func (s *Set) Compare(ctx context.Context, a, b sandbox.CheckpointOf) ([]sandbox.FileChange, error) {
	return at(ctx, s, a.Handle, func(e *engine) ([]sandbox.FileChange, error) {
		other, err := s.find(ctx, b.Handle)
		switch {
		case err != nil:
			return nil, err
		case other != nil && other != e:
			return nil, &sandbox.Unavailable{Reason: fmt.Sprintf("The workspaces cannot be compared: they are on the container engines at %s and %s.", e.Address(), other.Address())}
		}
		return e.Compare(ctx, a, b)
	})
}

// Unrecorded implements sandbox.Checkpointer.
func (s *Set) Unrecorded(ctx context.Context, mine func(id string) bool) (out []sandbox.Unrecorded, err error) {
	for _, e := range s.engines {
		found, e := e.Unrecorded(ctx, mine)
		out, err = append(out, found...), errors.Join(err, e)
	}
	return out, err
}

// at calls a function with the engine of a sandbox. ErrGone if there is none.
func at[T any](ctx context.Context, s *Set, h sandbox.Handle, f func(*engine) (T, error)) (out T, err error) {
	e, err := s.find(ctx, h)
	if e == nil {
		return out, cmp.Or(err, sandbox.ErrGone)
	}
	return f(e)
}

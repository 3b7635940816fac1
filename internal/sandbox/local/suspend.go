package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/local/box"
	"deckhand/internal/sandbox/local/cgroup"
)

// Suspend implements sandbox.Suspender. The runner writes what its successor needs into its
// folder and ends by itself, so that a server that dies on the way leaves either of the two.
func (d *Driver) Suspend(ctx context.Context, h sandbox.Handle, s *sandbox.Sandbox) error {
	return d.with(ctx, h, func(p *place) error {
		err := p.meta.ended(ctx, func(int) error {
			err := s.Suspend(ctx)
			if why, refused := sandbox.Refusal(err); refused {
				return fmt.Errorf("%w: %s", sandbox.ErrInUse, why)
			}
			if errors.Is(err, sandbox.ErrLost) { // as it should be
				return nil
			}
			return err
		})
		if err != nil {
			return err
		}
		if !suspended(p.dir) {
			return fmt.Errorf("%w: it ended while it was being suspended", sandbox.ErrGone)
		}
		return d.fold(ctx, p)
	})
}

// Discard implements sandbox.Suspender.
func (d *Driver) Discard(ctx context.Context, h sandbox.Handle) error {
	if dir, err := d.path(h); err != nil || !suspended(dir) {
		return err
	}
	return d.with(ctx, h, func(p *place) error {
		if p.meta.alive() {
			return nil
		}
		return d.tidy(ctx, p)
	})
}

// fold removes what a sandbox that does not run has no use for: limits, its socket.
func (d *Driver) fold(ctx context.Context, p *place) error {
	err := cgroup.Remove(context.WithoutCancel(ctx), p.meta.Groups) // its processes have ended
	_ = os.Remove(filepath.Join(p.dir, socketName))
	return err
}

// suspended reports whether the next runner of a sandbox continues where the last one ended.
func suspended(dir string) bool { return sandbox.Suspended(filepath.Join(dir, box.StateDir)) }

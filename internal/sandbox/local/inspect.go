package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/tree"
)

// Inspect implements sandbox.Inspector.
func (d *Driver) Inspect(ctx context.Context, h sandbox.Handle) (*sandbox.Sandbox, error) {
	dir, err := d.path(h)
	if err != nil {
		return nil, err
	}
	m, err := readMeta(dir)
	if err == nil {
		_, err = os.Stat(m.workspace(dir))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s has no workspace", sandbox.ErrGone, h.ID)
	}
	d.Finish(dir, m.checkpointed(dir))
	return d.look(ctx, &place{id: h.ID, dir: dir, meta: m})
}

// look starts a sandbox that lasts as long as the connection to it, and as this
// process at most.
func (d *Driver) look(ctx context.Context, at *place) (*sandbox.Sandbox, error) {
	dir, err := os.MkdirTemp(d.dir, scrapPrefix)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	p, err := d.openAt(ctx, filepath.Base(dir), dir)
	if err != nil {
		return nil, errors.Join(err, tree.Remove(dir))
	}
	end := sync.OnceFunc(func() {
		// The one who asked may have gone; this is done all the same.
		err := p.meta.end(context.Background())
		if err := errors.Join(err, d.tidy(context.Background(), p), tree.Remove(dir)); err != nil {
			d.log.Warn("a sandbox for looking cannot be removed", "error", err)
		}
		p.close()
	})
	c, err := d.tryLook(ctx, p, at)
	if err != nil {
		end()
		return nil, unavailable(ctx, err)
	}
	conn, err := dial(ctx, dir)
	if err != nil {
		c.control.Close()
		end()
		return nil, err
	}
	finish := func() { c.control.Close(); end() }
	s, err := sandbox.Connect(ctx, sandbox.Link{ID: at.id, Conn: conn, OnClose: finish})
	if err != nil {
		finish()
	}
	return s, err
}

func (d *Driver) tryLook(ctx context.Context, p, at *place) (*child, error) {
	o := plan{limits: d.limits, network: sandbox.Isolated, look: at}
	c, err := d.tryLaunch(ctx, p, o)
	var refused *refusal
	if errors.As(err, &refused) && refused.report.NoOverlay {
		if err := d.plainRoot(p); err != nil {
			return nil, fmt.Errorf("%w; without an overlay: %w", refused, err)
		}
		o.plain = true
		c, err = d.tryLaunch(ctx, p, o)
	}
	return c, err
}

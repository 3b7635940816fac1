package workspace

import (
	"context"
	"errors"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/meter"
	"deckhand/internal/session"
	"deckhand/internal/workspace/diskuse"
)

// measured is a sandbox as its meter sees it.
type measured struct {
	*sandbox.Sandbox
	keeper *Keeper
	place  *place
	empty  bool // nothing ran in it when it was connected to; used by the meter, one call at a time
}

// Unlinked implements meter.Sandbox. A runner that was just started has nothing that could hold files open.
func (b *measured) Unlinked(ctx context.Context) (int64, error) {
	if b.empty {
		b.empty = false
		return 0, nil
	}
	return b.Sandbox.Unlinked(ctx)
}

// Space implements meter.Sandbox.
func (b *measured) Space() sandbox.Space {
	if s, ok := b.keeper.Driver.(sandbox.Spacer); ok {
		if now, err := s.Space(); err == nil {
			now.Writers = b.keeper.inUse()
			return now
		}
	}
	return sandbox.Space{}
}

// Usage implements meter.Sandbox.
func (b *measured) Usage(ctx context.Context) (sandbox.Usage, error) {
	return b.keeper.files(ctx, b.place.id, b.Sandbox)
}

// Hold implements meter.Holder.
func (b *measured) Hold(ctx context.Context) (sandbox.Held, error) {
	d, ok := b.keeper.Driver.(sandbox.Holder)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return d.Hold(ctx, sandbox.Handle{Driver: b.keeper.Name, ID: string(b.place.id)})
}

// Measured implements meter.Observer.
func (b *measured) Measured(used int64) {
	b.keeper.mu.Lock()
	owner := b.place.owner
	b.place.used = used
	b.keeper.mu.Unlock()
	b.keeper.sized(b.place.id, diskuse.Share{Owner: owner, Bytes: used + b.keeper.checkpointBytes(b.keeper.ctx, b.place.id), Ran: true})
}

// Ended implements meter.Observer.
func (b *measured) Ended(why string, used, limit, free int64) {
	b.keeper.Logger.Warn("sandbox exceeded its disk limit; its processes were stopped", "session", b.place.id, "used", meter.Size(used), "allowed", meter.Size(limit), "free", meter.Size(free))
	b.keeper.note(b.place.id, session.Noted{ID: "STATUS$ERROR_DISK_QUOTA", Message: why})
}

// countEvery is how long a count of the sandboxes in use is good enough. Each of them asks for
// it, and counting looks at all.
const countEvery = 50 * time.Millisecond

// inUse counts the sandboxes in which something may run.
func (k *Keeper) inUse() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.counted) < countEvery {
		return k.busy
	}
	k.busy = 0
	for _, p := range k.places {
		if p.box != nil && p.users > 0 {
			k.busy++
		}
	}
	k.counted = time.Now()
	return k.busy
}

// watchDisk ends what runs in a sandbox that writes more than it may, for as long as
// the connection lasts.
func (k *Keeper) watchDisk(p *place, box *sandbox.Sandbox, m *meter.Meter) {
	inUse := func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return p.users > 0
	}
	m.Watch(k.ctx, box.Done(), inUse, func(err error) {
		if k.ctx.Err() == nil && !errors.Is(err, sandbox.ErrLost) {
			k.Logger.Debug("cannot measure the disk usage of a sandbox", "session", p.id, "error", err)
		}
	})
}

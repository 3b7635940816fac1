package workspace

import (
	"context"
	"errors"
	"fmt"
	"math"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/meter"
	"deckhand/internal/session"
	"deckhand/internal/workspace/diskuse"
)

// sized remembers what a workspace takes up.
func (k *Keeper) sized(id session.ID, s diskuse.Share) {
	if k.DiskPerUser > 0 {
		k.shares.Set(id, s)
	}
}

// Room returns how many bytes may still be written to a workspace that is in use.
func (k *Keeper) Room(ctx context.Context, id session.ID) (int64, error) {
	k.mu.Lock()
	p := k.places[id]
	var box *sandbox.Sandbox
	var most int64
	if p != nil {
		box, most = p.box, p.limits.Disk
	}
	k.mu.Unlock()
	if box == nil || most <= 0 {
		return math.MaxInt64, nil
	}
	used, err := k.files(ctx, id, box)
	return max(most-used.Bytes, 0), err
}

// files counts what the files of a sandbox take up.
func (k *Keeper) files(ctx context.Context, id session.ID, box *sandbox.Sandbox) (used sandbox.Usage, err error) {
	if d, ok := k.Driver.(sandbox.Measurer); ok {
		return d.Usage(ctx, sandbox.Handle{Driver: k.Name, ID: string(id)})
	}
	used.Bytes, err = box.Usage(ctx)
	return used, err
}

// checkDisk refuses a sandbox to an owner whose workspaces take up too much. Called with mu held.
func (k *Keeper) checkDisk(owner string) error {
	if k.DiskPerUser <= 0 {
		return nil
	}
	used := k.shares.Used(owner)
	if used < k.DiskPerUser {
		return nil
	}
	return &sandbox.Unavailable{Reason: fmt.Sprintf("Your workspaces use %s, and the limit is %s. Delete conversations that you do not need, then start this one again.", meter.Size(used), meter.Size(k.DiskPerUser))}
}

// measureStopped measures the workspaces in which nothing runs, each once after each run, and
// forgets those that are not found any more.
func (k *Keeper) measureStopped(ctx context.Context, found []sandbox.Found) {
	d, ok := k.Driver.(sandbox.Measurer)
	if !ok || k.DiskPerUser <= 0 {
		return
	}
	there := map[session.ID]bool{}
	for _, f := range found {
		there[session.ID(f.Handle.ID)] = true
	}
	k.shares.Keep(there)
	for _, f := range found {
		if err := k.measureOne(ctx, d, f); err != nil && ctx.Err() == nil && !errors.Is(err, sandbox.ErrGone) && !errors.Is(err, session.ErrNotFound) {
			k.Logger.Debug("cannot measure the disk usage of a workspace", "session", f.Handle.ID, "error", err)
		}
	}
}

func (k *Keeper) measureOne(ctx context.Context, d sandbox.Measurer, f sandbox.Found) error {
	id := session.ID(f.Handle.ID)
	s, known := k.shares.Get(id)
	if f.Running || known && !s.Ran || ctx.Err() != nil {
		return ctx.Err()
	}
	row, err := k.Index.Row(ctx, id)
	if err != nil || row.Deleted {
		return err
	}
	used, err := d.Usage(ctx, f.Handle)
	if err == nil {
		k.sized(id, diskuse.Share{Owner: row.Owner, Bytes: used.Bytes + k.checkpointBytes(ctx, id)})
	}
	return err
}

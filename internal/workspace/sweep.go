package workspace

import (
	"context"
	"errors"
	"sync"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	"deckhand/internal/workspace/handle"
)

// Changed implements session.Watcher: a session whose sandbox runs may have
// been stopped or deleted.
func (k *Keeper) Changed(row session.Row) {
	k.turnChanged(row)
	if !row.Deleted && row.Status != session.Halted {
		return
	}
	k.mu.Lock()
	p := k.places[row.ID]
	_, suspended := k.suspended.ids[row.ID]
	interesting := suspended || p != nil && p.box != nil
	k.mu.Unlock()
	if interesting {
		k.Wake(row.ID)
	}
}

// Keeps reports whether there is a sandbox of a session here.
func (k *Keeper) Keeps(id session.ID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, suspended := k.suspended.ids[id]
	return suspended || k.places[id] != nil
}

// Wake has a session looked at soon: it may have no need for its sandbox, or
// for its workspace, any more. It never blocks.
func (k *Keeper) Wake(id session.ID) {
	k.mu.Lock()
	k.woken[id] = true
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

const (
	// sweepEvery is how often to look for unused sandboxes and workspaces.
	sweepEvery = time.Minute
	// endTime is how long ending a sandbox may take.
	endTime = 2 * time.Minute
)

// Run keeps house until ctx ends. Sandboxes are left running: the next server
// finds them. A sandbox that does not answer delays no other.
func (k *Keeper) Run(ctx context.Context) error {
	var tasks sync.WaitGroup
	defer tasks.Wait()
	tasks.Go(func() { k.clearSteps(ctx) })
	tasks.Go(func() { every(ctx, sweepEvery, func() { k.Sweep(ctx) }) })
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.wake:
		}
		k.mu.Lock()
		woken := k.woken
		k.woken = map[session.ID]bool{}
		k.mu.Unlock()
		for id := range woken {
			tasks.Go(func() { k.attend(ctx, id) })
		}
	}
}

// every does something now and then, beginning now.
func every(ctx context.Context, d time.Duration, do func()) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	for {
		do()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Close lets go of all sandboxes. They run on.
func (k *Keeper) Close() {
	k.mu.Lock()
	k.closed = true
	var boxes []*sandbox.Sandbox
	for _, p := range k.places {
		if p.box != nil {
			boxes = append(boxes, p.box)
		}
	}
	k.mu.Unlock()
	k.cancel()
	for _, b := range boxes {
		b.Close()
	}
	k.tasks.Wait()
}

// attend looks at a session that was woken.
func (k *Keeper) attend(ctx context.Context, id session.ID) {
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	if err := k.endUnneeded(ctx, id); err != nil && !errors.Is(err, context.Canceled) {
		k.Logger.Error("cannot stop an unused sandbox", "session", id, "error", err)
	}
}

// goesOn reports whether a session is known to be neither stopped nor deleted, as nearly always. Changed tells when it is.
func (k *Keeper) goesOn(id session.ID) bool {
	st, ok := k.Sessions.Peek(id)
	return ok && st.Exists() && !st.Deleted && st.Status() != session.Halted
}

// endUnneeded ends what a session does not need.
func (k *Keeper) endUnneeded(ctx context.Context, id session.ID) error {
	row, err := k.Index.Row(ctx, id)
	switch {
	case errors.Is(err, session.ErrNotFound):
		return nil // the sweep decides about what has no row
	case err != nil:
		return err
	case row.Deleted:
		return k.remove(ctx, id)
	case row.Status == session.Halted:
		return k.stop(ctx, id)
	}
	return nil
}

// stop ends the sandbox of a stopped session. If it got a new user after the stop, it ends with
// that user.
func (k *Keeper) stop(ctx context.Context, id session.ID) error {
	p, leave, err := k.enterLocked(ctx, id)
	if err != nil {
		return err
	}
	defer leave()
	st, err := k.Sessions.Load(ctx, id)
	if err != nil {
		return err
	}
	if st.Status() != session.Halted {
		return nil
	}
	h, err := k.handle(st)
	if errors.Is(err, handle.ErrElsewhere) { // that server does it
		return nil
	}
	if err != nil {
		return err
	}
	// The checkpoint of the stop comes first: what others change in the files afterwards is not the agent's.
	_ = p.saved.gate.WaitFor(ctx, maxSaveWait)
	k.mu.Lock()
	if p.users > 1 && p.since >= st.Halt { // a stopped workspace is being read
		k.mu.Unlock()
		return nil
	}
	p.ending = true // decided at one moment with the count of users
	k.mu.Unlock()
	err = k.Driver.Stop(ctx, h.Handle)
	k.forget(p)
	k.ended(id, err)
	k.mu.Lock()
	p.ending = false
	if err == nil {
		delete(k.suspended.ids, id)
	}
	k.mu.Unlock()
	return err
}

// remove takes away the sandbox and the workspace of a deleted session.
func (k *Keeper) remove(ctx context.Context, id session.ID) error {
	p, leave, err := k.enterLocked(ctx, id)
	if err != nil {
		return err
	}
	defer leave()
	err = k.Driver.Destroy(ctx, sandbox.Handle{Driver: k.Name, ID: string(id)})
	k.forget(p)
	k.ended(id, err)
	if err == nil {
		k.shares.Remove(id)
		k.mu.Lock()
		delete(k.suspended.ids, id)
		k.mu.Unlock()
	}
	if err == nil && k.Forgotten != nil {
		// The workspace is gone, so this is done also when the server is about to end.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
		defer cancel()
		k.Forgotten(ctx, id)
	}
	return err
}

// ended tells that nothing runs any more, if so. Called with the turn held.
func (k *Keeper) ended(id session.ID, err error) {
	if err == nil && k.OnEnded != nil {
		k.OnEnded(id)
	}
}

// forget lets go of the connection.
func (k *Keeper) forget(p *place) {
	k.mu.Lock()
	box := p.box
	p.box = nil
	k.mu.Unlock()
	if box != nil {
		box.Close()
	}
}

// enterLocked starts a use that ends the sandbox or replaces the workspace, and locks out
// all others until leave is called.
func (k *Keeper) enterLocked(ctx context.Context, id session.ID) (p *place, leave func(), err error) {
	if p, err = k.enter(id); err != nil {
		return nil, nil, err
	}
	if err := p.lock(ctx); err != nil {
		k.leaveQuietly(p)
		return nil, nil, err
	}
	return p, func() { p.unlock(); k.leaveQuietly(p) }, nil
}

// leaveQuietly ends a use without waking the keeper: the sandbox was dealt with already.
func (k *Keeper) leaveQuietly(p *place) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p.users--; p.users == 0 && p.box == nil {
		delete(k.places, p.id)
	}
}

// Sweep removes what is unused: sandboxes of stopped sessions and workspaces of
// deleted ones. Workspaces of sessions that are not known are set aside.
func (k *Keeper) Sweep(ctx context.Context) {
	if !k.recalled.Load() {
		k.recalled.Store(k.recordRestores(ctx))
	}
	found, err := k.Driver.List(ctx)
	if err != nil {
		if ctx.Err() == nil {
			k.Logger.Error("cannot look for unused sandboxes", "error", err)
		}
		return
	}
	for _, f := range found {
		if ctx.Err() != nil {
			return
		}
		if err := k.sweepOne(ctx, f); err != nil && ctx.Err() == nil {
			k.Logger.Error("cannot stop an unused sandbox", "session", f.Handle.ID, "error", err)
		}
	}
	k.measureStopped(ctx, found)
}

func (k *Keeper) sweepOne(ctx context.Context, f sandbox.Found) error {
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	id := session.ID(f.Handle.ID)
	row, err := k.Index.Row(ctx, id)
	switch {
	case errors.Is(err, session.ErrNotFound):
		return k.setAside(ctx, f.Handle)
	case err == nil && row.Deleted:
		k.Logger.Info("removing the workspace of a deleted conversation", "session", id)
		return k.remove(ctx, id)
	case err != nil:
		return err
	case row.Status == session.Halted && (f.Running || f.Suspended):
		return k.stop(ctx, id)
	}
	return nil
}

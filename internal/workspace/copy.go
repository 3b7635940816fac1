package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/session"
)

// ErrNoCopy says that workspaces like this one cannot be copied.
var ErrNoCopy = errors.New("the workspace cannot be copied")

// recordTime bounds the storing of a copy's log.
const recordTime = time.Minute

// Copy makes the workspace of a new session a copy of another's as it is now, and
// then has store make the session. If the other has none yet, nor has the new one.
//
// Until the session exists, its workspace has no owner, so whatever ends this
// on the way, also the death of the server, leaves something that Sweep sets aside.
func (k *Keeper) Copy(ctx context.Context, from, to session.ID, store func(context.Context) error) error {
	return k.CopyAt(ctx, from, to, 0, store)
}

// CopyAt is Copy with the files of a checkpoint of the other; 0 is as they are now. Software that was installed outside
// of the workspace is as it is now.
func (k *Keeper) CopyAt(ctx context.Context, from, to session.ID, checkpoint int, store func(context.Context) error) error {
	_, leave, err := k.enterLocked(ctx, to) // keeps Sweep away until the session exists
	if err != nil {
		return err
	}
	defer leave()
	switch _, err := k.Index.Row(ctx, to); {
	case err == nil:
		return session.ErrConflict
	case !errors.Is(err, session.ErrNotFound):
		return err
	}
	if err := k.snapshot(ctx, from, to); err != nil {
		return err
	}
	if checkpoint > 0 {
		d, ok := k.Driver.(sandbox.Checkpointer)
		if !ok {
			return ErrNoCheckpoints
		}
		if _, err := d.Restore(ctx, sandbox.Handle{Driver: k.Name, ID: string(to)}, sandbox.RestoreParams{Number: checkpoint}); err != nil {
			return err
		}
	}
	k.mu.Lock()
	delete(k.strangers, to) // what was there is gone, and the copy is its session's own
	k.mu.Unlock()
	// From here on the outcome is recorded, even if the caller's context ends.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	return store(ctx)
}

func (k *Keeper) snapshot(ctx context.Context, from, to session.ID) error {
	st, err := k.Sessions.Load(ctx, from)
	if err != nil {
		return err
	}
	h, err := k.handle(st)
	if err != nil {
		return err
	}
	s, ok := k.Driver.(sandbox.Snapshotter)
	if !ok {
		return k.without(ctx, h.Handle)
	}
	err = s.Snapshot(ctx, h.Handle, string(to))
	if errors.Is(err, fs.ErrExist) { // left behind by a server that died
		if err = k.Driver.Destroy(ctx, sandbox.Handle{Driver: k.Name, ID: string(to)}); err == nil {
			err = s.Snapshot(ctx, h.Handle, string(to))
		}
	}
	switch {
	case errors.Is(err, sandbox.ErrGone):
		return nil
	case errors.Is(err, sandbox.ErrInvalid):
		return fmt.Errorf("%w: it is a folder of this machine that is not managed by Deckhand", ErrNoCopy)
	}
	return err
}

// without is for a driver that makes no copies: where there is nothing to be
// copied, none is needed.
func (k *Keeper) without(ctx context.Context, h sandbox.Handle) error {
	found, err := k.Driver.List(ctx)
	if err != nil {
		return err
	}
	for _, f := range found {
		if f.Handle.ID == h.ID {
			return fmt.Errorf("%w: this server runs without a sandbox, so the agent of the copy would work in the folder of the original", ErrNoCopy)
		}
	}
	return nil
}

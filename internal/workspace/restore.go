package workspace

import (
	"context"
	"encoding/json"
	"errors"

	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	"deckhand/internal/workspace/origin"
)

// Restore is a restore of the files of a session's workspace.
type Restore struct {
	ID session.ID
	// Event is the event to record. The keeper sets Checkpoint, Before, Changed and Git.
	Event session.Restored
	// Spans returns the times whose changes are undone, oldest first. It is called when the current state has a checkpoint: the last turn may have had none. Own is what happens to files that others changed too.
	Spans func(ctx context.Context) ([]Span, error)
	Own   Own
	// May is called before the first change, while nothing else can start to use the workspace. An error refuses the restore.
	May func(ctx context.Context) error
	// Record stores the event. If it fails, the files are restored to their previous state.
	Record func(ctx context.Context, e session.Restored, kept []string) error
}

// What is known of restores and changes, for use cases that know no drivers.
type (
	FileChange = sandbox.FileChange
	Span       = sandbox.Span
	Own        = sandbox.Own
	// OwnFiles are files that others changed too.
	OwnFiles = sandbox.OwnFiles
)

// OwnError means that a restore was refused because others changed some of the files too. Nothing was restored.
type OwnError struct{ sandbox.OwnFiles }

func (*OwnError) Error() string { return "files to restore were changed by others" }

// note is kept beside the workspace until a restore is recorded. A copy of the workspace has another ID.
type note struct {
	ID    session.ID       `json:"id"`
	Event session.Restored `json:"event"`
}

// Restore undoes the changes of r.Spans. The sandbox need not be running. Other uses of the workspace wait. If the process dies after the files were restored, recordRestores records the event after a restart. It returns an *OwnError if others changed some of the files too and r.Own does not say what to do with them.
func (k *Keeper) Restore(ctx context.Context, r Restore) error {
	d, h, err := k.checkpoints(ctx, r.ID)
	if err != nil {
		return err
	}
	p, leave, err := k.enterLocked(ctx, r.ID)
	if err != nil {
		return err
	}
	defer leave()
	if err := r.May(ctx); err != nil {
		return err
	}
	// A checkpoint between the restore and its event would have the restored files as changes of the agent. A refused
	// restore holds up no checkpoint: that of a turn which ends now would be missing.
	open, err := p.saved.gate.Enter(ctx)
	if err != nil {
		return err
	}
	defer k.leaveGate(p, open)
	st, err := k.Sessions.Load(ctx, r.ID)
	if spec, e := k.Spec(ctx, st); err == nil && e == nil {
		k.keepOpen(p, spec)
	}
	if err == nil {
		_, err = k.save(ctx, st, origin.Moment{}) // what changed since the last turn must not be taken for the agent's later
	}
	if err != nil {
		return orNone(err)
	}
	spans, err := r.Spans(ctx)
	if err != nil {
		return err
	}
	text, err := json.Marshal(note{r.ID, r.Event})
	if err != nil {
		return err
	}
	// From here on the outcome is recorded, even if the caller's context ends.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTime)
	defer cancel()
	got, err := d.Restore(ctx, h, sandbox.RestoreParams{Spans: spans, Own: r.Own, Note: text})
	if err != nil {
		return err
	}
	if r.Own == sandbox.RefuseOwn && got.Own.Count > 0 {
		return &OwnError{got.Own}
	}
	e := r.Event
	e.Checkpoint, e.Before, e.Changed, e.Git = got.Target, got.Before.Number, got.Changed, got.Git
	if err := r.Record(ctx, e, got.Kept); err != nil {
		if _, back := d.Restore(ctx, h, sandbox.RestoreParams{Number: e.Before}); back != nil {
			k.Logger.Error("a restore could not be recorded, and the files could not be restored to their previous state", "session", r.ID, "error", back)
		}
		return err
	}
	if err := d.Recorded(ctx, h); err != nil {
		k.Logger.Warn("cannot remove the note of a recorded restore", "session", r.ID, "error", err)
	}
	return nil
}

// recordRestores records restores that an earlier server made but did not record, because it died. It reports whether all were recorded.
func (k *Keeper) recordRestores(ctx context.Context) bool {
	d, ok := k.Driver.(sandbox.Checkpointer)
	if !ok {
		return true
	}
	list, err := d.Unrecorded(ctx, func(id string) bool {
		st, err := k.Sessions.Load(ctx, session.ID(id))
		return err != nil || k.Here(st) == nil
	})
	done := err == nil
	for _, u := range list {
		if e := k.recordRestore(ctx, d, u); e != nil {
			done, err = false, errors.Join(err, e)
		}
	}
	if err != nil && ctx.Err() == nil {
		k.Logger.Warn("a restore of files cannot be recorded yet", "error", err)
	}
	return done
}

func (k *Keeper) recordRestore(ctx context.Context, d sandbox.Checkpointer, u sandbox.Unrecorded) error {
	id := session.ID(u.Handle.ID)
	_, leave, err := k.enterLocked(ctx, id)
	if err != nil {
		return err
	}
	defer leave()
	var n note
	if json.Unmarshal(u.Note, &n) == nil && n.ID == id {
		n.Event.Checkpoint, n.Event.Before, n.Event.Changed, n.Event.Git = u.Target, u.Before.Number, u.Changed, u.Git
		_, err := k.Sessions.Update(ctx, id, func(st session.State) ([]session.Payload, error) { return st.Restore(n.Event) })
		if err != nil && !errors.Is(err, session.ErrNotFound) && !errors.Is(err, session.ErrDeleted) {
			return err
		}
	}
	return d.Recorded(ctx, u.Handle)
}

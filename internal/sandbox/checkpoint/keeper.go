package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/lock"
)

// folderName is the folder with checkpoints in the folder of a sandbox, which the sandbox cannot reach.
const folderName = "checkpoints"

// MinFree is the disk space below which no checkpoint is made.
const MinFree = 512 << 20

// Keeper implements sandbox.Checkpointer for a driver whose workspaces are folders of this machine.
type Keeper struct {
	driver Driver
	log    *slog.Logger
	locks  lock.Table // serialises changes to the checkpoints of a sandbox
	stores Stores
}

// Driver is what a Keeper needs from the sandbox driver.
type Driver interface {
	// Place returns the folder of a sandbox and its workspace. sandbox.ErrGone if there is none.
	Place(h sandbox.Handle) (dir string, w Workspace, err error)
	// Quiet calls do while the sandbox cannot be started, and is frozen if it runs and the machine supports it.
	Quiet(ctx context.Context, h sandbox.Handle, do func() error) error
	Space() (sandbox.Space, error)
	List(ctx context.Context) ([]sandbox.Found, error)
}

// NewKeeper returns a Keeper.
func NewKeeper(d Driver, log *slog.Logger) *Keeper { return &Keeper{driver: d, log: log} }

// store returns the checkpoints of a sandbox, and its workspace.
func (k *Keeper) store(h sandbox.Handle) (*Store, Workspace, error) {
	dir, w, err := k.driver.Place(h)
	if err != nil {
		return nil, w, err
	}
	return k.stores.Of(filepath.Join(dir, folderName)), w, nil
}

// Checkpoint implements sandbox.Checkpointer. It reads while the sandbox runs.
func (k *Keeper) Checkpoint(ctx context.Context, h sandbox.Handle) (sandbox.Checkpoint, error) {
	release, err := k.locks.Acquire(ctx, h.ID)
	if err != nil {
		return sandbox.Checkpoint{}, err
	}
	defer release()
	s, w, err := k.store(h)
	if err != nil {
		return sandbox.Checkpoint{}, err
	}
	if space, err := k.driver.Space(); err == nil && space.FreeBytes < MinFree {
		return sandbox.Checkpoint{}, fmt.Errorf("%w: less than %d MiB of disk space is free", sandbox.ErrTooBig, MinFree>>20)
	}
	t, err := s.Take(ctx, w, time.Now())
	return t.Public(), Public(err)
}

// Public converts a checkpoint to the type of package sandbox.
func (t Taken) Public() sandbox.Checkpoint {
	return sandbox.Checkpoint{Number: t.Number, Files: t.Files, Changed: t.Changed, LeftOut: t.LeftOut, Bytes: t.Bytes, Previous: t.Previous, Verified: t.Verified}
}

// Public converts the result of a restore to the type of package sandbox.
func (r Restored) Public() sandbox.Restored {
	return sandbox.Restored{Before: r.Undo.Public(), Target: r.Target, Changed: r.Changed, Git: r.Git, Kept: r.Kept, Own: sandbox.OwnFiles{
		Files: r.Files[:min(len(r.Files), maxOwn)], Repositories: r.Repositories[:min(len(r.Repositories), maxOwn)], Count: len(r.Files) + len(r.Repositories)}}
}

// maxOwn is the maximum number of listed files that others changed too.
const maxOwn = 20

// Public converts an error to the matching error of package sandbox.
func Public(err error) error {
	switch {
	case errors.Is(err, ErrTooLarge):
		return fmt.Errorf("%w: %w", sandbox.ErrTooBig, err)
	case errors.Is(err, ErrNone):
		return fmt.Errorf("%w: %w", sandbox.ErrNoCheckpoint, err)
	}
	return err
}

// Checkpoints implements sandbox.Checkpointer.
func (k *Keeper) Checkpoints(_ context.Context, h sandbox.Handle) (out sandbox.Checkpoints, err error) {
	s, _, err := k.store(h)
	if err != nil {
		return out, err
	}
	if out.Numbers, err = s.Numbers(); err == nil {
		out.Bytes, err = s.Bytes()
	}
	return out, err
}

// Restore implements sandbox.Checkpointer.
func (k *Keeper) Restore(ctx context.Context, h sandbox.Handle, p sandbox.RestoreParams) (out sandbox.Restored, err error) {
	if _, _, err := k.store(h); err != nil {
		return out, err
	}
	err = k.driver.Quiet(ctx, h, func() error {
		release, err := k.locks.Acquire(ctx, h.ID)
		if err != nil {
			return err
		}
		defer release()
		s, w, err := k.store(h)
		if err != nil {
			return err
		}
		r, err := s.Restore(ctx, w, p)
		out = r.Public()
		return Public(err)
	})
	return out, err
}

// Unrecorded implements sandbox.Checkpointer.
func (k *Keeper) Unrecorded(ctx context.Context, mine func(id string) bool) (out []sandbox.Unrecorded, err error) {
	found, err := k.driver.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		s, w, err := k.store(f.Handle)
		if err != nil || !mine(f.Handle.ID) {
			continue // no workspace
		}
		k.finish(s, w, f.Handle.ID)
		if note, r, ok := s.Unrecorded(); ok {
			out = append(out, sandbox.Unrecorded{Handle: f.Handle, Note: note, Restored: r.Public()})
		}
	}
	return out, nil
}

// Recorded implements sandbox.Checkpointer.
func (k *Keeper) Recorded(_ context.Context, h sandbox.Handle) error {
	s, _, err := k.store(h)
	if err != nil {
		return err
	}
	return s.Recorded()
}

// Finish completes a restore that a dead server began. If that fails, the next use tries again. It waits for a restore of
// this process.
func (k *Keeper) Finish(dir string, w Workspace) {
	k.finish(Open(filepath.Join(dir, folderName)), w, filepath.Base(dir))
}

func (k *Keeper) finish(s *Store, w Workspace, id string) {
	if !s.Pending() {
		return
	}
	release, err := k.locks.Acquire(context.Background(), id)
	if err == nil {
		defer release()
		err = s.Finish(w)
	}
	if err != nil {
		k.log.Warn("cannot complete an interrupted restore of a workspace", "workspace", w.Dir, "error", err)
	}
}

// Interrupted reports whether a restore of the sandbox in a folder has to be finished.
func Interrupted(dir string) bool { return Open(filepath.Join(dir, folderName)).Pending() }

// Share shares the checkpoints with the sandbox in another folder.
func Share(from, to string) error {
	return Open(filepath.Join(from, folderName)).Link(Open(filepath.Join(to, folderName)))
}

// Forget drops the cache of a sandbox whose folder is removed.
func (k *Keeper) Forget(dir string) { k.stores.Forget(filepath.Join(dir, folderName)) }

// Compare implements sandbox.Checkpointer.
func (k *Keeper) Compare(_ context.Context, a, b sandbox.CheckpointOf) ([]sandbox.FileChange, error) {
	from, _, err := k.store(a.Handle)
	if err != nil {
		return nil, err
	}
	to, _, err := k.store(b.Handle)
	if err != nil {
		return nil, err
	}
	return Changes(from, a.Number, to, b.Number)
}

// Changes lists the files that differ between two checkpoints, as sandbox.Checkpointer does.
func Changes(from *Store, n int, to *Store, m int) ([]sandbox.FileChange, error) {
	changes, err := from.Compare(n, to, m)
	out := make([]sandbox.FileChange, len(changes))
	for i, c := range changes {
		out[i] = sandbox.FileChange{Path: c.Path, From: c.From, Status: statuses[c.Status], Old: c.Old, New: c.New,
			Added: c.Added, Removed: c.Removed, Counted: c.Counted, Binary: c.Binary}
	}
	return out, Public(err)
}

var statuses = map[byte]string{'A': "added", 'D': "deleted", 'M': "modified", 'R': "renamed"}

// CheckpointFile implements sandbox.Checkpointer.
func (k *Keeper) CheckpointFile(_ context.Context, c sandbox.CheckpointOf, path string, most int64) ([]byte, bool, error) {
	s, _, err := k.store(c.Handle)
	if err != nil {
		return nil, false, err
	}
	content, found, err := s.Content(c.Number, strings.TrimPrefix(path, "/"), most)
	return content, found, Public(err)
}

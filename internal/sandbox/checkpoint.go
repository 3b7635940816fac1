package sandbox

import (
	"context"
	"errors"
)

// Checkpointer is a Driver that keeps earlier states of workspaces. They are removed with the workspace.
type Checkpointer interface {
	// Checkpoint stores the files of a workspace as they are now. When it returns, they are durable. If nothing
	// differs from the newest checkpoint, that one is returned with Changed 0. So is the first one of an empty
	// workspace. ErrGone if there is no workspace; ErrTooBig if it is too large.
	Checkpoint(ctx context.Context, h Handle) (Checkpoint, error)
	// Checkpoints returns the checkpoints of a workspace and their size.
	Checkpoints(ctx context.Context, h Handle) (Checkpoints, error)
	// Restore restores the files of a workspace, even while its sandbox runs, and stores the state
	// before as a checkpoint. If the process dies during the restore, the files are in one of the two states from the next use
	// on. ErrNoCheckpoint if there is no such checkpoint. If note is not empty and something was changed, Unrecorded
	// returns it until Recorded is called.
	Restore(ctx context.Context, h Handle, number int, note []byte) (Restored, error)
	// Unrecorded lists the restores that were made with a note and not recorded: the process died before.
	Unrecorded(ctx context.Context) ([]Unrecorded, error)
	// Recorded says that the last restore of a workspace was recorded.
	Recorded(ctx context.Context, h Handle) error
	// Compare lists the files that differ between two checkpoints, of the same or of different workspaces.
	Compare(ctx context.Context, a, b CheckpointOf) ([]FileChange, error)
	// CheckpointFile reads a file of a checkpoint up to a number of bytes; found is false if there is none.
	CheckpointFile(ctx context.Context, c CheckpointOf, path string, most int64) (content []byte, found bool, err error)
}

// ErrNoCheckpoint means that there is no such checkpoint: it was never made, or dropped because it was old.
var ErrNoCheckpoint = errors.New("there is no such checkpoint")

// Checkpoint is a stored state of a workspace.
type Checkpoint struct {
	// Number identifies it. Later ones have higher numbers.
	Number int
	// Files is how many files and folders it has, Changed how many of them differ from the one before, LeftOut how
	// many files it does not have because they are too large or cannot be read.
	Files, Changed, LeftOut int
	// Bytes is the number of bytes that it added to the store.
	Bytes int64
}

// Checkpoints are the checkpoints of a workspace.
type Checkpoints struct {
	Numbers []int // oldest first
	Bytes   int64 // of all of them
}

// CheckpointOf names a checkpoint of a workspace.
type CheckpointOf struct {
	Handle Handle
	Number int
}

// Restored is the result of a restore.
type Restored struct {
	// Before has the state before.
	Before Checkpoint
	// Changed is the number of files and folders that were written or removed; Kept are those that could not be restored.
	Changed int
	Kept    []string
}

// Unrecorded is a restore that was made and not recorded.
type Unrecorded struct {
	Handle Handle
	Note   []byte
	Restored
}

// FileChange is a file that differs between two checkpoints.
type FileChange struct {
	Path string
	// Status is "added", "deleted" or "modified".
	Status string
	// Old and New are its sizes.
	Old, New int64
}

package sandbox

import (
	"context"
	"errors"
	"time"

	"deckhand/internal/sandbox/rpc"
)

// Checkpointer is a Driver that keeps earlier states of workspaces. They are removed with the workspace.
type Checkpointer interface {
	// Checkpoint stores the files of a workspace as they are now. When it returns, they are durable. If nothing
	// differs from the newest checkpoint, that one is returned with Changed 0. So is the first one of an empty
	// workspace. ErrGone if there is no workspace; ErrTooBig if it is too large.
	Checkpoint(ctx context.Context, h Handle) (Checkpoint, error)
	// Checkpoints returns the checkpoints of a workspace and their size.
	Checkpoints(ctx context.Context, h Handle) (Checkpoints, error)
	// Restore restores the files of a workspace to a checkpoint, or undoes what changed in spans, even while its sandbox runs. It stores
	// the state before as a checkpoint. If the process dies during the restore, the files are in one of the two states from the next use
	// on. ErrNoCheckpoint if there is no such checkpoint. If the note is not empty and the restore changed something, Unrecorded
	// returns the restore until Recorded is called.
	Restore(ctx context.Context, h Handle, p RestoreParams) (Restored, error)
	// Unrecorded lists restores that have a note and were not recorded, because the process died. It only looks at sandboxes for which
	// mine returns true: others may be in use by another process.
	Unrecorded(ctx context.Context, mine func(id string) bool) ([]Unrecorded, error)
	// Recorded marks the last restore of a workspace as recorded.
	Recorded(ctx context.Context, h Handle) error
	// Compare lists the files that differ between two checkpoints, of the same or of different workspaces.
	Compare(ctx context.Context, a, b CheckpointOf) ([]FileChange, error)
	// CheckpointFile reads a file of a checkpoint up to a number of bytes; found is false if there is none.
	CheckpointFile(ctx context.Context, c CheckpointOf, path string, most int64) (content []byte, found bool, err error)
}

// Bare is a Driver without sandboxes: users can change the files of its workspaces with any program.
type Bare interface{ Bare() }

// ErrNoCheckpoint means that there is no such checkpoint: it was never made, or dropped because it was old.
var ErrNoCheckpoint = rpc.ErrNoCheckpoint

// Checkpoint is a stored state of a workspace.
type Checkpoint struct {
	// Number identifies it. Later ones have higher numbers.
	Number int
	// Files is how many files and folders it has, Changed how many of them differ from the one before, LeftOut how
	// many files it does not have because they are too large or cannot be read.
	Files, Changed, LeftOut int
	// Bytes is the number of bytes that it added to the store.
	Bytes int64
	// Previous is the newest checkpoint before, and Verified the last time at which the workspace was known to be in its state: what
	// differs was changed after it.
	Previous int
	Verified time.Time
}

// Span is a time in which the files of a workspace were changed: from the state of one checkpoint to that of another. Mixed is
// true if others may have made some of the changes.
type Span struct {
	From  int  `json:"from"`
	To    int  `json:"to"`
	Mixed bool `json:"mixed,omitempty"`
}

// Own is what a restore does with files that were changed in its spans, and by others between or after them.
type Own string

// The choices. RefuseOwn restores nothing if there are such files, KeepOwn restores the other files, and OverwriteOwn restores all.
const (
	RefuseOwn    Own = ""
	KeepOwn      Own = "keep"
	OverwriteOwn Own = "overwrite"
)

// OwnFiles are files that were changed in the spans of a restore, and by others between or after them.
type OwnFiles struct {
	// Files and Repositories are the first of them. Repositories are folders whose git history was changed.
	Files, Repositories []string
	// Count is the number of all.
	Count int
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
	// Before has the state before, and the checkpoint Target the state after.
	Before Checkpoint
	Target int
	// Changed is the number of files and folders that were written or removed, without those in .git folders. Git is true if
	// a git history was restored. Kept are files that could not be restored.
	Changed int
	Git     bool
	Kept    []string
	// Own are files that others changed too. If there are any and RestoreParams.Own is RefuseOwn, nothing was restored.
	Own OwnFiles
}

// Unrecorded is a restore that was made but not recorded.
type Unrecorded struct {
	Handle Handle
	Note   []byte
	Restored
}

// FileChange is a file that differs between two checkpoints.
type FileChange struct {
	Path string
	// From is the old path of a renamed file.
	From string
	// Status is "added", "deleted", "modified" or "renamed".
	Status string
	// Old and New are its sizes.
	Old, New int64
	// Added and Removed are the numbers of changed lines, if Counted.
	Added, Removed  int
	Counted, Binary bool
}

// Parameters of the checkpoint operations of a runner.
type (
	// UseParams are the parameters of CheckpointRunner.Use and Release. By names the server.
	UseParams struct {
		By string `json:"by"`
	}
	// BeginParams are the parameters of CheckpointRunner.Begin. Empty is true if the workspace was empty at first and may
	// not have a checkpoint of that state. At is the last time at which it is known to have been empty, by the clock of the server; zero
	// if that was before its first use.
	BeginParams struct {
		Empty bool      `json:"empty,omitempty"`
		At    time.Time `json:"at,omitzero"`
	}
	// TakeParams are the parameters of CheckpointRunner.Take. At is the current time of the server.
	TakeParams struct {
		At time.Time `json:"at"`
	}
	// RestoreParams are the parameters of Checkpointer.Restore.
	RestoreParams struct {
		// Number is the checkpoint to restore all files to. If it is 0, the changes in Spans, oldest first, are undone; other files
		// stay as they are.
		Number int    `json:"number,omitempty"`
		Spans  []Span `json:"spans,omitempty"`
		Own    Own    `json:"own,omitempty"`
		Note   []byte `json:"note,omitempty"`
	}
	// CompareParams are the parameters of Checkpointer.Compare. Other is true if To is a checkpoint of the other store.
	CompareParams struct {
		From  int  `json:"from"`
		To    int  `json:"to"`
		Other bool `json:"other,omitempty"`
	}
	// CheckpointFileParams are the parameters of Checkpointer.CheckpointFile.
	CheckpointFileParams struct {
		Number int    `json:"number"`
		Path   string `json:"path"`
		Most   int64  `json:"most"`
	}
	// CheckpointContent is the content of a file in a checkpoint.
	CheckpointContent struct {
		Content []byte `json:"content"`
		Found   bool   `json:"found"`
	}
)

// OtherCheckpoints is the suffix of the path where the other store of a comparison is mounted.
const OtherCheckpoints = "-other"

// CheckpointRunner is a connection to a runner that keeps checkpoints. It has the methods of Checkpointer for one workspace.
type CheckpointRunner struct{ peer *rpc.Peer }

// CheckpointRunner returns the runner of a sandbox that keeps checkpoints.
func (s *Sandbox) CheckpointRunner() CheckpointRunner { return CheckpointRunner{s.peer} }

// Use announces calls of a server. ErrBusy if another server has released the runner.
func (r CheckpointRunner) Use(ctx context.Context, by string) error {
	err := r.peer.Call(ctx, "checkpoints/use", 0, UseParams{by}, nil)
	if errors.Is(err, ErrInvalid) { // a runner of an older version
		return nil
	}
	return err
}

// Release reports whether a server may remove the runner's container: no other server has announced calls since this one did.
func (r CheckpointRunner) Release(ctx context.Context, by string) (last bool, err error) {
	err = r.peer.Call(ctx, "checkpoints/release", 0, UseParams{by}, &last)
	if errors.Is(err, ErrInvalid) {
		return true, nil
	}
	return last, err
}

// Begin prepares the store.
func (r CheckpointRunner) Begin(ctx context.Context, p BeginParams) error {
	return r.peer.Call(ctx, "checkpoints/begin", 0, p, nil)
}

// Take makes a checkpoint.
func (r CheckpointRunner) Take(ctx context.Context) (out Checkpoint, err error) {
	return out, r.peer.Call(ctx, "checkpoints/take", 0, TakeParams{At: time.Now()}, &out)
}

// List lists the checkpoints.
func (r CheckpointRunner) List(ctx context.Context) (out Checkpoints, err error) {
	return out, r.peer.Call(ctx, "checkpoints/list", 0, nil, &out)
}

// Restore restores the files to a checkpoint.
func (r CheckpointRunner) Restore(ctx context.Context, p RestoreParams) (out Restored, err error) {
	return out, r.peer.Call(ctx, "checkpoints/restore", 0, p, &out)
}

// Settle completes an interrupted restore, and returns the restore that was not recorded. Its Note is empty if there is none.
func (r CheckpointRunner) Settle(ctx context.Context) (out Unrecorded, err error) {
	return out, r.peer.Call(ctx, "checkpoints/settle", 0, nil, &out)
}

// Recorded marks the last restore as recorded.
func (r CheckpointRunner) Recorded(ctx context.Context) error {
	return r.peer.Call(ctx, "checkpoints/recorded", 0, nil, nil)
}

// Compare lists the files that differ between two checkpoints.
func (r CheckpointRunner) Compare(ctx context.Context, p CompareParams) (out []FileChange, err error) {
	return out, r.peer.Call(ctx, "checkpoints/compare", 0, p, &out)
}

// File reads a file of a checkpoint.
func (r CheckpointRunner) File(ctx context.Context, p CheckpointFileParams) (out CheckpointContent, err error) {
	return out, r.peer.Call(ctx, "checkpoints/file", 0, p, &out)
}

package api

import "time"

// Checkpoints is the response of GET …/checkpoints.
type Checkpoints struct {
	Checkpoints []Checkpoint `json:"checkpoints" doc:"Checkpoints, oldest first. Turns that changed no files have none."`
	CanUndo     bool         `json:"can_undo" doc:"Whether the last restore can be undone."`
	CanRedo     bool         `json:"can_redo" doc:"Whether the last undo can be redone."`
}

// Checkpoint is a stored state of the files of a workspace.
type Checkpoint struct {
	EventID int64     `json:"event_id" doc:"Event after which the files were in this state."`
	Time    time.Time `json:"time"`
	Files   int       `json:"files" doc:"Number of files and folders."`
	Changed int       `json:"changed" doc:"Number of files and folders that differ from the checkpoint before."`
	LeftOut int       `json:"left_out" doc:"Number of files that are not in the checkpoint because they are too large or unreadable."`
	Bytes   int64     `json:"bytes" doc:"Bytes that the checkpoint added to the store."`
	// BetweenTurns is true for changes that a restore keeps.
	BetweenTurns bool `json:"between_turns" doc:"Whether the changes were made between turns, by you or by others. A restore keeps such changes."`
}

// RestoreConversation is the body of POST …/restore.
type RestoreConversation struct {
	EventID      int64     `json:"event_id" required:"true" minimum:"1" doc:"Event to restore to, such as the end of a turn."`
	Files        Opt[bool] `json:"files,omitzero" doc:"Restore the files of the workspace. Default: true."`
	Conversation Opt[bool] `json:"conversation,omitzero" doc:"Hide later events from the model. Default: false."`
	OwnChanges   string    `json:"own_changes,omitempty" enum:"refuse,keep,overwrite" doc:"What to do with files that the agent changed and that you changed too. refuse: restore nothing, and list them in a 409 response. keep: keep your versions and restore the other files. overwrite: restore them too. Default: refuse."`
}

// UndoRestore is the body of POST …/restore/undo and …/restore/redo.
type UndoRestore struct {
	OwnChanges string `json:"own_changes,omitempty" enum:"refuse,keep,overwrite" doc:"What to do with files that you changed since the restore. refuse: restore nothing, and list them in a 409 response. keep: keep your versions and restore the other files. overwrite: restore them too. Default: refuse."`
}

// Values of own_changes.
const (
	OwnRefuse    = "refuse"
	OwnKeep      = "keep"
	OwnOverwrite = "overwrite"
)

// RestoreConflict is the body of a 409 response to a restore. Files, Repositories and Count are set if msg_id is
// CONVERSATION$RESTORE_CONFLICT.
type RestoreConflict struct {
	Status       string   `json:"status"`
	Message      string   `json:"message"`
	MsgID        string   `json:"msg_id"`
	Files        []string `json:"files,omitempty" doc:"Files that the agent changed and you changed too; the first 20."`
	Repositories []string `json:"repositories,omitempty" doc:"Folders whose git history the agent changed and you changed too; the first 20. The workspace itself is a dot."`
	Count        int      `json:"count,omitempty" doc:"Number of all such files and repositories."`
}

// Restored is the response of POST …/restore, …/restore/undo and …/restore/redo.
type Restored struct {
	EventID      int64    `json:"event_id" doc:"Event that was restored to."`
	Files        bool     `json:"files" doc:"Whether files were restored."`
	Conversation bool     `json:"conversation" doc:"Whether the conversation was restored."`
	Changed      int      `json:"changed" doc:"Number of files and folders that were written or removed, without those in .git folders."`
	Git          bool     `json:"git" doc:"Whether the history of a git repository was restored."`
	Kept         []string `json:"kept" doc:"Files that were not restored because a file or folder that checkpoints leave out is in their place."`
	CanUndo      bool     `json:"can_undo"`
	CanRedo      bool     `json:"can_redo"`
}

// Comparison is the response of GET …/compare.
type Comparison struct {
	Files []ComparedFile `json:"files" doc:"Files that differ, in the order of paths."`
}

// ComparedFile is a file that differs.
type ComparedFile struct {
	Path    string  `json:"path"`
	Status  string  `json:"status" enum:"added,deleted,modified,renamed" doc:"What happened to the file on the way to the other side. With renames=false, a renamed file is one deleted and one added file."`
	From    *string `json:"from" doc:"Old path of a renamed file; otherwise null."`
	Size    int64   `json:"size" doc:"Size on this side."`
	Other   int64   `json:"other_size" doc:"Size on the other side."`
	Added   *int    `json:"added" doc:"Added lines; null for binary and very large files."`
	Removed *int    `json:"removed" doc:"Removed lines; null for binary and very large files."`
	Binary  bool    `json:"binary"`
}

// FileComparison is the response of GET …/compare/file.
type FileComparison struct {
	Original *string `json:"original" doc:"Text on this side; null if the file does not exist there."`
	Modified *string `json:"modified" doc:"Text on the other side; null if the file does not exist there."`
}

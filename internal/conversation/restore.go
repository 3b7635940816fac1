package conversation

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"deckhand/api"
	"deckhand/internal/session"
	"deckhand/internal/workspace"
)

// Checkpoints gives the use cases access to earlier states of workspaces. A server without them returns
// workspace.ErrNoCheckpoints.
type Checkpoints interface {
	// Checkpoints lists the checkpoints of a workspace, oldest first.
	Checkpoints(ctx context.Context, id session.ID) ([]int, error)
	// Restore restores the files of a workspace to a checkpoint, and records it.
	Restore(ctx context.Context, r workspace.Restore) error
	// Compare lists the files that differ, and FileAt reads one of them.
	Compare(ctx context.Context, a, b workspace.Files) ([]workspace.FileChange, error)
	FileAt(ctx context.Context, f workspace.Files, path string, most int64) (content []byte, found bool, err error)
}

// Point is a checkpoint as recorded in the log.
type Point struct {
	session.Checkpointed
	At time.Time
}

// point is where in the log the files of the workspace became those of a checkpoint.
type point struct {
	event      int64
	checkpoint int
}

// ListCheckpoints lists the points to which the files of a conversation can be restored, oldest first.
func (s *Service) ListCheckpoints(ctx context.Context, user string, id session.ID) ([]Point, session.State, error) {
	st, err := s.withFiles(ctx, user, id)
	if err != nil {
		return nil, st, err
	}
	numbers, err := s.Workspaces.Checkpoints(ctx, id)
	if errors.Is(err, workspace.ErrNone) {
		return nil, st, nil
	}
	if err != nil {
		return nil, st, restoreRefusal(err)
	}
	var out []Point
	for e, err := range s.Log.Read(ctx, id, 0) {
		if err != nil {
			return nil, st, err
		}
		if c, ok := e.Payload.(session.Checkpointed); ok && slices.Contains(numbers, c.Checkpoint) {
			out = append(out, Point{c, e.At})
		}
	}
	return out, st, nil
}

// withFiles loads a conversation of the user that has a workspace of its own.
func (s *Service) withFiles(ctx context.Context, user string, id session.ID) (session.State, error) {
	if _, err := s.Row(ctx, user, id); err != nil {
		return session.State{}, err
	}
	st, err := s.Sessions.Load(ctx, id)
	if err != nil {
		return st, err
	}
	if st.Created.Parent != "" {
		return st, refuse(Conflict, api.CodeConversationRefused, "This conversation works in the files of conversation "+string(st.Created.Parent)+": restore them there.")
	}
	if s.Workspaces == nil {
		return st, restoreRefusal(workspace.ErrNoCheckpoints)
	}
	return st, nil
}

// checkpointAt finds the checkpoint with the files as they were after an event: the last one before it, what was restored
// since, or a later one if no tool ran in between. Before the first one, it is the state in which the workspace was made.
func (s *Service) checkpointAt(ctx context.Context, id session.ID, event int64) (int, error) {
	numbers, err := s.Workspaces.Checkpoints(ctx, id)
	if err != nil {
		return 0, restoreRefusal(err)
	}
	var last point
	ran := int64(math.MaxInt64) // the first event after which the files may have been changed
	for e, err := range s.Log.Read(ctx, id, 0) {
		if err != nil {
			return 0, err
		}
		var p point
		switch x := e.Payload.(type) {
		case session.Checkpointed:
			p = point{x.UpTo, x.Checkpoint}
		case session.Restored:
			if x.Files {
				p = point{e.Number, x.Checkpoint}
				if e.Number > event {
					ran = min(ran, e.Number)
				}
			}
		case session.ToolCalled, session.ToolReturned, session.CommandTyped, session.CommandEnded, session.UserSaid:
			if e.Number > event {
				ran = min(ran, e.Number)
			}
		}
		if p.checkpoint > 0 && (p.event <= event || p.event < ran) && p.event >= last.event {
			last = p
		}
	}
	if last.checkpoint == 0 {
		last.checkpoint = 1
	}
	if !slices.Contains(numbers, last.checkpoint) {
		return 0, restoreRefusal(workspace.ErrNoCheckpoint)
	}
	return last.checkpoint, nil
}

// forkFiles returns the checkpoint whose files a fork starts with, 0 for the current files.
func (s *Service) forkFiles(ctx context.Context, c Fork, top session.ID) (int, error) {
	if !c.FilesAtEvent || c.Event == 0 {
		return 0, nil
	}
	if top != c.From {
		return 0, refuse(Conflict, api.CodeConversationRefused, "This conversation works in the files of conversation "+string(top)+": fork that one, or fork with the files as they are now.")
	}
	if s.Workspaces == nil {
		return 0, restoreRefusal(workspace.ErrNoCheckpoints)
	}
	return s.checkpointAt(ctx, top, c.Event)
}

// Restore is the command to restore files, or the conversation, to the point after an event.
type Restore struct {
	User string
	ID   session.ID
	// Action is RestorePoint, or undoes or redoes the last restore; then the other fields are those of that restore.
	Action session.RestoreAction
	Event  int64
	// Files restores the files of the workspace, Conversation what the model sees of the conversation.
	Files, Conversation bool
}

// Done is the result of a restore.
type Done struct {
	session.Restored
	// Kept are files that could not be restored.
	Kept  []string
	State session.State
}

// Restore restores files or the conversation. The agent must not be working.
func (s *Service) Restore(ctx context.Context, c Restore) (Done, error) {
	st, err := s.withFiles(ctx, c.User, c.ID)
	if err != nil {
		return Done{}, err
	}
	of, err := st.MayRestore(c.Action)
	if err != nil {
		return Done{}, err
	}
	r := session.Restored{Action: c.Action, Point: c.Event, Files: c.Files, Conversation: c.Conversation}
	switch {
	case c.Action != session.RestorePoint:
		r.Point, r.Files, r.Conversation, r.Checkpoint = of.Point, of.Files, of.Conversation, of.Before
	case c.Event > st.Last:
		return Done{}, api.Invalid("less_than_equal", "The conversation has no event with this number.", "event_id")
	case !c.Files && !c.Conversation:
		return Done{}, api.Invalid("value_error", "Restore files, conversation or both.", "files")
	case c.Files:
		if r.Checkpoint, err = s.checkpointAt(ctx, c.ID, c.Event); err != nil {
			return Done{}, err
		}
	}
	done := Done{}
	record := func(ctx context.Context, r session.Restored, kept []string) error {
		done.Restored, done.Kept = r, kept
		done.State, err = s.change(ctx, c.User, c.ID, func(st session.State) ([]session.Payload, error) { return st.Restore(r) })
		return err
	}
	if !r.Files {
		return done, record(ctx, r, nil)
	}
	may := func(ctx context.Context) error { return s.mayRestore(ctx, c) }
	return done, restoreRefusal(s.Workspaces.Restore(ctx, workspace.Restore{ID: c.ID, Event: r, May: may, Record: record}))
}

// mayRestore refuses a restore while the agent, or an agent that it delegated to, is working in the workspace. Call it while
// no command can start in the workspace: an agent that starts later then sees the restored files.
func (s *Service) mayRestore(ctx context.Context, c Restore) error {
	st, err := s.Sessions.Load(ctx, c.ID)
	if err != nil {
		return err
	}
	if _, err := st.MayRestore(c.Action); err != nil {
		return err
	}
	var working []session.ID
	for w, err := range s.Index.Wanting(ctx, nil) {
		if err != nil {
			return err
		}
		if w.Owner == c.User && w.ID != c.ID {
			working = append(working, w.ID)
		}
	}
	for _, id := range working {
		child, err := s.Sessions.Load(ctx, id)
		if errors.Is(err, session.ErrNotFound) || err == nil && child.Created.Parent == "" {
			continue
		}
		for above := child; err == nil && above.Created.Parent != ""; above, err = s.Sessions.Load(ctx, above.Created.Parent) {
			if above.Created.Parent == c.ID {
				return refuse(Conflict, api.CodeConversationRefused, "Conversation "+string(id)+" is working in the same files. Pause or stop it, then restore.")
			}
		}
		if err != nil && !errors.Is(err, session.ErrNotFound) {
			return err
		}
	}
	return nil
}

// Compare is the command to compare the files of two conversations, or of two points of one.
type Compare struct {
	User string
	// ID and Event are compared with OtherID and OtherEvent. Event 0 means the current files.
	ID, OtherID       session.ID
	Event, OtherEvent int64
	// Path selects one file. From is its path on the first side, if it was renamed.
	Path, From string
}

// maxCompared is the number of bytes of a file that are compared.
const maxCompared = 1 << 20

// Compare lists the files that differ.
func (s *Service) Compare(ctx context.Context, c Compare) ([]workspace.FileChange, error) {
	a, b, err := s.compared(ctx, c)
	if err != nil {
		return nil, err
	}
	out, err := s.Workspaces.Compare(ctx, a, b)
	return out, restoreRefusal(err)
}

// CompareFile reads one file on both sides, nil where it does not exist.
func (s *Service) CompareFile(ctx context.Context, c Compare) (original, modified *[]byte, err error) {
	a, b, err := s.compared(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	read := func(f workspace.Files, path string) *[]byte {
		content, found, e := s.Workspaces.FileAt(ctx, f, path, maxCompared+1)
		if e == nil && len(content) > maxCompared {
			e = refuse(Invalid, api.CodeTooLarge, "The file is too large to compare.")
		}
		if err = errors.Join(err, restoreRefusal(e)); e != nil || !found {
			return nil
		}
		return &content
	}
	original, modified = read(a, cmp.Or(c.From, c.Path)), read(b, c.Path)
	return original, modified, err
}

func (s *Service) compared(ctx context.Context, c Compare) (a, b workspace.Files, err error) {
	side := func(id session.ID, event int64) (f workspace.Files, err error) {
		f.ID = id
		if _, err = s.withFiles(ctx, c.User, id); err == nil && event > 0 {
			f.Checkpoint, err = s.checkpointAt(ctx, id, event)
		}
		return f, err
	}
	if c.OtherID == "" {
		c.OtherID = c.ID
	}
	if a, err = side(c.ID, c.Event); err == nil {
		b, err = side(c.OtherID, c.OtherEvent)
	}
	return a, b, err
}

// restoreRefusal turns errors about checkpoints into refusals.
func restoreRefusal(err error) error {
	text := ""
	switch {
	case errors.Is(err, workspace.ErrNoCheckpoints):
		text = "The sandbox driver of this server does not support checkpoints. Start the server with --sandbox docker or --sandbox local to use them."
	case errors.Is(err, workspace.ErrNoCheckpoint):
		text = "There is no checkpoint for this point: it is too old, or the workspace was too large."
	case errors.Is(err, workspace.ErrNone):
		text = "The conversation has no files yet."
	case errors.Is(err, workspace.ErrTooBig):
		text = "The workspace is too large for checkpoints, or the disk is nearly full."
	default:
		return err
	}
	return refuse(Conflict, api.CodeConversationRefused, text)
}

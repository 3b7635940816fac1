package conversation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
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
	// Restore undoes changes of files, and records it.
	Restore(ctx context.Context, r workspace.Restore) error
	// SameFolder reports whether two conversations work in the same folder.
	SameFolder(ctx context.Context, a, b session.State) (bool, error)
	// Compare lists the files that differ, and FileAt reads one of them.
	Compare(ctx context.Context, a, b workspace.Files) ([]workspace.FileChange, error)
	FileAt(ctx context.Context, f workspace.Files, path string, most int64) (content []byte, found bool, err error)
}

// Point is a checkpoint as recorded in the log.
type Point struct {
	session.Checkpointed
	At time.Time
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

// files is what the log says about the states of a workspace.
type files struct {
	points []point
	// at is the index of the state after the event that was asked for, -1 if it is the state in which the workspace was made.
	at int
}

// point is a state of the workspace.
type point struct {
	// event is the event after which the files were in this state, and number the event that says so.
	event, number int64
	checkpoint    int
	// from is the checkpoint of the state before the agent's changes that led to this one, 0 if they are not the agent's. mixed is
	// true if some of them may not be.
	from  int
	mixed bool
}

// filesAt finds the state of the files after an event: the last one before it, what was restored since, or the one of a later
// checkpoint of the agent's changes if no tool ran in between.
func (s *Service) filesAt(ctx context.Context, id session.ID, event int64) (files, error) {
	f := files{at: -1}
	now := 1                    // before the first checkpoint, the state in which the workspace was made
	ran := int64(math.MaxInt64) // the first event after which the files may have been changed
	for e, err := range s.Log.Read(ctx, id, 0) {
		if err != nil {
			return f, err
		}
		p, own := point{number: e.Number}, false
		switch x := e.Payload.(type) {
		case session.Checkpointed:
			if p.event, p.checkpoint, own = x.UpTo, x.Checkpoint, x.BetweenTurns; !own {
				p.from, p.mixed = now, x.Mixed
			}
			if n := len(f.points); n > 0 { // logs of earlier versions have a lower number for changes in the middle of a turn
				p.event = max(p.event, f.points[n-1].event)
			}
		case session.Restored:
			if x.Files {
				p.event, p.checkpoint, p.from = e.Number, x.Checkpoint, x.Before
				if e.Number > event {
					ran = min(ran, e.Number)
				}
			}
		case session.ToolCalled, session.ToolReturned, session.CommandTyped, session.CommandEnded, session.UserSaid:
			if e.Number > event {
				ran = min(ran, e.Number)
			}
		}
		if p.checkpoint == 0 {
			continue
		}
		now = p.checkpoint
		f.points = append(f.points, p)
		if (p.event <= event || p.event < ran && !own) && (f.at < 0 || p.event >= f.points[f.at].event) {
			f.at = len(f.points) - 1
		}
	}
	return f, nil
}

// spans returns the agent's changes after the state, and what was restored since, oldest first.
func (f files) spans() (out []workspace.Span) {
	for _, p := range f.points[f.at+1:] {
		if p.from > 0 && p.from != p.checkpoint {
			out = append(out, workspace.Span{From: p.from, To: p.checkpoint, Mixed: p.mixed})
		}
	}
	return out
}

// since moves the state to before a restore.
func (f files) since(r session.Restored) files {
	f.at = len(f.points) - 1
	for i, p := range slices.Backward(f.points) {
		if p.from == r.Before && p.checkpoint == r.Checkpoint && p.event == p.number {
			f.at = i - 1
			break
		}
	}
	return f
}

// checkpointAt finds the checkpoint with the files as they were after an event.
func (s *Service) checkpointAt(ctx context.Context, id session.ID, event int64) (int, error) {
	f, err := s.filesAt(ctx, id, event)
	if err != nil {
		return 0, err
	}
	number := 1
	if f.at >= 0 {
		number = f.points[f.at].checkpoint
	}
	return number, s.haveCheckpoints(ctx, id, number)
}

// haveCheckpoints refuses if a checkpoint does not exist.
func (s *Service) haveCheckpoints(ctx context.Context, id session.ID, wanted ...int) error {
	numbers, err := s.Workspaces.Checkpoints(ctx, id)
	for _, n := range wanted {
		if err == nil && !slices.Contains(numbers, n) {
			err = workspace.ErrNoCheckpoint
		}
	}
	return restoreRefusal(err)
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
	Own                 Own
}

// Own is what a restore does with files that the user changed too.
type Own = workspace.Own

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
		r.Point, r.Files, r.Conversation = of.Point, of.Files, of.Conversation
	case c.Event > st.Last:
		return Done{}, api.Invalid("less_than_equal", "The conversation has no event with this number.", "event_id")
	case !c.Files && !c.Conversation:
		return Done{}, api.Invalid("value_error", "Restore files, conversation or both.", "files")
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
	spans := func(ctx context.Context) ([]workspace.Span, error) { return s.toUndo(ctx, c, of) }
	return done, restoreRefusal(s.Workspaces.Restore(ctx, workspace.Restore{ID: c.ID, Event: r, Spans: spans, Own: c.Own, May: may, Record: record}))
}

// toUndo returns the changes that a restore undoes. of is the restore that an undo or redo is about.
func (s *Service) toUndo(ctx context.Context, c Restore, of session.Restored) ([]workspace.Span, error) {
	f, err := s.filesAt(ctx, c.ID, c.Event)
	if err != nil {
		return nil, err
	}
	if c.Action != session.RestorePoint {
		f = f.since(of)
	}
	spans := f.spans()
	var wanted []int
	switch {
	case c.Action != session.RestorePoint:
	case f.at >= 0:
		wanted = []int{f.points[f.at].checkpoint}
	default:
		wanted = []int{1}
	}
	for _, span := range spans {
		wanted = append(wanted, span.From, span.To)
	}
	return spans, s.haveCheckpoints(ctx, c.ID, wanted...)
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
	if s.Attempts != nil && s.Attempts.Testing(c.ID) {
		return refuse(Conflict, api.CodeConversationRefused, "The tests of this attempt are running. Wait until they have finished, then restore.")
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
		if errors.Is(err, session.ErrNotFound) {
			continue
		}
		if err == nil {
			if same, e := s.Workspaces.SameFolder(ctx, st, child); e == nil && same {
				return refuse(Conflict, api.CodeConversationRefused, "Conversation "+string(id)+" is working in the same folder. Pause or stop it, then restore.")
			}
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
			const text = "The file is too large to compare. The limit is 1 MB."
			e = &Refusal{Kind: Invalid, Code: api.CodeTooLarge, Text: text, Fields: []api.FieldError{{Loc: []any{"query", "path"}, Msg: text, Type: "too_large"}}}
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
	var own *workspace.OwnError
	switch {
	case errors.As(err, &own):
		return &Refusal{Kind: Conflict, Code: api.CodeRestoreConflict, Text: ownText(own.OwnFiles), Own: &own.OwnFiles}
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

// ownText names the files that the user changed too.
func ownText(own workspace.OwnFiles) string {
	var names []string
	for _, dir := range own.Repositories {
		if dir == "." {
			names = append(names, "the git history of the workspace")
		} else {
			names = append(names, "the git history of "+dir)
		}
	}
	names = append(names, own.Files...)
	if more := own.Count - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return "Nothing was restored, because you changed these files too: " + strings.Join(names, ", ") + ". Keep your versions, or restore them too."
}

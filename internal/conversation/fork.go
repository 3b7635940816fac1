package conversation

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"deckhand/api"
	"deckhand/internal/idempotency"
	"deckhand/internal/session"
	"deckhand/internal/workspace"
)

// Fork is the command to copy a conversation up to an event.
type Fork struct {
	User string
	From session.ID
	// Event is the last event of the copy; 0 is the newest.
	Event int64
	// FilesAtEvent gives the copy the files that the workspace had at the event; otherwise it has those of now.
	FilesAtEvent bool
	// Title is the title of the copy; absent takes the original's.
	Title api.Opt[string]
	// Trigger says who asks for it.
	Trigger string
	// RetryKey is as in Create.
	RetryKey string
}

// Fork makes a copy. It cannot be seen before the one transaction that stores it, and a workspace that was copied for
// nothing is swept away.
func (s *Service) Fork(ctx context.Context, c Fork) (Created, error) {
	row, err := s.Row(ctx, c.User, c.From)
	if err != nil {
		return Created{}, err
	}
	if c.Event > row.Last {
		return Created{}, api.Invalid("less_than_equal", "The conversation has no event with this number.", "event_id")
	}
	title, given := c.Title.Get()
	if title = strings.TrimSpace(title); given {
		if err := checkTitle(title); err != nil {
			return Created{}, err
		}
	}
	id, print := s.NewID(), ""
	if derived := derivedID(c.RetryKey); derived != "" {
		id, print = derived, idempotency.Digest(c.User, "fork", string(c.From), strconv.FormatInt(c.Event, 10), title, strconv.FormatBool(c.FilesAtEvent))
		if again, err := s.existing(ctx, c.User, id, id, print); again != nil || err != nil {
			return value(again), err
		}
	}
	f := session.Fork{Number: c.Event, Title: title, Trigger: c.Trigger, Fingerprint: print}
	top, err := s.forkOf(ctx, row.ID, id, &f)
	if err != nil {
		return Created{}, err
	}
	checkpoint, err := s.forkFiles(ctx, c, top)
	if err != nil {
		return Created{}, err
	}
	var st session.State
	store := func(ctx context.Context) (err error) {
		st, err = s.Sessions.Fork(ctx, row.ID, id, f)
		return err
	}
	if s.Workspaces == nil {
		err = store(ctx)
	} else {
		err = s.Workspaces.CopyAt(ctx, top, id, checkpoint, store)
	}
	switch {
	case errors.Is(err, session.ErrConflict): // another delivery was faster
		again, err := s.existing(ctx, c.User, id, id, print)
		return value(again), err
	case errors.Is(err, workspace.ErrNoCopy):
		text := err.Error()
		return Created{}, refuse(Conflict, api.CodeConversationRefused, strings.ToUpper(text[:1])+text[1:]+".")
	case err != nil:
		return Created{}, restoreRefusal(err)
	}
	return Created{ID: id, Status: st.Status(), New: err == nil}, err
}

// forkOf fills in what the copy has from the original: its tool servers, sealed under its own name, and the facts about the
// workspace, which belongs to the topmost of delegated conversations.
func (s *Service) forkOf(ctx context.Context, from, to session.ID, f *session.Fork) (top session.ID, err error) {
	st, err := s.Sessions.Load(ctx, from)
	if err != nil {
		return "", err
	}
	f.Workspace = st
	for f.Workspace.Created.Parent != "" {
		if f.Workspace, err = s.Sessions.Load(ctx, f.Workspace.Created.Parent); err != nil {
			return "", err
		}
	}
	top = f.Workspace.ID
	if len(st.Created.MCP) == 0 {
		return top, nil
	}
	plain, err := s.Seal.Open(ctx, st.Owner, SealedMCP(top), st.Created.MCP)
	if err != nil {
		return top, err
	}
	f.MCP, err = s.Seal.Seal(ctx, st.Owner, SealedMCP(to), plain)
	return top, err
}

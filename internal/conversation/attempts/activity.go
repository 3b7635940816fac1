package attempts

import (
	"bytes"
	"context"
	"slices"
	"time"

	"deckhand/internal/conversation"
	"deckhand/internal/sandbox"
	"deckhand/internal/session"
)

// activity summarises the events of a fork since its creation.
type activity struct {
	turns int // finished turns
	// ended is true if the last turn ended without an error.
	ended bool
	// worked is the duration of all turns, excluding pauses and pending approvals.
	worked         time.Duration
	messages, uses int  // number of user messages, and of tool and shell uses
	sandbox        bool // the sandbox was started
}

// read reads the events of a fork since its creation.
func (s *Service) read(ctx context.Context, st session.State) (a activity, err error) {
	if st.Created.Forked == nil {
		return a, nil
	}
	var since time.Time
	inTurn := false
	stop := func(at time.Time) {
		if !since.IsZero() {
			a.worked += max(at.Sub(since), 0)
		}
		since = time.Time{}
	}
	for e, err := range s.Conversations.Log.Read(ctx, st.ID, st.Created.Forked.Number) {
		if err != nil {
			return a, err
		}
		switch p := e.Payload.(type) {
		case session.UserSaid:
			a.messages++
		case session.ToolCalled, session.CommandTyped:
			a.uses++
		case session.WorkspaceReady:
			a.sandbox = a.sandbox || len(p.Handle) > 0
		case session.TurnBegan:
			since, inTurn = e.At, true
		case session.Resumed, session.ApprovalGiven:
			if stop(e.At); inTurn {
				since = e.At
			}
		case session.TurnEnded:
			stop(e.At)
			a.turns, a.ended, inTurn = a.turns+1, p.State != session.AgentError, false
		case session.Paused, session.ApprovalAsked:
			stop(e.At)
		case session.Stopped, session.Failed:
			stop(e.At)
			inTurn = false
		}
	}
	stop(time.Now())
	return a, nil
}

// measure returns the size of the changes since the fork, nil if it is unknown.
func (s *Service) measure(ctx context.Context, st session.State, did activity) *Diff {
	if did.uses == 0 || !did.sandbox { // some tools need no sandbox, and without one the start of the turn is unknown to git
		return &Diff{}
	}
	if did.messages == 1 { // the files before this turn are the files at the fork
		if diff := s.measureTurn(ctx, st.ID); diff != nil {
			return diff
		}
	}
	return s.measureFork(ctx, st)
}

// measureTurn counts the changes of the last turn with git, nil if git does not know all files.
func (s *Service) measureTurn(ctx context.Context, id session.ID) *Diff {
	if s.Workspaces == nil {
		return nil
	}
	v, err := s.Workspaces.View(ctx, id)
	if err != nil {
		return nil
	}
	defer v.Close()
	found, err := v.Review(ctx, sandbox.GitRange{Kind: sandbox.RangeTurn})
	if err != nil || !slices.ContainsFunc(found.Repos, func(r sandbox.GitRepo) bool { return len(r.Name) == 0 }) {
		return nil // files outside a repository in a subfolder may have changed too
	}
	out := &Diff{Files: len(found.Files)}
	for _, f := range found.Files {
		out.Added += f.Added
		out.Removed += f.Removed
	}
	return out
}

// measureFork counts the changes since the checkpoint of the fork.
func (s *Service) measureFork(ctx context.Context, st session.State) *Diff {
	if s.Conversations.Workspaces == nil {
		return nil
	}
	at := conversation.Compare{User: st.Owner, ID: st.ID, Event: st.Created.Forked.Number}
	changes, err := s.Conversations.Compare(ctx, at)
	if err != nil {
		return nil
	}
	out := &Diff{}
	for _, c := range changes {
		if inGit(c.Path) {
			continue
		}
		out.Files++
		out.Added += c.Added
		out.Removed += c.Removed
	}
	return out
}

// inGit reports whether a path is in a .git folder.
func inGit(path string) bool {
	for _, part := range bytes.Split([]byte(path), []byte("/")) {
		if string(part) == ".git" {
			return true
		}
	}
	return false
}

package conversation

import (
	"context"
	"errors"
	"strings"
	"time"

	"deckhand/api"
	"deckhand/internal/session"
)

// StoppedByUser is the reason of a stop that the user asked for.
const StoppedByUser = "stopped by the user"

// Start opens a stopped conversation again; on a running one it changes nothing.
func (s *Service) Start(ctx context.Context, user string, id session.ID) (session.State, error) {
	if _, err := s.Row(ctx, user, id); err != nil {
		return session.State{}, err
	}
	if err := s.CheckSettings(ctx, user, nil); err != nil {
		return session.State{}, err
	}
	return s.change(ctx, user, id, session.State.Start)
}

// Stop stops a conversation; stopped is false if it was not running.
func (s *Service) Stop(ctx context.Context, user string, id session.ID, reason string) (st session.State, stopped bool, err error) {
	st, err = s.change(ctx, user, id, func(st session.State) ([]session.Payload, error) {
		out, err := st.Stop(reason)
		stopped = len(out) > 0
		return out, err
	})
	return st, stopped && err == nil, err
}

// Pause halts the agent after the step in progress, or interrupts it now.
func (s *Service) Pause(ctx context.Context, user string, id session.ID, now bool) (session.State, error) {
	rule := session.State.Pause
	if now {
		rule = session.State.PauseNow
	}
	return s.change(ctx, user, id, rule)
}

// Resume lets a paused or failed turn go on, and opens a stopped conversation.
func (s *Service) Resume(ctx context.Context, user string, id session.ID) error {
	_, err := s.change(ctx, user, id, session.State.Resume)
	return err
}

// Rename gives a conversation a title.
func (s *Service) Rename(ctx context.Context, user string, id session.ID, title string) error {
	if err := checkTitle(title); err != nil {
		return err
	}
	_, err := s.change(ctx, user, id, func(st session.State) ([]session.Payload, error) { return st.Rename(title) })
	return err
}

func checkTitle(title string) error {
	if strings.TrimSpace(title) == "" {
		return api.Invalid("string_too_short", "title must not be blank.", "title")
	}
	return nil
}

// Delete removes a conversation with its feedback, its sandbox and its workspace.
func (s *Service) Delete(ctx context.Context, user string, id session.ID) error {
	err := s.remove(ctx, user, id, session.State.Delete)
	if errors.Is(err, session.ErrCorrupt) || errors.Is(err, session.ErrNewer) { // what cannot be read can still be deleted
		var row session.Row
		if row, err = s.Row(ctx, user, id); err == nil {
			err = s.Sessions.Bury(ctx, row)
		}
		s.cleanUp(id, err)
	}
	return err
}

// Expire is Delete for a conversation that has not changed since before. One that works or has changed is kept, and so
// is one that cannot be read, which an administrator may want to repair.
func (s *Service) Expire(ctx context.Context, id session.ID, before time.Time) (deleted bool, err error) {
	row, err := s.Index.Row(ctx, id)
	if err != nil || row.Deleted || row.Wants || !row.UpdatedAt.Before(before) {
		return false, err
	}
	err = s.remove(ctx, row.Owner, id, func(st session.State) ([]session.Payload, error) {
		deleted = false // the rule is asked again if another server was faster
		if st.Wants() || !st.UpdatedAt.Before(before) {
			return nil, nil
		}
		deleted = true
		return st.Delete()
	})
	if errors.Is(err, session.ErrNotFound) || errors.Is(err, session.ErrDeleted) {
		return false, nil // by the user, or another server
	}
	return deleted && err == nil, err
}

// remove deletes a conversation by a rule, with what is stored beside it.
func (s *Service) remove(ctx context.Context, user string, id session.ID, rule func(session.State) ([]session.Payload, error)) error {
	for _, beside := range []Feedback{s.Feedback, s.Attempts} { // first, so that the conversation still exists if the caller must retry
		if beside == nil {
			continue
		}
		if _, err := s.Row(ctx, user, id); err != nil {
			return err
		}
		if err := beside.Forget(ctx, string(id)); err != nil {
			return err
		}
	}
	_, err := s.change(ctx, user, id, rule)
	s.cleanUp(id, err)
	return err
}

// cleanUp has the workspace of a conversation removed, if it was deleted without an error.
func (s *Service) cleanUp(id session.ID, err error) {
	if err == nil && s.Workspaces != nil {
		s.Workspaces.Wake(id)
	}
}

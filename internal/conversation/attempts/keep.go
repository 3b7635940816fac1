package attempts

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"deckhand/api"
	"deckhand/internal/conversation"
	"deckhand/internal/queue"
	"deckhand/internal/session"
)

// noAttempt returns the refusal for an unknown attempt.
func noAttempt() *conversation.Refusal {
	return refuse(conversation.NotFound, api.CodeConversationNotFound, "Attempt not found")
}

// find returns an attempt of a user's conversation.
func (s *Service) find(ctx context.Context, user string, from, id session.ID) (a Attempt, err error) {
	if _, err := s.Conversations.Row(ctx, user, from); err != nil {
		return a, err
	}
	all, err := s.all(ctx, from)
	if err != nil {
		return a, err
	}
	for _, a := range all {
		if a.ID == id && a.State != Deleting {
			return a, nil
		}
	}
	return a, noAttempt()
}

// Keep keeps one attempt and deletes the conversations of the other attempts in its set. It stores the choice first, so
// that the worker can delete the others after a restart.
func (s *Service) Keep(ctx context.Context, user string, from, id session.ID) (deleted []session.ID, err error) {
	keep, err := s.find(ctx, user, from, id)
	if err != nil {
		return nil, err
	}
	if keep.State == Starting || keep.State == Failed {
		return nil, refuse(conversation.Conflict, api.CodeConversationRefused, "The attempt has not started, so it cannot be kept.")
	}
	if _, err := s.Conversations.Row(ctx, user, id); err != nil { // it was deleted
		return nil, noAttempt()
	}
	var others []Attempt
	err = s.Store.Update(ctx, func(tx queue.Tx) error {
		others = nil
		items, err := tx.Page(string(from), math.MaxInt64, Max)
		if err == nil && !slices.ContainsFunc(items, func(it queue.Item) bool { a := attemptOf(it); return a.ID == id && a.State != Deleting }) {
			return noAttempt() // another one was kept at the same time
		}
		for _, it := range items {
			a := attemptOf(it)
			switch {
			case err != nil:
				return err
			case a.Set != keep.Set:
				continue
			case a.ID == id:
				a.State, a.next = Kept, time.Time{}
			default:
				a.State, a.next = Deleting, queue.Now().Add(startTime)
				others = append(others, a)
			}
			if _, err = tx.Put(a.item()); err == nil {
				err = queue.Arm(tx, laneOf(a.ID), a.User, queue.Gate{})
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	s.unwatch(keep)
	for _, a := range others {
		if e := s.discard(ctx, a); e != nil { // the worker tries again
			err = errors.Join(err, e)
			continue
		}
		deleted = append(deleted, a.ID)
	}
	return deleted, err
}

// Retest runs the test command of an attempt again.
func (s *Service) Retest(ctx context.Context, user string, from, id session.ID) error {
	a, err := s.find(ctx, user, from, id)
	if err != nil {
		return err
	}
	st, err := s.Conversations.Sessions.Load(ctx, id)
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		return err
	}
	no := func(text string) error { return refuse(conversation.Conflict, api.CodeConversationRefused, text) }
	switch {
	case a.Test == "":
		return no("These attempts have no test command.")
	case a.State != Started || st.Deleted || !st.Exists():
		return no("Tests can run only in a started attempt, before an attempt of the set is kept.")
	case a.Running:
		return no("The tests are already running.")
	case st.Busy():
		return no("The agent is working. The tests run when it has finished.")
	}
	_, _, err = s.change(ctx, a, func(now *Attempt) {
		if now.State == Started {
			now.Again, now.next = true, queue.Now()
		}
	})
	s.wake()
	return err
}

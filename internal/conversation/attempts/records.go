package attempts

import (
	"context"
	"encoding/json"
	"math"
	"slices"

	"deckhand/internal/queue"
	"deckhand/internal/session"
)

// laneOf returns the queue lane of an attempt. Work in a lane is done one item at a time.
func laneOf(id session.ID) string { return string(id) }

// item returns the queue item for the attempt.
func (a Attempt) item() queue.Item {
	body, _ := json.Marshal(a.Spec) // strings and numbers can always be encoded
	details, _ := json.Marshal(a.Progress)
	return queue.Item{Owner: string(a.From), Seq: a.seq, ID: string(a.ID), Lane: laneOf(a.ID), Session: string(a.ID), Kind: "attempt", State: string(a.State),
		Open: a.State == Starting || a.State == Started || a.State == Deleting, Attempts: a.tries, CreatedAt: a.At, NextAt: a.next, Body: body, Details: details}
}

func attemptOf(it queue.Item) Attempt {
	a := Attempt{ID: session.ID(it.ID), State: State(it.State), At: it.CreatedAt, seq: it.Seq, tries: it.Attempts, next: it.NextAt}
	_ = json.Unmarshal(it.Body, &a.Spec) // written by item
	_ = json.Unmarshal(it.Details, &a.Progress)
	return a
}

// push stores new attempts of one set, without changing those that are already stored. It returns all attempts of the set.
// most is the maximum number of attempts of the conversation.
func (s *Service) push(ctx context.Context, set []Attempt, most int) (stored []Attempt, tooMany bool, err error) {
	owner := string(set[0].From)
	err = s.Store.Update(ctx, func(tx queue.Tx) error {
		stored, tooMany = nil, false
		has, err := tx.Page(owner, math.MaxInt64, most+1)
		if err != nil {
			return err
		}
		there := slices.ContainsFunc(has, func(it queue.Item) bool { return it.ID == string(set[0].ID) })
		if tooMany = !there && len(has)+len(set) > most; tooMany {
			return nil
		}
		if len(has) == 0 {
			if err := tx.RemoveOwner(owner); err != nil {
				return err
			}
			if err := tx.AddOwner(owner, set[0].User); err != nil {
				return err
			}
		}
		for _, a := range set {
			it, _, added, err := queue.Push(tx, a.item(), a.User, queue.Gate{})
			if err == nil && !added {
				var found bool
				if it, found, err = tx.Find(owner, string(a.ID)); err == nil && !found {
					continue // deleted in the meantime
				}
			}
			if err != nil {
				return err
			}
			stored = append(stored, attemptOf(it))
		}
		return nil
	})
	return stored, tooMany, err
}

// all lists the attempts of a conversation, oldest first.
func (s *Service) all(ctx context.Context, from session.ID) (out []Attempt, err error) {
	if s.Store == nil {
		return nil, nil
	}
	err = s.Store.View(ctx, func(tx queue.Tx) error {
		out = nil
		items, err := tx.Page(string(from), math.MaxInt64, Max)
		for _, it := range items {
			out = append(out, attemptOf(it))
		}
		return err
	})
	slices.Reverse(out)
	return out, err
}

// open lists attempts that may need work: the one with the given conversation, or all if id is "".
func (s *Service) open(ctx context.Context, id session.ID) (out []Attempt, err error) {
	err = s.Store.View(ctx, func(tx queue.Tx) error {
		out = nil
		items, err := tx.Opened(string(id))
		for _, it := range items {
			out = append(out, attemptOf(it))
		}
		return err
	})
	return out, err
}

// change updates a stored attempt and returns it; found is false if it was removed. The function may be called more than once.
func (s *Service) change(ctx context.Context, a Attempt, change func(*Attempt)) (now Attempt, found bool, err error) {
	err = s.Store.Update(ctx, func(tx queue.Tx) error {
		it, is, err := tx.Find(string(a.From), string(a.ID))
		if found = is; err != nil || !is {
			return err
		}
		now = attemptOf(it)
		change(&now)
		if _, err := tx.Put(now.item()); err != nil {
			return err
		}
		return queue.Arm(tx, laneOf(now.ID), now.User, queue.Gate{})
	})
	return now, found, err
}

// remove removes attempts.
func (s *Service) remove(ctx context.Context, list ...Attempt) error {
	err := s.Store.Update(ctx, func(tx queue.Tx) error {
		for _, a := range list {
			it, found, err := tx.Find(string(a.From), string(a.ID))
			if err == nil && found {
				err = drop(tx, it, a.User)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	s.unwatch(list...)
	return err
}

func drop(tx queue.Tx, it queue.Item, user string) error {
	if err := tx.Remove(it); err != nil {
		return err
	}
	return queue.Arm(tx, it.Lane, user, queue.Gate{})
}

// Forget removes the stored attempts of a deleted conversation. The conversations of the attempts are not deleted.
func (s *Service) Forget(ctx context.Context, id string) error {
	list, err := s.all(ctx, session.ID(id))
	if err != nil || len(list) == 0 {
		return err
	}
	err = s.Store.Update(ctx, func(tx queue.Tx) error {
		if err := tx.RemoveOwner(id); err != nil {
			return err
		}
		for _, a := range list {
			if err := queue.Arm(tx, laneOf(a.ID), a.User, queue.Gate{}); err != nil {
				return err
			}
		}
		return nil
	})
	s.unwatch(list...)
	return err
}

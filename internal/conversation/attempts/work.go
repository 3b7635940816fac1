package attempts

import (
	"context"
	"errors"
	"time"

	"deckhand/internal/conversation"
	"deckhand/internal/queue"
	"deckhand/internal/session"
)

func (s *Service) wake() {
	select {
	case s.added <- struct{}{}:
	default: // a signal is already pending
	}
}

// watch makes the worker check a conversation now, and after each new event.
func (s *Service) watch(a Attempt) {
	s.mu.Lock()
	s.watched[a.ID], s.grown[a.ID] = a.User, true
	s.mu.Unlock()
	s.wake()
}

func (s *Service) unwatch(list ...Attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range list {
		delete(s.watched, a.ID)
		delete(s.grown, a.ID)
	}
}

// Appended implements session.Observer.
func (s *Service) Appended(id session.ID, _ int64) {
	s.mu.Lock()
	_, mine := s.watched[id]
	if mine {
		s.grown[id] = true
	}
	s.mu.Unlock()
	if mine {
		s.wake()
	}
}

// Run runs the worker until ctx ends. The next Run continues unfinished work.
func (s *Service) Run(ctx context.Context) error {
	for !s.takeUp(ctx) {
		if !queue.Pause(ctx) {
			return nil
		}
	}
	r := queue.Runner{Member: s.Member, Store: s.Store, Logger: s.Logger, AtOnce: atOnce, PerUser: perUser, Work: s.work, More: s.ready, Added: s.added}
	return r.Run(ctx)
}

// takeUp continues the work of an earlier server: it watches started attempts, and immediately continues starting the others.
func (s *Service) takeUp(ctx context.Context) bool {
	found, err := s.open(ctx, "")
	for _, a := range found {
		if err != nil {
			break
		}
		if a.State == Started {
			s.watch(a)
		}
		if !a.next.IsZero() {
			_, _, err = s.change(ctx, a, func(now *Attempt) {
				if !now.next.IsZero() {
					now.next = queue.Now()
				}
			})
		}
	}
	s.complain(ctx, "cannot read attempts", err)
	return err == nil
}

// ready lists watched conversations with new events whose agent is not working. Tests may take long, so it lists at most
// perUser conversations per user at a time.
func (s *Service) ready(room int, busy func(lane string) bool) []queue.Lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []queue.Lane
	at := map[string]int{}
	for id, user := range s.watched {
		if busy(laneOf(id)) {
			at[user]++
		}
	}
	for id := range s.grown {
		if st, known := s.Conversations.Sessions.Peek(id); known && st.Busy() {
			delete(s.grown, id) // there will be another event when the turn ends
			continue
		}
		lane := queue.Lane{Name: laneOf(id), User: s.watched[id]}
		if len(out) < room && at[lane.User] < perUser && !busy(lane.Name) {
			at[lane.User]++
			out = append(out, lane)
		}
	}
	return out
}

// work does the next steps of an attempt.
func (s *Service) work(ctx context.Context, l queue.Lane) (released bool) {
	id := session.ID(l.Name)
	s.mu.Lock()
	delete(s.grown, id) // later events add it again
	s.mu.Unlock()
	found, err := s.open(ctx, id)
	if err == nil && len(found) == 0 {
		err = s.Store.Update(ctx, func(tx queue.Tx) error { return queue.Arm(tx, l.Name, l.User, queue.Gate{}) })
		s.unwatch(Attempt{ID: id})
	}
	for _, a := range found {
		if err == nil {
			err = s.advance(ctx, a)
		}
	}
	if err != nil {
		s.complain(ctx, "cannot work on an attempt", err)
		queue.Pause(ctx)
		s.Appended(id, 0)
	}
	return false
}

func (s *Service) advance(ctx context.Context, a Attempt) error {
	switch a.State {
	case Deleting:
		return s.discard(ctx, a)
	case Started:
		return s.finish(ctx, a)
	}
	err := s.begin(ctx, a)
	refused := conversation.RefusalOf(err)
	switch {
	case err == nil || ctx.Err() != nil:
		return nil
	case refused != nil && refused.RetryAfter > 0: // the queue of conversations is full
		return s.later(ctx, a, refused.RetryAfter)
	case refused != nil:
		return s.failed(ctx, a, refused.Text)
	case a.tries+1 >= maxTries:
		s.complain(ctx, "cannot start an attempt", err)
		return s.failed(ctx, a, "The server could not start this attempt; see the server log.")
	}
	_, _, failure := s.change(ctx, a, func(now *Attempt) {
		if now.State == Starting {
			now.tries++
			now.next = queue.Now().Add(time.Second << now.tries)
		}
	})
	return errors.Join(err, failure)
}

// finish measures the changes of an attempt whose turn has ended, and runs its tests.
func (s *Service) finish(ctx context.Context, a Attempt) error {
	st, err := s.Conversations.Sessions.Load(ctx, a.ID)
	if errors.Is(err, session.ErrNotFound) || err == nil && st.Deleted {
		return s.remove(ctx, a)
	}
	if err != nil || st.Busy() {
		return err
	}
	did, err := s.read(ctx, st)
	if err != nil {
		return err
	}
	if did.turns > a.Turns {
		diff := s.measure(ctx, st, did)
		if ctx.Err() != nil {
			return nil
		}
		if a, _, err = s.change(ctx, a, func(now *Attempt) { now.Turns, now.Worked, now.Diff = did.turns, did.worked, diff }); err != nil {
			return err
		}
	}
	if a.State == Started && a.testDue(did, st) {
		return s.test(ctx, a, st, did.turns)
	}
	return nil
}

// testDue reports whether the test command must be run, or the result of a run must be fetched.
func (a Attempt) testDue(did activity, st session.State) bool {
	if a.Test == "" || st.Busy() {
		return false
	}
	return a.Running || a.Again || did.turns > a.Tested && did.ended
}

func (s *Service) complain(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		s.Logger.Error(what, "error", err)
	}
}

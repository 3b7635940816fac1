package workspace

import (
	"context"
	"errors"
	"sync"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/session"
)

// stepEvery is how often a step's message may change in the log: a pull reports progress many
// times a second, and the log is permanent.
const stepEvery = 2 * time.Second

// steps writes a start's progress into the log, without holding it up.
type steps struct {
	k  *Keeper
	id session.ID

	mu      sync.Mutex
	next    *sandbox.Progress
	step    sandbox.Step
	last    time.Time
	writing bool
	ended   bool
	writers sync.WaitGroup
}

// tell is the driver's progress function: it never blocks.
func (s *steps) tell(p sandbox.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || p.Step == s.step && time.Since(s.last) < stepEvery {
		return
	}
	s.step, s.last, s.next = p.Step, time.Now(), &p
	if !s.writing {
		s.writing = true
		s.writers.Go(s.write)
	}
}

func (s *steps) write() {
	for {
		s.mu.Lock()
		p := s.next
		s.next = nil
		if p == nil {
			s.writing = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		_, err := s.k.Sessions.Update(s.k.ctx, s.id, func(st session.State) ([]session.Payload, error) {
			if st.Claim == 0 || st.Stopped || st.Failed {
				return nil, nil
			}
			return st.Progressed(st.Claim, session.WorkspaceStep{Step: string(p.Step), Message: p.Message})
		})
		if err != nil && s.k.ctx.Err() == nil && !errors.Is(err, session.ErrRefused) && !errors.Is(err, session.ErrDeleted) {
			s.k.Logger.Error("cannot record the progress of a start", "session", s.id, "error", err)
		}
	}
}

// end waits until everything is written, so that no step follows the end of the start.
func (s *steps) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.writers.Wait()
}

// any reports whether there was progress: a sandbox that is found running makes none.
func (s *steps) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.step != ""
}

// clearStep takes back that a sandbox is being started, when it could not be: a
// session that did not wait for it goes on as it was.
func (k *Keeper) clearStep(id session.ID) {
	_, err := k.Sessions.Update(k.ctx, id, func(s session.State) ([]session.Payload, error) {
		if s.Claim == 0 || !s.Ready || s.Step == "" {
			return nil, nil
		}
		return []session.Payload{session.WorkspaceReady{}}, nil
	})
	if err != nil && k.ctx.Err() == nil {
		k.Logger.Debug("cannot record the end of a start", "session", id, "error", err)
	}
}

// maxCleared is how many sessions clearSteps looks at.
const maxCleared = 100_000

// clearSteps clears the start progress of sessions without a loop: the server that was starting
// the sandbox has ended. Other sessions are taken up by a loop, which does the same.
func (k *Keeper) clearSteps(ctx context.Context) {
	ids, err := k.Index.Idle(ctx, time.Now(), maxCleared)
	if err != nil {
		if ctx.Err() == nil {
			k.Logger.Error("cannot look for unfinished starts", "error", err)
		}
		return
	}
	for _, id := range ids {
		row, err := k.Index.Row(ctx, id)
		k.mu.Lock()
		used := k.places[id] != nil
		k.mu.Unlock()
		if err == nil && row.Step != "" && !used {
			k.clearStep(id)
		}
	}
}

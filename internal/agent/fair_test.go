package agent_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"deckhand/internal/agent"
	"deckhand/internal/llm/scripted"
	"deckhand/internal/session"
)

// starts remembers in which order sessions are taken up by a single starter, and
// can hold it up.
type starts struct {
	mu      sync.Mutex
	order   []session.ID
	blocker session.ID
	blocked chan struct{} // closed when the blocker is taken up
	release chan struct{}
}

func (s *starts) profile(_ context.Context, st session.State) (agent.Profile, error) {
	s.mu.Lock()
	s.order = append(s.order, st.ID)
	wait := st.ID == s.blocker
	s.mu.Unlock()
	if wait {
		close(s.blocked)
		<-s.release
	}
	return profile(scripted.New(scripted.Demo)), nil
}

// place is how many sessions were taken up before this one since the blocker was.
func (s *starts) place(id session.ID) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := s.order[max(slices.Index(s.order, s.blocker), 0):]
	for i, known := range slices.Backward(since) { // the last time
		if known == id {
			return i
		}
	}
	return -1
}

func (r *rig) createFor(owner string, id session.ID) session.ID {
	r.t.Helper()
	if _, err := r.sessions.Create(r.t.Context(), id, session.Created{Owner: owner}, &session.UserSaid{Text: "hello"}); err != nil {
		r.t.Fatal(err)
	}
	return id
}

func oneStarter(r *rig, s *starts) {
	s.blocked, s.release = make(chan struct{}), make(chan struct{})
	r.profile = s.profile
	r.more = func(c *agent.Config) { c.Starters = 1 }
}

// A thousand new conversations of one person hold up neither the messages to running
// conversations, nor a message to one of the new ones, nor another person's conversation.
func TestBacklogHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	r, s := newRig(t), &starts{blocker: "blocker"}
	oneStarter(r, s)
	r.start()
	running := r.createFor("ada", "running")
	r.until(running, "the first answer", answered)
	r.createFor("ada", s.blocker)
	<-s.blocked
	for i := range 1000 {
		r.createFor("ada", session.ID(fmt.Sprintf("burst-%04d", i)))
	}
	bobs := r.createFor("bob", "bobs")
	late := session.ID("burst-0900")
	for _, id := range []session.ID{running, late} {
		r.update(id, func(st session.State) ([]session.Payload, error) { return st.Say(session.UserSaid{Text: "and now?"}) })
	}
	close(s.release)
	r.until("burst-0999", "the last answer", answered)
	for _, id := range []session.ID{bobs, running, late} {
		r.until(id, "an answer", answered)
		// Not taken up anew (-1) means that the worker of the first message was still there.
		if at := s.place(id); at > 5 || at < 1 && id != running {
			t.Errorf("%s was number %d", id, at)
		}
	}
}

// After a restart the sessions come from the index, the oldest first. There too
// owners take turns.
func TestRestartHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	r, s := newRig(t), &starts{}
	oneStarter(r, s)
	for i := range 1000 {
		r.createFor("ada", session.ID(fmt.Sprintf("burst-%04d", i)))
	}
	bobs := r.createFor("bob", "bobs")
	r.start()
	r.until("burst-0999", "the last answer", answered)
	r.until(bobs, "an answer", answered)
	if at := s.place(bobs); at < 0 || at > 2 {
		t.Errorf("it was number %d", at)
	}
}

package agent_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"deckhand/internal/agent"
	"deckhand/internal/llm"
	"deckhand/internal/session"
)

// dear is a model of which a call may cost a few dollars.
func dear(m llm.Model) func(context.Context, session.State) (agent.Profile, error) {
	return func(context.Context, session.State) (agent.Profile, error) {
		p := profile(m)
		p.Info.Price, p.Info.Priced, p.Info.MaxOutput = llm.Price{Input: 1, Output: 1000}, true, 1000
		return p, nil
	}
}

// One conversation's call is in the way of another's until it is settled: both
// are of the same user.
func TestUsersLimitHoldsOverConversations(t *testing.T) {
	r := newRig(t)
	now := time.Date(2026, 11, 30, 23, 0, 0, 0, time.UTC)
	r.sessions = session.New(r.log, session.WithUserLimit(1.5e9), session.WithClock(func() time.Time { return now }))
	r.sessions.Observe(r)
	m := newGate()
	r.profile = dear(m)
	r.start()
	first := r.create("one")
	<-m.asked
	second := r.create("two")
	st := r.until(second, "the end of its turn", func(s session.State) bool { return s.ErrorID != "" })
	if st.ErrorID != "STATUS$ERROR_USER_BUDGET" || st.Agent != session.AgentError || !strings.Contains(st.Reason, "$1.50 for November 2026") ||
		!strings.Contains(st.Reason, "resets on 1 December 2026 (UTC). Ask the operator") {
		t.Errorf("%s %s: %s", st.Agent, st.ErrorID, st.Reason)
	}
	m.release <- nil
	r.until(first, "an answer", answered)
	r.update(second, session.State.Resume)
	<-m.asked
	m.release <- nil
	r.until(second, "an answer, too", answered)
	for _, id := range []session.ID{first, second} {
		if n := count[session.ModelAsked](r.events(id)); n != 1 {
			t.Errorf("%d calls", n)
		}
	}
	spent, err := r.log.Spending(t.Context(), "ada", "2026-11")
	if err != nil || spent.Reserved != 0 {
		t.Errorf("%+v: %v", spent, err)
	}
}

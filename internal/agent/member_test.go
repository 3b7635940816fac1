package agent_test

import (
	"context"
	"testing"

	"deckhand/internal/agent"
	"deckhand/internal/cluster"
	"deckhand/internal/session"
)

// pair is two members on one log, each with its own view of the sessions.
func pair(t *testing.T) (a, b *rig) {
	members := cluster.NewMemory(0, nil)
	a, b = newRig(t), newRig(t)
	b.log = a.log
	b.sessions = session.New(faulty{b.log, &b.fault})
	b.sessions.Observe(b)
	for name, r := range map[string]*rig{"a": a, "b": b} {
		announcer := cluster.Announcer{Wakes: members, Member: name}
		r.sessions.Observe(announcer)
		r.sessions.Watch(announcer)
		r.more = func(c *agent.Config) { c.Member, c.Leases, c.Wakes = name, members, members }
	}
	return a, b
}

func claims(events []session.Payload) (by []string) {
	for _, p := range events {
		if c, ok := p.(session.Claimed); ok {
			by = append(by, c.By)
		}
	}
	return by
}

// A message that arrives at another member is answered by the one that holds the session.
func TestMessageReachesTheHolder(t *testing.T) {
	a, b := pair(t)
	a.start()
	id := a.create("one")
	a.until(id, "an answer", answered)
	b.start()
	for range 3 {
		b.update(id, func(s session.State) ([]session.Payload, error) { return s.Say(session.UserSaid{Text: "two"}) })
		a.until(id, "an answer to the message", answered)
	}
	if by := claims(a.events(id)); len(by) != 1 || by[0] != "a" {
		t.Errorf("claimed by %q", by)
	}
	// What is stopped has no holder: one of them takes it when it starts again.
	b.update(id, func(s session.State) ([]session.Payload, error) { return s.Stop("") })
	b.update(id, func(s session.State) ([]session.Payload, error) { return s.Say(session.UserSaid{Text: "three"}) })
	b.until(id, "an answer after the start", func(s session.State) bool { return answered(s) && s.Status() == session.Running })
	if by := claims(a.events(id)); len(by) != 2 {
		t.Errorf("claimed by %q", by)
	}
}

// A person interrupts a call through another member than the one that makes it.
func TestInterruptReachesTheHolder(t *testing.T) {
	a, b := pair(t)
	m := newGate()
	a.profile = func(context.Context, session.State) (agent.Profile, error) { return profile(m), nil }
	a.start()
	id := a.create("go")
	<-m.asked
	b.start() // not before: it may take sessions without a holder as well
	b.update(id, func(s session.State) ([]session.Payload, error) { return s.Stop("enough") })
	<-m.aborted
}

// A member that stops leaves its sessions to the others, which make its open call again.
func TestReleasedSessionIsTakenOver(t *testing.T) {
	a, b := pair(t)
	m := newGate()
	a.profile = func(context.Context, session.State) (agent.Profile, error) { return profile(m), nil }
	stop := a.start()
	id := a.create("go")
	<-m.asked
	b.start()
	// b has seen the session and left it alone.
	b.update(id, func(s session.State) ([]session.Payload, error) { return s.Rename("Renamed") })
	stop()
	b.until(id, "an answer of the other member", answered)
	events := b.events(id)
	if by := claims(events); len(by) != 2 || by[0] != "a" || by[1] != "b" {
		t.Errorf("claimed by %q", by)
	}
	if n := count[session.ModelFailed](events); n != 1 {
		t.Errorf("the open call was settled %d times", n)
	}
}

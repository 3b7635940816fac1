package agent_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"deckhand/internal/admission"
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

// sharing is member a of several, in virtual time. Its gate has one slot. It waits for less time than passes between two sweeps.
func sharing(t *testing.T) (a *rig, gate *admission.Gate, publish func(cluster.Wake)) {
	members := cluster.NewMemory(0, nil)
	gate = admission.New(admission.Limits{Running: 1, RunningPerUser: 1, Queued: 10, QueuedPerUser: 10})
	gate.Join("a", true)
	a = newRig(t)
	a.patience = 10 * time.Second
	a.more = func(c *agent.Config) { c.Member, c.Leases, c.Wakes, c.Admission = "a", members, members, gate }
	return a, gate, members.Publish
}

// update is what server b publishes about a session.
func update(i admission.Item) admission.Update {
	return admission.Update{From: "b", Slots: 1, Items: []admission.Item{i}}
}

// A conversation that was stopped and continued while another server still reported it as its own runs as soon as that one corrects this.
func TestContinuedBeforeTheOtherServerReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, gate, _ := sharing(t)
		a.start()
		id := a.create("one")
		a.until(id, "an answer", answered)
		a.update(id, func(s session.State) ([]session.Payload, error) { return s.Stop("enough") })
		synctest.Wait()
		gate.Receive(update(admission.Item{ID: id, Owner: "ada"}))
		a.say(id, "two")
		synctest.Wait()
		if n := count[session.Claimed](a.events(id)); n != 1 {
			t.Errorf("it was claimed %d times", n)
		}
		gate.Receive(update(admission.Item{ID: id, Gone: true}))
		a.until(id, "an answer to the second message", func(s session.State) bool { return answered(s) && s.Status() == session.Running })
	})
}

// An old notification that another server works on a conversation does not take it out of the queue.
func TestOldNotificationOfAnotherHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, gate, publish := sharing(t)
		a.start()
		gate.Enter(admission.Entry{ID: "other", Root: "other", Owner: "bob"})
		id := a.create("one")
		synctest.Wait()
		publish(cluster.Wake{Kind: cluster.RowChanged, From: "b", Session: id, Last: 1, Owner: "ada", Holder: "b"})
		synctest.Wait()
		if !gate.Waits(id) {
			t.Error("it does not wait any more")
		}
		gate.Leave("other")
		a.until(id, "an answer", answered)
	})
}

// A server that is asked to work on a conversation does so, also if it was about to leave it to another one.
func TestAskedWhileItGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, publish := sharing(t)
		before, asked, goOn := a.more, make(chan struct{}), make(chan struct{})
		var first sync.Once
		a.more = func(c *agent.Config) {
			before(c)
			c.MayTake = func(context.Context, session.State) (err error) {
				first.Do(func() {
					close(asked)
					<-goOn
					err = session.ErrRefused
				})
				return err
			}
		}
		a.start()
		id := a.create("one")
		<-asked
		publish(cluster.Wake{Kind: cluster.Take, From: "b", To: "a", Session: id, Owner: "ada"})
		synctest.Wait()
		close(goOn)
		a.until(id, "an answer", answered)
	})
}

package agent_test

import (
	"context"
	"testing"
	"time"

	"deckhand/internal/admission"
	"deckhand/internal/agent"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/session"
)

// onePlace lets one conversation run at a time.
func onePlace(r *wired) *admission.Gate {
	gate := admission.New(admission.Limits{Running: 1, RunningPerUser: 1, Queued: 100, QueuedPerUser: 100})
	r.more = func(c *agent.Config) { c.Admission = gate }
	return gate
}

// free is true for a gate that nobody runs or waits at.
func free(g *admission.Gate) bool { now := g.Status(); return now.Running+now.Waiting == 0 }

// eventually waits for something that is not in the log.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("no %s", what)
		}
	}
}

// A conversation that waits for an approval has no slot, with a deadline or without one. After the approval it
// waits for one.
func TestApprovalFreesThePlace(t *testing.T) {
	r, say := asking(t, calls(called("a", "say", `{"text":"one"}`)), done("ok"))
	gate := onePlace(r)
	r.start()
	asks := r.create("go")
	r.awaiting(asks)
	eventually(t, "free place", func() bool { return free(gate) })
	gate.Enter(admission.Entry{ID: "other", Root: "other", Owner: "bob"})
	r.decide(asks, session.ApprovalGiven{Approved: true})
	eventually(t, "place in the queue", func() bool { return gate.Waits(asks) })
	if n := len(say.calls()); n != 0 {
		t.Errorf("%d calls without a place", n)
	}
	gate.Leave("other")
	r.until(asks, "the end", finished)
	if n := len(say.calls()); n != 1 {
		t.Errorf("%d calls", n)
	}
	eventually(t, "free place", func() bool { return free(gate) })
}

// A delegated task runs in the slot of the conversation that waits for it.
func TestDelegatedTaskNeedsNoPlace(t *testing.T) {
	r := family(t, once(delegates("task: count the files", ""), done("ok")), once(llmtest.Reply{Text: "There are 12."}))
	gate := onePlace(r)
	r.start()
	id := r.create("go")
	r.until(id, "the end", finished)
	if got := all[session.ToolReturned](r.rig, id)[0]; got.Output != "There are 12." {
		t.Errorf("%+v", got)
	}
	eventually(t, "free place", func() bool { return free(gate) })
}

// Stopping or deleting a queued conversation takes it out of the queue.
func TestQueuedConversations(t *testing.T) {
	r := chat(t, llmtest.Reply{Text: "done"})
	gate := onePlace(r)
	r.start()
	gate.Enter(admission.Entry{ID: "other", Root: "other", Owner: "bob"})
	stopped, deleted, waits := r.create("one"), r.create("two"), r.create("three")
	for _, id := range []session.ID{stopped, deleted, waits} {
		eventually(t, "place in the queue", func() bool { return gate.Waits(id) })
		if st, err := r.sessions.Load(t.Context(), id); err != nil || st.Claim > 0 || st.InTurn {
			t.Errorf("it was taken up without a place: %+v %v", st, err)
		}
	}
	r.update(stopped, func(s session.State) ([]session.Payload, error) { return s.Stop("enough") })
	r.update(deleted, session.State.Delete)
	r.say(waits, "and more")
	for _, id := range []session.ID{stopped, deleted} {
		eventually(t, "end of waiting", func() bool { return !gate.Waits(id) })
	}
	if now := gate.Status(); now.Waiting != 1 {
		t.Errorf("%+v", now)
	}
	gate.Leave("other")
	r.until(waits, "the answer", answered)
	r.say(stopped, "go on")
	r.until(stopped, "the answer", answered)
	eventually(t, "free place", func() bool { return free(gate) })
}

// A conversation that another server should work on does not wait for a slot of this one.
func TestPlacedBeforeItWaits(t *testing.T) {
	r := chat(t, llmtest.Reply{Text: "done"})
	gate := admission.New(admission.Limits{Running: 1, RunningPerUser: 1, Queued: 100, QueuedPerUser: 100})
	asked, here := make(chan session.ID, 10), make(chan struct{})
	r.more = func(c *agent.Config) {
		c.Admission = gate
		c.MayTake = func(_ context.Context, st session.State) error {
			select {
			case <-here:
				return nil
			default:
			}
			asked <- st.ID
			return session.ErrRefused
		}
	}
	r.start()
	gate.Enter(admission.Entry{ID: "other", Root: "other", Owner: "bob"})
	id := r.create("go")
	if got := <-asked; got != id {
		t.Errorf("%s was asked about", got)
	}
	eventually(t, "end of the attempt", func() bool { return !gate.Waits(id) })
	close(here)
	r.say(id, "and more")
	eventually(t, "place in the queue", func() bool { return gate.Waits(id) })
	gate.Leave("other")
	r.until(id, "the answer", answered)
}

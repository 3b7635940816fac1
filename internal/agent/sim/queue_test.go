package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"deckhand/internal/admission"
	"deckhand/internal/agent"
	"deckhand/internal/cluster"
	"deckhand/internal/session"
	"deckhand/internal/soak"
)

// queue is what a server has to share its queue with others. See package replica, which does it in real servers.
type queue struct {
	w      *world
	gate   *admission.Gate
	worker bool
	// arriving are updates of other servers on their way.
	arriving chan admission.Update

	mu      sync.Mutex
	latest  map[string]admission.Update // by server
	given   map[string]int              // sessions handed over since
	wanted  map[session.ID]bool         // other servers asked for them
	calling int                         // model calls in progress
}

// shareQueue gives a server a queue that it shares. Some servers run no agents.
func (s *server) shareQueue(c *agent.Config) {
	worker := s.n%3 != 0
	if !worker {
		worker = true
		for _, p := range s.w.replicas() {
			worker = worker && !p.queue.worker
		}
	}
	q := &s.queue
	q.w, q.worker, q.arriving = s.w, worker, make(chan admission.Update, 100)
	q.latest, q.given, q.wanted = map[string]admission.Update{}, map[string]int{}, map[session.ID]bool{}
	q.gate = admission.New(s.w.rules.limits)
	q.gate.Join(s.member(), worker)
	c.Admission, c.MayTake = q.gate, s.mayTake
}

// run exchanges updates, and hands over sessions that wait.
func (q *queue) run(ctx context.Context, s *server) {
	var running sync.WaitGroup
	defer running.Wait()
	stop, _ := member{s.w.members, s}.Subscribe(s.member(), func(k cluster.Wake) {
		if k.Kind == cluster.Take && k.To == s.member() {
			q.mu.Lock()
			q.wanted[k.Session] = true
			q.mu.Unlock()
		}
	})
	defer stop()
	running.Go(func() { q.gate.Share(ctx, s.publish, func() int { return 2 }) })
	for {
		var u admission.Update
		select {
		case <-ctx.Done():
			return
		case u = <-q.arriving:
		}
		_ = pass(ctx, upTo(s.w.dice("network", s.n), 200*time.Millisecond)) // 25 on average: no queue of messages builds up
		q.gate.Receive(u)
		q.mu.Lock()
		q.latest[u.From], q.given[u.From] = u, 0
		free := u.Free
		q.mu.Unlock()
		for _, e := range q.gate.Movable(free, u.Kept) {
			q.gate.HandOver(e.ID, e.Owner)
			s.ask(u.From, e.ID, e.Owner)
		}
	}
}

// publish sends an update to the other servers, or loses it.
func (s *server) publish(u admission.Update) {
	for _, p := range s.w.replicas() {
		switch {
		case p == s || s.dead.Load():
		case s.w.strikes(s.w.dice("update", s.n, p.n), 100):
			s.w.fault("update lost")
		default:
			select {
			case p.queue.arriving <- u:
			default:
			}
		}
	}
}

func (s *server) ask(other string, id session.ID, owner string) {
	s.queue.mu.Lock()
	s.queue.given[other]++
	s.queue.mu.Unlock()
	member{s.w.members, s}.Publish(cluster.Wake{Kind: cluster.Take, From: s.member(), To: other, Session: id, Owner: owner})
}

// mayTake leaves sessions that no server had to a server with a free slot.
func (s *server) mayTake(_ context.Context, st session.State) error {
	q := &s.queue
	full, first := q.gate.Need(st.ID, st.Owner)
	q.mu.Lock()
	wanted, to := q.wanted[st.ID], ""
	for _, p := range s.w.replicas() {
		u := q.latest[p.member()]
		free := u.Free - q.given[p.member()]
		if first {
			free += u.Kept
		}
		if p != s && p.queue.worker && (free > 0 || to == "" && !q.worker) {
			to = p.member()
		}
	}
	delete(q.wanted, st.ID)
	q.mu.Unlock()
	switch {
	case q.worker && (st.Claim > 0 || wanted || !full || to == ""):
		return nil
	case to != "":
		s.ask(to, st.ID, st.Owner)
	}
	return fmt.Errorf("%w: it is for another server", session.ErrRefused)
}

// asks counts a model call in progress: a server has no more of them than slots.
func (q *queue) asks() (ends func()) {
	if q.gate == nil {
		return func() {}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.calling++; q.calling > q.w.rules.limits.Running {
		q.w.breach("%d turns at the same time on a server with %d slots", q.calling, q.w.rules.limits.Running)
	}
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.calling--
	}
}

// settled is after how long at most all servers agree on what runs and waits when nothing changes any more.
const settled = 15 * time.Second

// agree looks for slots and positions that are left when nothing is to be done any more.
func (w *world) agree() {
	_ = pass(context.Background(), settled)
	for _, s := range w.replicas() {
		if now := s.queue.gate.Status(); now.Running+now.Waiting > 0 {
			w.breach("%s has %d running and %d waiting sessions, and there is nothing to do", s.member(), now.Running, now.Waiting)
		}
		for _, id := range w.ids {
			if s.queue.gate.OnOtherServer(id) {
				w.breach("%s believes that another server has %s", s.member(), id)
			}
		}
	}
}

// promptly is after how long at most a server takes up a message if nothing goes wrong and no other session needs a slot. Sweeps are rarer.
const promptly = 10 * time.Second

// wake stops and continues sessions while other servers do not know yet, and expects that messages are taken up in time: none may wait
// for a sweep because each server believes that another one has the session.
func (w *world) wake(r *rand.Rand) {
	for _, id := range w.ids {
		if w.store.state(id).Deleted {
			continue
		}
		for range 6 {
			w.deliver(r, id, *w.message(id, true))
			w.takenUp(id)
			_ = pass(context.Background(), upTo(r, 2*time.Second))
			w.ask(r, id, func(s session.State) ([]session.Payload, error) { return s.Stop("enough") })
			_ = pass(context.Background(), upTo(r, time.Second))
		}
		w.deliver(r, id, *w.message(id, true))
		w.rest(id)
	}
}

func (w *world) takenUp(id session.ID) {
	for waited := time.Duration(0); waited <= promptly; waited += promptly / 100 {
		if st := w.store.state(id); !st.Pending() || st.InTurn {
			return
		}
		_ = pass(context.Background(), promptly/100)
	}
	w.breach("%s: no server takes it up after event %d", id, w.store.state(id).Last)
}

// TestSharedQueue has several servers with few slots share their queues, with all faults: updates are lost and late, and servers crash and
// lose their leases. No session is forgotten because each server believes that another one has it, and no slot is left in use.
func TestSharedQueue(t *testing.T) {
	injected, _ := eachSeed(t, "TestSharedQueue", soak.Times(24, 600), func(w *world) {
		r := w.dice("queue")
		w.rules.shared, w.rules.sessions = true, 3+r.IntN(4)
		w.rules.limits = admission.Limits{Running: 1 + r.IntN(2), RunningPerUser: 1 + r.IntN(3), Queued: 100, QueuedPerUser: 100, Kept: r.IntN(2)}
		if w.rules.limits.Running == 1 {
			w.rules.limits.Kept = 0
		}
		w.rules.approval, w.rules.confirm, w.rules.idleAfter = agent.Approval{}, false, 0
		w.replicate(2 + r.IntN(3))
		for range w.rules.sessions {
			w.create(r)
		}
		for range w.rules.acts {
			_ = pass(context.Background(), upTo(r, 30*time.Second))
			w.act(r)
		}
		w.heal(r)
		w.wake(r)
		w.agree()
		w.audit()
		w.end()
	})
	if *seedFlag == 0 && injected["update lost"] == 0 {
		t.Error("no update was lost")
	}
}

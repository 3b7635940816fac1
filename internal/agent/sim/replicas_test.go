package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"deckhand/internal/agent"
	"deckhand/internal/cluster"
	"deckhand/internal/session"
	"deckhand/internal/soak"
)

// leaseTime is how long the lease of a member lasts.
const leaseTime = 10 * time.Second

// noticed is after how long a dead member's sessions belong to others: its lease
// ends, the others find out a third of a lease later, and claim.
const noticed = leaseTime + leaseTime/3 + time.Second

// replicate makes the world one of several servers that work side by side.
func (w *world) replicate(servers int) {
	w.members, w.joined = cluster.NewMemory(leaseTime, nil), map[string]time.Time{}
	for range servers {
		w.boot()
	}
}

// replicas are the servers that work side by side and are not dead.
func (w *world) replicas() []*server {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.peers)
}

func (s *server) member() string { return fmt.Sprint("server-", s.n) }

// join makes a server a member of the cluster.
func (s *server) join(c *agent.Config) {
	members := member{s.w.members, s}
	c.Member, c.Leases, c.Wakes = s.member(), members, members
	announcer := cluster.Announcer{Wakes: members, Member: s.member()}
	s.sessions.Observe(announcer)
	s.sessions.Watch(announcer)
}

// member is the cluster as one server reaches it: with faults, and not at all
// once the server is dead.
type member struct {
	*cluster.Memory
	s *server
}

// reached says why the server does not reach the leases.
func (m member) reached(question string, chance float64) error {
	m.s.mu.Lock()
	apart := time.Now().Before(m.s.apart)
	m.s.mu.Unlock()
	switch w := m.s.w; {
	case m.s.dead.Load():
		return errDead
	case apart && !w.isCalm():
		return errDisk
	case w.strikes(w.dice(question, m.s.n), chance):
		w.fault("leases do not answer")
		return errDisk
	}
	return nil
}

// Hold implements cluster.Leases.
func (m member) Hold(ctx context.Context, name string) error {
	if err := m.reached("hold", 0); err != nil {
		return err
	}
	m.s.w.mu.Lock()
	m.s.w.joined[name] = time.Now()
	m.s.w.mu.Unlock()
	return m.Memory.Hold(ctx, name)
}

// Renew implements cluster.Leases.
func (m member) Renew(ctx context.Context, name string) error {
	if err := m.reached("renew", 50); err != nil {
		return err
	}
	return m.Memory.Renew(ctx, name)
}

// Release implements cluster.Leases.
func (m member) Release(ctx context.Context, name string) error {
	if m.s.dead.Load() {
		return errDead
	}
	return m.Memory.Release(ctx, name)
}

// Live implements cluster.Leases.
func (m member) Live(ctx context.Context) ([]string, error) {
	if err := m.reached("live", 10); err != nil {
		return nil, err
	}
	return m.Memory.Live(ctx)
}

// Publish implements cluster.Wakes.
func (m member) Publish(k cluster.Wake) {
	w := m.s.w
	switch {
	case m.s.dead.Load():
	case w.strikes(w.dice("wake", m.s.n), 50):
		w.fault("wake lost")
	default:
		m.Memory.Publish(k)
	}
}

// claimed looks at a claim: the member that held the session must not be alive.
// One whose lease ended just now may have a new one before the claim is stored.
func (w *world) claimed(id session.ID, holder, by string) {
	if holder == "" || holder == by {
		return
	}
	live, _ := w.members.Live(context.Background())
	w.mu.Lock()
	since := time.Since(w.joined[holder])
	w.taken++
	w.mu.Unlock()
	if slices.Contains(live, holder) && since > time.Second {
		w.breach("%s: %s takes it from %s, which is alive", id, by, holder)
	}
}

// replicaTrouble is what happens to servers that work side by side.
func (w *world) replicaTrouble(r *rand.Rand, n int) {
	peers := w.replicas()
	s := peers[r.IntN(len(peers))]
	switch {
	case n < 88:
		w.fault("replica: crash")
		s.crash()
		_ = pass(context.Background(), upTo(r, 2*time.Minute))
		w.boot()
	case n < 94:
		w.fault("replica: restart")
		s.stop()
		w.boot()
	default:
		w.fault("replica: works on and loses its lease")
		s.mu.Lock()
		s.apart = time.Now().Add(leaseTime + upTo(r, time.Minute))
		s.mu.Unlock()
	}
}

// eachSeed runs seeds side by side, each in virtual time, and adds up what
// happened in them.
func eachSeed(t *testing.T, test string, n int, live func(w *world)) (injected map[string]int, taken int) {
	injected = map[string]int{}
	run := func(t *testing.T, seed uint64) *world {
		var w *world
		synctest.Test(t, func(t *testing.T) {
			w = newWorld(t, seed)
			live(w)
		})
		w.report(t, test)
		return w
	}
	if *seedFlag != 0 {
		w := run(t, *seedFlag)
		return w.injected, w.taken
	}
	var mu sync.Mutex
	t.Run("seeds", func(t *testing.T) {
		for seed := range uint64(n) {
			t.Run(strconv.FormatUint(seed+1, 10), func(t *testing.T) {
				t.Parallel()
				w := run(t, seed+1)
				mu.Lock()
				defer mu.Unlock()
				for kind, n := range w.injected {
					injected[kind] += n
				}
				taken += w.taken
			})
		}
	})
	return injected, taken
}

// TestReplicas has two and three servers work on one log, with all faults. No
// session is taken from a member that is alive, and whatever else TestFaults
// looks for holds as well.
func TestReplicas(t *testing.T) {
	injected, taken := eachSeed(t, "TestReplicas", soak.Times(8, 600), func(w *world) {
		w.replicate(2 + int(w.seed%2))
		w.live(w.dice("life"))
	})
	t.Logf("%d sessions were taken over; %v", taken, injected)
	if *seedFlag != 0 {
		return
	}
	for _, kind := range []string{"replica: crash", "replica: restart", "replica: works on and loses its lease", "leases do not answer", "wake lost"} {
		if injected[kind] == 0 {
			t.Errorf("never happened: %s", kind)
		}
	}
	if taken == 0 {
		t.Error("no session was taken over")
	}
}

// TestTakeover kills one of two or three servers while all have something to do.
// Each of its sessions is taken over in time and the others are left alone. One
// that ends in its own way is followed at once.
func TestTakeover(t *testing.T) {
	_, taken := eachSeed(t, "TestTakeover", soak.Times(24, 600), func(w *world) {
		w.rules.sessions, w.rules.trouble, w.rules.confirm, w.rules.maxAsks = 6, 0, false, 1000
		w.limit = 1e12
		r := w.dice("takeover")
		w.replicate(2 + int(w.seed%2))
		for range w.rules.sessions {
			w.create(r)
		}
		for _, id := range w.ids {
			w.deliver(r, id, *w.message(id, true))
		}
		_ = pass(context.Background(), upTo(r, 30*time.Second))
		w.takeover(r)
		w.reckon(r)
	})
	if taken == 0 && *seedFlag == 0 {
		t.Error("no session was taken over")
	}
}

// takeover ends one server and looks at what becomes of its sessions.
func (w *world) takeover(r *rand.Rand) {
	peers := w.replicas()
	gone := peers[r.IntN(len(peers))]
	within := noticed
	if r.IntN(3) == 0 {
		gone.stop()
		within = time.Second
	} else {
		gone.crash()
	}
	var left []session.ID
	for _, id := range w.ids {
		if w.store.state(id).Holder() == gone.member() {
			left = append(left, id)
		}
	}
	_ = pass(context.Background(), within)
	for _, id := range left {
		if holder := w.store.state(id).Holder(); holder == gone.member() {
			w.breach("%s: no server has taken it over from %s after %v", id, holder, within)
		}
	}
}

package admission

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"deckhand/internal/session"
)

// Updates are lost and delayed, servers end, and conversations come, move and go. What each server counts stays consistent, no server
// has more running conversations than slots, and after complete lists all agree, limits per user hold again as turns end, and no slot is
// free that a conversation waits for.
func TestServersAgree(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		w := newModel(t, seed)
		for range 400 {
			w.step()
			w.consistent()
		}
		w.settle()
	}
}

// model is a random history of several gates.
type model struct {
	t      *testing.T
	random *rand.Rand
	all    several
	number int
	limits Limits
	under  map[*rig][]Update // on their way to a server, in order for each sender
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{t: t, random: rand.New(rand.NewPCG(seed, 5)), under: map[*rig][]Update{}}
	m.limits = wide(2+m.random.IntN(3), 1+m.random.IntN(3))
	m.limits.Kept = m.random.IntN(2)
	for range 2 + m.random.IntN(3) {
		m.join()
	}
	return m
}

func (m *model) join() {
	m.number++
	r := newRig(m.limits)
	r.Join(fmt.Sprint("server", m.number), len(m.all) == 0 || m.random.IntN(5) > 0)
	m.all = append(m.all, r)
}

// publish sends what a server publishes to the others. Some messages are lost.
func (m *model) publish(from *rig, list bool, lost int) {
	for _, u := range from.updates(list, 3) {
		for _, r := range m.all {
			if r != from && m.random.IntN(100) >= lost {
				m.under[r] = append(m.under[r], u)
			}
		}
	}
}

func (m *model) deliver(r *rig, most int) {
	for range min(most, len(m.under[r])) {
		u := m.under[r][0]
		m.under[r] = m.under[r][1:]
		r.Receive(u)
	}
}

func (m *model) step() {
	r := m.all[m.random.IntN(len(m.all))]
	id := fmt.Sprintf("user%d-%d", m.random.IntN(5), m.random.IntN(6))
	switch m.random.IntN(12) {
	case 0, 1, 2:
		if r.fleet.worker && !r.OnOtherServer(session.ID(id)) {
			r.comes(id, func(e *Entry) { e.Automated, e.Bound = m.random.IntN(3) == 0, m.random.IntN(3) == 0 })
		}
	case 3, 4:
		r.Leave(session.ID(id))
	case 5:
		r.GiveWay(Entry{ID: session.ID(id), Root: session.ID(id), Owner: id[:5]}, true)
	case 6, 7:
		m.publish(r, m.random.IntN(5) == 0, 20)
	case 8, 9:
		m.deliver(r, 1+m.random.IntN(5))
	case 10:
		to := m.all[m.random.IntN(len(m.all))]
		for _, e := range r.Movable(m.random.IntN(2), m.random.IntN(2)) {
			if r.HandOver(e.ID, e.Owner); to.fleet.worker {
				to.Enter(e)
			}
		}
	case 11:
		if m.random.IntN(20) > 0 {
			break
		}
		m.all = slices.DeleteFunc(m.all, func(o *rig) bool { return o == r })
		delete(m.under, r)
		for _, o := range m.all {
			o.ServerEnded(r.line.self)
		}
		m.join()
	}
}

// consistent compares the counters of each gate with what they count.
func (m *model) consistent() {
	m.t.Helper()
	for _, r := range m.all {
		runs, unbound := newCounts(), 0
		for _, f := range r.line.running {
			runs.add(f.Owner, 1)
		}
		for _, p := range r.line.others {
			for _, i := range p.items {
				if i.Position == 0 && !i.Shared {
					runs.add(i.Owner, 1)
				}
			}
		}
		for _, f := range r.line.waiting {
			if !f.Bound {
				unbound++
			}
		}
		if !maps.Equal(runs.users, r.line.runs.users) || runs.total != r.line.runs.total || unbound != r.line.unbound {
			m.t.Fatalf("%s counts %v and %d, and has %v and %d", r.line.self, r.line.runs, r.line.unbound, runs, unbound)
		}
		if n := len(r.line.running); n > m.limits.Running || n > 0 && !r.fleet.worker {
			m.t.Fatalf("%s: %d run", r.line.self, n)
		}
	}
}

// settle delivers everything, ends one turn after the other, and looks at who runs.
func (m *model) settle() {
	m.t.Helper()
	for left := true; left; {
		for range 8 { // the others must hear of each slot that is granted
			for _, r := range m.all {
				m.publish(r, true, 0)
			}
			for _, r := range m.all {
				m.deliver(r, len(m.under[r]))
			}
		}
		m.consistent()
		left = false
		for user := range 5 {
			name := fmt.Sprint("user", user)
			n := m.all.runs(name)
			for _, r := range m.all {
				if r.line.runs.users[name] != n {
					m.t.Fatalf("%s counts %d slots of %s, and there are %d", r.line.self, r.line.runs.users[name], name, n)
				}
				waits := len(r.line.queues[people][name]) + len(r.line.queues[automations][name])
				free, kept := r.free()
				if waits > 0 && n < m.limits.RunningPerUser && (free > 0 || n == 0 && kept > 0) {
					m.t.Fatalf("%s waits on %s for no reason", name, r.line.self)
				}
				left = left || waits > 0
			}
		}
		r := m.all[m.random.IntN(len(m.all))]
		before := map[string]int{}
		for user := range 5 {
			before[fmt.Sprint("user", user)] = m.all.runs(fmt.Sprint("user", user))
		}
		for id, f := range r.line.running {
			before[f.Owner]--
			r.Leave(id)
			break
		}
		for user, n := range before { // what is granted with full knowledge obeys the limits
			if now := m.all.runs(user); now > max(n, m.limits.RunningPerUser) {
				m.t.Fatalf("%s has %d slots", user, now)
			}
		}
	}
}

// One change with 10,000 waiting conversations of 1000 users and 10 servers.
func BenchmarkChange(b *testing.B) {
	all := newSeveral(wide(100, 10), "0", "1", "2", "3", "4", "5", "6", "7", "8", "9")
	for i := range 10_000 {
		all[i%10].comes(fmt.Sprintf("user%d-%d", i%1000, i), func(e *Entry) { e.Bound = true })
	}
	for _, r := range all {
		r.OnMove(func(string, session.ID, []byte) {})
	}
	for _, r := range all {
		all.hear(r.updates(true, 500))
	}
	r, other := all[0], all[1]
	for name, do := range map[string]func(i int){
		"message": func(int) {
			release, _ := r.Reserve("user1", "user1-new")
			release()
		},
		"turn": func(int) {
			for id := range r.line.running {
				r.Leave(id)
				r.comes(string(id))
				return
			}
		},
		"receive": func(i int) {
			r.Receive(Update{From: "1", Slots: 100, Items: []Item{{ID: "user1-new", Owner: "user1", position: position{Position: 1 + i%2}}}})
		},
		"movable": func(int) { r.Movable(10, 10) },
		"publish": func(int) {
			other.mu.Lock()
			other.changed = true
			other.mu.Unlock()
			other.updates(true, 500)
		},
		"tell": func(int) {
			r.mu.Lock()
			r.changed = true
			r.mu.Unlock()
			r.tell()
		},
	} {
		b.Run(name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				do(i)
			}
		})
	}
}

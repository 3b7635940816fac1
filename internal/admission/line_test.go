package admission

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"deckhand/internal/session"
)

// start is when the sessions of these tests began to wait.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// rig is a gate whose grants are written down.
type rig struct {
	*Gate
	number  int
	granted []session.ID
}

func newRig(l Limits) *rig {
	r := &rig{Gate: New(l)}
	r.OnGrant(func(id session.ID, _ string) { r.granted = append(r.granted, id) })
	return r
}

func wide(running, perUser int) Limits {
	return Limits{Running: running, RunningPerUser: perUser, Queued: 10_000, QueuedPerUser: 10_000}
}

// comes lets a session enter. Its name begins with that of its owner.
func (r *rig) comes(name string, more ...func(*Entry)) bool {
	r.number++
	id := session.ID(name)
	owner, _, _ := strings.Cut(name, "-")
	e := Entry{ID: id, Root: id, Owner: owner, Since: start.Add(time.Duration(r.number) * time.Second)}
	for _, f := range more {
		f(&e)
	}
	return r.Enter(e)
}

func automated(e *Entry) { e.Automated = true }

func below(root session.ID) func(*Entry) { return func(e *Entry) { e.Root = root } }

// want compares the sessions that got a place since the last time.
func (r *rig) want(t *testing.T, names ...session.ID) {
	t.Helper()
	if !slices.Equal(r.granted, names) {
		t.Errorf("granted %v, want %v", r.granted, names)
	}
	r.granted = nil
}

func TestUsersTakeTurns(t *testing.T) {
	t.Parallel()
	r := newRig(wide(2, 2))
	for i := range 5 {
		if r.comes(fmt.Sprintf("ada-%d", i)) != (i < 2) {
			t.Errorf("ada-%d", i)
		}
	}
	r.comes("bob-0")
	r.comes("cyd-0")
	r.comes("bob-1")
	for _, id := range []session.ID{"ada-0", "ada-1", "bob-0", "cyd-0", "ada-2", "bob-1"} {
		r.Leave(id)
	}
	// Bob and Cyd have no place, so they go first, and then those who were served the longest time ago.
	r.want(t, "bob-0", "cyd-0", "ada-2", "bob-1", "ada-3", "ada-4")
}

func TestUserLimit(t *testing.T) {
	t.Parallel()
	r := newRig(wide(10, 2))
	for i := range 4 {
		r.comes(fmt.Sprintf("ada-%d", i))
	}
	if p := r.Place("ada-3"); p == nil || p.Position != 2 || p.Reason != UserLimit || p.Running != 2 || p.Limit != 2 {
		t.Errorf("%+v", p)
	}
	if got := r.Place("ada-3").Message; got != "Waiting for a free slot: 2nd in the queue. You have 2 of 2 conversations running." {
		t.Error(got)
	}
	if !r.comes("bob-0") || r.Place("bob-0") != nil {
		t.Error("one user's limit holds up another")
	}
	r.Leave("ada-0")
	r.want(t, "ada-2")
	if p := r.Place("ada-3"); p.Position != 1 {
		t.Errorf("%+v", p)
	}
}

func TestPeopleBeforeAutomations(t *testing.T) {
	t.Parallel()
	r := newRig(wide(1, 1))
	r.comes("eve-0")
	r.comes("bot-0", automated)
	r.comes("cat-0", automated)
	var people []session.ID
	for i := range 9 {
		people = append(people, session.ID(fmt.Sprintf("user%d-0", i)))
		r.comes(string(people[i]))
	}
	running := session.ID("eve-0")
	for range 11 {
		r.Leave(running)
		running = r.granted[len(r.granted)-1]
	}
	// Every fifth place goes to an automation, so none waits forever.
	r.want(t, slices.Concat(people[:4], []session.ID{"bot-0"}, people[4:8], []session.ID{"cat-0"}, people[8:])...)
}

func TestMessageOfAPersonBringsForward(t *testing.T) {
	t.Parallel()
	r := newRig(wide(1, 1))
	r.comes("eve-0")
	r.comes("ada-0", automated)
	r.comes("bob-0")
	r.comes("ada-0")
	r.Leave("eve-0")
	r.want(t, "ada-0")
}

// A delegated task shares the place of the conversation that waits for it, whoever comes first.
func TestFamiliesShareAPlace(t *testing.T) {
	t.Parallel()
	r := newRig(wide(1, 1))
	if !r.comes("ada-parent") || !r.comes("ada-child", below("ada-parent")) || !r.comes("ada-grandchild", below("ada-parent")) {
		t.Fatal("the family does not fit into one place")
	}
	r.comes("bob-0")
	r.Leave("ada-parent")
	r.Leave("ada-grandchild")
	r.want(t)
	r.Leave("ada-child")
	r.want(t, "bob-0")
	r.comes("ada-child", below("ada-parent"))
	r.comes("ada-parent")
	r.Leave("bob-0")
	slices.Sort(r.granted)
	r.want(t, "ada-child", "ada-parent")
}

func TestTurnsInProgressGoFirst(t *testing.T) {
	t.Parallel()
	r := newRig(wide(1, 1))
	r.comes("eve-0")
	r.comes("ada-new")
	r.comes("ada-begun", func(e *Entry) { e.Began = true })
	r.comes("ada-old", func(e *Entry) { e.Since = start })
	r.Leave("eve-0")
	r.Leave("ada-begun")
	r.Leave("ada-old")
	r.want(t, "ada-begun", "ada-old", "ada-new")
}

func TestLimitsCanChange(t *testing.T) {
	t.Parallel()
	r := newRig(wide(1, 1))
	r.comes("ada-0")
	r.comes("ada-1")
	r.comes("bob-0")
	r.SetLimits(wide(2, 1))
	r.want(t, "bob-0")
	r.SetLimits(wide(3, 2))
	r.want(t, "ada-1")
}

// The positions that people see are the order in which places are given, whatever the limits and the mix.
func TestPositionsAreTheOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		r := newRig(wide(1, 1+random.IntN(4)))
		r.comes("root-0")
		for i := range 1 + random.IntN(40) {
			name := fmt.Sprintf("user%d-%d", random.IntN(6), i)
			if random.IntN(3) == 0 {
				r.comes(name, automated)
			} else {
				r.comes(name)
			}
		}
		want := map[session.ID]int{}
		for id := range r.line.waiting {
			if p := r.Place(id); p.Reason == ServerLimit {
				want[id] = p.Position
			}
		}
		limits := r.line.limits // the running session stays, and places are added one by one
		for n := 1; n <= len(want); n++ {
			limits.Running++
			r.SetLimits(limits)
			if len(r.granted) != n || want[r.granted[n-1]] != n {
				t.Fatalf("seed %d: place %d went to %v, expected at %v", seed, n, r.granted, want)
			}
		}
	}
}

// Whatever comes and goes, no limit is exceeded, no place is left empty for which somebody waits, and all get one.
func TestNoPlaceIsLost(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 2))
		r := newRig(wide(4, 2))
		known := map[session.ID]bool{}
		for i := range 300 {
			switch id := session.ID(fmt.Sprintf("user%d-%d", random.IntN(5), random.IntN(6))); random.IntN(4) {
			case 0, 1:
				known[id] = true
				r.comes(string(id), func(e *Entry) { e.Automated = random.IntN(2) == 0 })
			case 2:
				r.Leave(id)
				delete(known, id)
			case 3:
				r.GiveWay(Entry{ID: id, Root: id, Owner: string(id[:5])}, true)
			}
			now := r.Status()
			if now.Running+now.Waiting != len(known) || now.Running > 4 || r.line.next() != nil {
				t.Fatalf("seed %d, step %d: %+v of %d", seed, i, now, len(known))
			}
			for _, u := range now.Users {
				if u.Running > 2 {
					t.Fatalf("seed %d, step %d: %+v", seed, i, u)
				}
			}
		}
		for len(known) > 0 {
			ran := slices.Collect(func(yield func(session.ID) bool) {
				for id := range r.line.running {
					if !yield(id) {
						return
					}
				}
			})
			for _, id := range ran {
				r.Leave(id)
				delete(known, id)
			}
			if len(ran) == 0 {
				t.Fatalf("seed %d: %d wait and none runs", seed, len(known))
			}
		}
		if len(r.members)+len(r.line.waiting)+len(r.line.running)+len(r.line.served)+len(r.line.used.users) > 0 {
			t.Fatalf("seed %d: something is left behind", seed)
		}
	}
}

func TestOrdinal(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 102: "102nd", 111: "111th"} {
		if got := Ordinal(n); got != want {
			t.Errorf("%d is %s", n, got)
		}
	}
}

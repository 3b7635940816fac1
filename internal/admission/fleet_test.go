package admission

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"deckhand/internal/session"
)

// several are gates that exchange their news.
type several []*rig

func newSeveral(l Limits, names ...string) (all several) {
	for _, name := range names {
		r := newRig(l)
		r.Join(name, true)
		all = append(all, r)
	}
	return all
}

// tell exchanges the news of all gates at the same time, until there are none.
func (all several) tell() {
	for {
		var said []News
		for _, r := range all {
			said = append(said, r.News(false, 2)...)
		}
		if len(said) == 0 {
			return
		}
		all.hear(said)
	}
}

func (all several) hear(said []News) {
	for _, n := range said {
		for _, r := range all {
			if r.line.self != n.From {
				r.Heard(n)
			}
		}
	}
}

// runs counts the slots of a user on all servers.
func (all several) runs(user string) (n int) {
	for _, r := range all {
		n += r.line.used.users[user]
	}
	return n
}

func TestLimitPerUserOfSeveralServers(t *testing.T) {
	t.Parallel()
	all := newSeveral(wide(3, 2), "a", "b")
	a, b := all[0], all[1]
	all.tell()
	a.comes("ada-0")
	a.comes("ada-1")
	all.tell()
	if b.comes("ada-2") || !b.comes("bob-0") {
		t.Error("slots on another server do not count")
	}
	all.tell()
	for _, r := range all {
		if p := r.Place("ada-2"); p == nil || p.Message != "Waiting for a free slot: 1st in the queue. You have 2 of 2 conversations running." {
			t.Errorf("%s: %+v", r.line.self, p)
		}
		if r.Place("ada-0") != nil || r.Place("bob-0") != nil {
			t.Error("a running conversation has a place")
		}
	}
	if !a.Elsewhere("bob-0") || a.Elsewhere("ada-0") {
		t.Error("Elsewhere is wrong")
	}
	if use := a.Use(); !slices.Equal(use.Users, []UserUse{{"ada", 2, 1, UserLimit}, {"bob", 1, 0, ""}}) {
		t.Errorf("%+v", use.Users)
	}
	a.Leave("ada-0")
	all.tell()
	b.want(t, "ada-2")
	all.tell()
	if a.Place("ada-2") != nil {
		t.Error("a place is still known")
	}
}

// When a slot of a user becomes free, and each server has conversations of the user in its queue, one of them runs.
func TestServersTakeTurns(t *testing.T) {
	t.Parallel()
	for limit := 1; limit <= 3; limit++ {
		all := newSeveral(wide(9, limit), "a", "b", "c")
		all.tell()
		for i := range 30 {
			all[i%3].comes(fmt.Sprintf("ada-%d", i))
			all.tell()
		}
		for left := 30; left > 0; left-- {
			if n := all.runs("ada"); n != min(left, limit) {
				t.Fatalf("limit %d: %d run, %d are left", limit, n, left)
			}
			r := all[slices.IndexFunc(all, func(r *rig) bool { return len(r.line.running) > 0 })]
			for id := range r.line.running {
				r.Leave(id)
				break
			}
			all.tell()
		}
	}
}

// With random changes on random servers, limits hold. Once all news are exchanged, no slot is free that a conversation waits for.
func TestSeveralServersLoseNoPlace(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 3))
		limits := wide(3, 2)
		limits.Kept = random.IntN(2)
		all := newSeveral(limits, "a", "b", "c")
		all.tell()
		where := map[session.ID]*rig{}
		for i := range 300 {
			id := session.ID(fmt.Sprintf("user%d-%d", random.IntN(5), random.IntN(8)))
			if r := where[id]; r != nil && random.IntN(2) == 0 {
				r.Leave(id)
				delete(where, id)
			} else if r == nil {
				where[id] = all[random.IntN(3)]
				where[id].comes(string(id), func(e *Entry) { e.Automated = random.IntN(3) == 0 })
			}
			all.tell()
			for user := range 5 {
				name := fmt.Sprint("user", user)
				n := all.runs(name)
				if n > 2 {
					t.Fatalf("seed %d, step %d: %s has %d slots", seed, i, name, n)
				}
				for _, r := range all {
					if waits := len(r.line.queues[people][name]) + len(r.line.queues[automations][name]); waits > 0 && n < 2 && r.free() > 0 {
						t.Fatalf("seed %d, step %d: %s waits on %s for no reason", seed, i, name, r.line.self)
					}
				}
			}
		}
	}
}

// The limits of the queue apply to all servers together, also on a server without agents. Messages that it accepted count before
// another server reports them.
func TestQueueOfSeveralServersIsFull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits := Limits{Running: 1, RunningPerUser: 1, Queued: 2, QueuedPerUser: 2}
		all := newSeveral(limits, "worker")
		worker, front := all[0], newRig(limits)
		front.Join("front", false)
		all = append(all, front)
		all.tell()
		accept := func(id session.ID) error {
			release, err := front.Reserve("ada", id)
			if err == nil {
				front.Arrived(session.State{ID: id, Owner: "ada", Last: 2, LastSaid: 2})
				release()
			}
			return err
		}
		for _, id := range []session.ID{"ada-0", "ada-1", "ada-2"} {
			if err := accept(id); err != nil {
				t.Fatal(id, err)
			}
			if front.Place(id) != nil || front.Waits(id) {
				t.Errorf("%s is in the queue of a server without agents", id)
			}
		}
		var full *FullError
		if err := accept("ada-3"); !errors.As(err, &full) || !full.User {
			t.Errorf("%v", err)
		}
		for _, id := range []string{"ada-0", "ada-1"} { // the third one was lost
			worker.comes(id)
		}
		all.tell()
		if err := accept("ada-3"); err == nil {
			t.Error("one that was handed over is forgotten too early")
		}
		time.Sleep(2 * handedTime)
		if err := accept("ada-3"); err != nil {
			t.Errorf("one that was lost is counted for ever: %v", err)
		}
		if release, err := front.Reserve("ada", "ada-1"); err != nil {
			t.Errorf("a message to a waiting conversation was refused: %v", err)
		} else {
			release()
		}
		worker.comes("ada-3")
		all.tell()
		for _, r := range all {
			if _, err := r.Reserve("ada", "ada-4"); !errors.As(err, &full) || full.Error() != "You have reached the limit of queued conversations per user (queued: 2 of 2, running: 1 of 1). Wait until some finish, or stop some." {
				t.Errorf("%s: %v", r.line.self, err)
			}
			if _, err := r.Reserve("bob", "bob-0", "bob-1"); !errors.As(err, &full) || full.Error() != "The server has reached its limit of queued conversations (queued: 2 of 2, running: 1 of 1)." {
				t.Errorf("%s: %v", r.line.self, err)
			}
		}
	})
}

// Followers on every server get positions, and a notice when a conversation no longer waits.
func TestPositionsOnOtherServers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := newSeveral(wide(1, 1), "a", "b")
		a, b := all[0], all[1]
		told := map[session.ID]string{}
		b.OnMove(func(_ string, id session.ID, place []byte) { told[id] = string(place) })
		a.comes("ada-0")
		a.comes("bob-0")
		a.comes("bob-child", below("bob-0"))
		all.tell()
		time.Sleep(time.Second)
		synctest.Wait()
		want := `{"position":1,"reason":"server_limit","running":1,"limit":1,"message":"Waiting for a free slot: 1st in the queue. 1 of 1 conversations are running on this server."}`
		if told["bob-0"] != want || told["bob-child"] != want || len(told) != 2 {
			t.Errorf("%q", told)
		}
		if n := b.waitElsewhere(); n != 1 {
			t.Errorf("a family counts as %d", n)
		}
		b.Forget("a")
		time.Sleep(time.Second)
		synctest.Wait()
		if told["bob-0"] != "" || b.Place("bob-0") != nil || b.Elsewhere("ada-0") {
			t.Errorf("a server that has ended is still known: %q", told)
		}
	})
}

// The next complete list corrects lost messages, and silent servers are dropped.
func TestLostNews(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := newSeveral(wide(2, 1), "a", "b")
		a, b := all[0], all[1]
		for _, id := range []string{"ada-0", "bob-0", "cyd-0", "dan-0"} {
			a.comes(id)
		}
		all.tell()
		a.Leave("ada-0") // nobody hears of it
		a.Leave("dan-0")
		a.comes("eve-0")
		a.News(false, 10)
		if b.line.runs("ada") != 1 || !b.Elsewhere("dan-0") || b.Elsewhere("eve-0") {
			t.Fatal("it was heard")
		}
		all.hear(a.News(true, 2))
		if b.line.runs("ada") != 0 || b.line.runs("cyd") != 1 || b.Elsewhere("dan-0") || b.Place("eve-0") == nil {
			t.Error("a complete list is not complete")
		}
		time.Sleep(time.Minute)
		b.Expire(time.Second)
		if b.line.runs("cyd") != 0 || b.Elsewhere("eve-0") {
			t.Error("a silent server is still known")
		}
		all.hear([]News{a.Beat()})
		b.Keep([]string{"b", "c"})
		if len(b.line.others) > 0 {
			t.Error("a server without a lease is still known")
		}
	})
}

// Other servers may take conversations that wait for a slot here and were never claimed, in the order of the queue.
func TestSurplus(t *testing.T) {
	t.Parallel()
	r := newRig(wide(2, 2))
	for _, id := range []string{"ada-0", "ada-1", "ada-2", "bob-1"} {
		r.comes(id)
	}
	r.comes("bob-0", func(e *Entry) { e.Bound, e.Since = true, start })
	r.comes("cyd-0")
	r.comes("cyd-child", below("cyd-0"))
	r.comes("dan-0")
	var got []session.ID
	for _, e := range r.Surplus(10) {
		got = append(got, e.ID)
	}
	if !slices.Equal(got, []session.ID{"dan-0", "bob-1"}) {
		t.Errorf("%v", got)
	}
	if n := len(r.Surplus(1)); n != 1 {
		t.Errorf("%d instead of one", n)
	}
}

// Two users with long turns cannot have all slots: one is kept for users who have none.
func TestKeptSlot(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flags LimitFlags
		kept  int
	}{{LimitFlags{}, 1}, {LimitFlags{MaxRunning: 4}, 1}, {LimitFlags{MaxRunning: 4, MaxRunningPerUser: 4}, 0}, {LimitFlags{MaxRunning: 1}, 0}} {
		if l := c.flags.Limits(100); l.Kept != c.kept {
			t.Errorf("%+v: %+v", c.flags, l)
		}
	}
	r := newRig(LimitFlags{MaxRunning: 4}.Limits(100))
	r.comes("ada-0")
	r.comes("ada-1")
	r.comes("bob-0")
	if r.comes("bob-1") {
		t.Error("two users have all slots")
	}
	if p := r.Place("bob-1"); p.Message != "Waiting for a free slot: 1st in the queue. 3 of 3 conversations are running on this server." {
		t.Errorf("%+v", p)
	}
	if !r.comes("cyd-0") || r.comes("cyd-1") || r.comes("dan-0") {
		t.Error("the slot is kept for one user without any")
	}
	r.Leave("cyd-0")
	r.want(t, "dan-0")
	r.Leave("ada-0")
	r.want(t, "cyd-1")
	r.Leave("ada-1")
	r.want(t)
	r.Leave("dan-0")
	r.want(t, "bob-1")
}

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

// several are gates that exchange their updates.
type several []*rig

func newSeveral(l Limits, names ...string) (all several) {
	for _, name := range names {
		r := newRig(l)
		r.Join(name, true)
		all = append(all, r)
	}
	return all
}

// tell exchanges the updates of all gates at the same time, until there are none.
func (all several) tell() {
	for {
		var said []Update
		for _, r := range all {
			said = append(said, r.updates(false, 2)...)
		}
		if len(said) == 0 {
			return
		}
		all.hear(said)
	}
}

func (all several) hear(said []Update) {
	for _, n := range said {
		for _, r := range all {
			if r.line.self != n.From {
				r.Receive(n)
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
	if !a.OnOtherServer("bob-0") || a.OnOtherServer("ada-0") {
		t.Error("OnOtherServer is wrong")
	}
	if now := a.Status(); !slices.Equal(now.Users, []UserCount{{"ada", 2, 1, UserLimit}, {"bob", 1, 0, ""}}) {
		t.Errorf("%+v", now.Users)
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

// With random changes on random servers, limits hold. Once all updates are exchanged, no slot is free that a conversation waits for.
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
					free, _ := r.free()
					if waits := len(r.line.queues[people][name]) + len(r.line.queues[automations][name]); waits > 0 && n < 2 && free > 0 {
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
		time.Sleep(2 * handoverTime)
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
		b.ServerEnded("a")
		time.Sleep(time.Second)
		synctest.Wait()
		if told["bob-0"] != "" || b.Place("bob-0") != nil || b.OnOtherServer("ada-0") {
			t.Errorf("a server that has ended is still known: %q", told)
		}
	})
}

// The next complete list corrects lost messages, and silent servers are dropped.
func TestLostUpdates(t *testing.T) {
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
		a.updates(false, 10)
		if b.line.runs.users["ada"] != 1 || !b.OnOtherServer("dan-0") || b.OnOtherServer("eve-0") {
			t.Fatal("it was heard")
		}
		all.hear(a.updates(true, 2))
		if b.line.runs.users["ada"] != 0 || b.line.runs.users["cyd"] != 1 || b.OnOtherServer("dan-0") || b.Place("eve-0") == nil {
			t.Error("a complete list is not complete")
		}
		time.Sleep(time.Minute)
		b.expire(time.Second)
		if b.line.runs.users["cyd"] != 0 || b.OnOtherServer("eve-0") {
			t.Error("a silent server is still known")
		}
		all.hear([]Update{a.heartbeat()})
		b.SetLiveServers([]string{"b", "c"})
		if len(b.line.others) > 0 {
			t.Error("a server without a lease is still known")
		}
	})
}

// Other servers may take conversations that wait for a slot here and were never claimed, in the order of the queue.
func TestMovable(t *testing.T) {
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
	for _, e := range r.Movable(10, 0) {
		got = append(got, e.ID)
	}
	if !slices.Equal(got, []session.ID{"dan-0", "bob-1"}) {
		t.Errorf("%v", got)
	}
	if n := len(r.Movable(1, 0)); n != 1 {
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

// A server that leaves a session to another one gets it when that one reports that it no longer has it, or has ended.
func TestAwaitRelease(t *testing.T) {
	t.Parallel()
	all := newSeveral(wide(1, 1), "a", "b", "c")
	a, b, c := all[0], all[1], all[2]
	for _, id := range []string{"ada-0", "bob-0", "cyd-0", "dan-0"} {
		a.comes(id)
	}
	c.comes("eve-0")
	all.tell()
	for _, id := range []session.ID{"ada-0", "bob-0", "cyd-0", "eve-0"} {
		if !b.AwaitRelease(id, "owner") {
			t.Errorf("%s is not known", id)
		}
	}
	if b.AwaitRelease("fay-0", "fay") || a.AwaitRelease("ada-0", "ada") {
		t.Error("a session of no other server")
	}
	a.Leave("ada-0")
	all.tell()
	b.want(t, "ada-0")
	a.Leave("cyd-0")
	a.updates(false, 10) // lost
	all.hear(a.updates(true, 10))
	b.want(t, "cyd-0")
	a.Leave("dan-0") // is not awaited
	b.comes("fay-0")
	b.comes("bob-0") // is here now
	b.granted = nil
	all.tell()
	b.ServerEnded("a")
	b.ServerEnded("c")
	b.want(t, "eve-0")
	if len(b.fleet.awaited) > 0 {
		t.Errorf("still awaited: %v", b.fleet.awaited)
	}
}

// Updates that arrive after their server has ended do not bring it back, but a server whose lease had expired can come back.
func TestUpdatesOfEndedServers(t *testing.T) {
	t.Parallel()
	all := newSeveral(wide(1, 1), "a", "b")
	a, b := all[0], all[1]
	a.comes("ada-0")
	late := a.updates(true, 10)
	b.ServerEnded("a")
	all.hear(late)
	if b.OnOtherServer("ada-0") || b.line.runs.users["ada"] != 0 {
		t.Error("a late update counts")
	}
	b.SetLiveServers([]string{"a", "b"})
	all.hear(late)
	if !b.OnOtherServer("ada-0") || b.line.runs.users["ada"] != 1 {
		t.Error("a live server does not count")
	}
	b.SetLiveServers([]string{"b"})
	all.hear(late)
	if b.OnOtherServer("ada-0") {
		t.Error("a server without a lease counts")
	}
	all.hear([]Update{{From: "x", Slots: -1, Free: -5, Kept: -5, List: -1, Last: true, Items: []Item{{ID: "s", position: position{Position: -1}}, {}}}})
	b.Receive(Update{From: "b", Items: []Item{{ID: "mine"}}})
	if b.totals("ada").free != 1 || b.OnOtherServer("mine") {
		t.Errorf("invalid numbers count: %+v", b.totals("ada"))
	}
}

// The slot that a server keeps for users without one is also for those who wait on another server.
func TestKeptSlotOfAnotherServer(t *testing.T) {
	t.Parallel()
	limits := Limits{Running: 2, RunningPerUser: 2, Queued: 10, QueuedPerUser: 10, Kept: 1}
	all := newSeveral(limits, "a", "b")
	a, b := all[0], all[1]
	a.comes("ada-0")
	a.comes("bob-0")
	b.comes("cyd-0")
	all.tell()
	if a.Movable(0, 1) != nil {
		t.Error("nothing waits")
	}
	a.comes("ada-1")
	if len(a.Movable(0, 1)) > 0 {
		t.Error("a kept slot is for a user who has one")
	}
	a.comes("dan-0")
	a.comes("dan-1")
	a.comes("eve-0")
	names := func(all []Entry) (out []session.ID) {
		for _, e := range all {
			out = append(out, e.ID)
		}
		return out
	}
	if got := names(a.Movable(0, 1)); !slices.Equal(got, []session.ID{"dan-0"}) {
		t.Errorf("%v", got)
	}
	if got := names(a.Movable(0, 3)); !slices.Equal(got, []session.ID{"dan-0", "eve-0"}) {
		t.Errorf("%v", got)
	}
	for _, c := range []struct {
		r           *rig
		owner       string
		full, first bool
	}{{a, "fay", true, true}, {b, "fay", false, true}, {b, "ada", true, false}} {
		if full, first := c.r.Need("fay-0", c.owner); full != c.full || first != c.first {
			t.Errorf("%s on %s: %v %v", c.owner, c.r.line.self, full, first)
		}
	}
	for owner, here := range map[string]bool{"fay": false, "ada": true} { // b has a slot for fay only
		if a.queuesHere(Entry{ID: "new", Owner: owner}, "") != here {
			t.Errorf("%s", owner)
		}
	}
}

// A handover that no server reports is forgotten, also on a server that gets no messages.
func TestHandoversEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newSeveral(wide(1, 1), "a")[0]
		for i := range 100 {
			a.HandOver(session.ID(fmt.Sprint("ada-", i)), "ada")
		}
		time.Sleep(2 * handoverTime)
		a.expire(time.Hour)
		if n := len(a.fleet.handovers); n > 0 {
			t.Errorf("%d are left", n)
		}
	})
}

// Servers that only have their kept slot free take turns, too.
func TestServersTakeTurnsForKeptSlots(t *testing.T) {
	t.Parallel()
	limits := wide(2, 1)
	limits.Kept = 1
	all := newSeveral(limits, "a", "b", "c")
	for i, user := range []string{"bob", "cyd", "ada"} {
		all[i].comes(user + "-0")
	}
	all.tell()
	all[0].comes("ada-1")
	all[1].comes("ada-2")
	all.tell()
	all[2].Leave("ada-0")
	all.tell()
	if n := all.runs("ada"); n != 1 {
		t.Errorf("%d run, want one", n)
	}
}

// A session that two servers have queued stays with one of them. The other one gets it when the first one does not run it.
func TestQueuedTwice(t *testing.T) {
	t.Parallel()
	all := newSeveral(wide(1, 1), "a", "b", "c")
	a, b, c := all[0], all[1], all[2]
	for i, user := range []string{"ada", "bob", "cyd"} {
		all[i].comes(user + "-0")
		all[i].comes("eve-0")
	}
	b.comes("fay-0", func(e *Entry) { e.Bound = true })
	a.comes("fay-0")
	all.tell()
	if !a.Waits("eve-0") || b.Waits("eve-0") || c.Waits("eve-0") || !a.Waits("fay-0") || !b.Waits("fay-0") {
		t.Error("it waits on the wrong servers")
	}
	a.Leave("eve-0")
	all.tell()
	b.want(t, "eve-0")
	c.want(t, "eve-0")
	a.comes("gus-0")
	all.tell()
	c.comes("gus-0")
	a.Leave("ada-0")
	a.want(t, "fay-0")
	a.Leave("fay-0")
	a.want(t, "gus-0")
	all.tell()
	if c.Waits("gus-0") {
		t.Error("it waits, and runs on another server")
	}
}

// A new server is told at once what runs and waits on the others.
func TestNewServerGetsCompleteLists(t *testing.T) {
	t.Parallel()
	all := newSeveral(wide(1, 1), "a", "b")
	all[0].comes("ada-0")
	all[0].comes("bob-0")
	all.tell()
	all = append(all, newSeveral(wide(1, 1), "c")...)
	all.tell()
	if c := all[2]; !c.OnOtherServer("ada-0") || c.Place("bob-0") == nil || len(c.line.others) != 2 {
		t.Error("it does not know what the others have")
	}
}

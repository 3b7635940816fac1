package admission

import (
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"deckhand/internal/session"
)

func entry(id session.ID, owner string) Entry { return Entry{ID: id, Root: id, Owner: owner} }

func TestQueueIsFull(t *testing.T) {
	t.Parallel()
	r := newRig(Limits{Running: 2, RunningPerUser: 1, Queued: 3, QueuedPerUser: 2})
	for _, id := range []session.ID{"ada-0", "ada-1", "ada-2"} {
		release, err := r.Reserve("ada", id)
		if err != nil {
			t.Fatal(id, err)
		}
		r.comes(string(id))
		release()
	}
	var full *FullError
	if _, err := r.Reserve("ada", "ada-3"); !errors.As(err, &full) || !full.User || full.RetryAfter < time.Second {
		t.Errorf("%+v", err)
	}
	if want := "You have reached the limit of queued conversations per user (queued: 2 of 2, running: 1 of 1). Wait until some finish, or stop some."; full.Error() != want {
		t.Error(full)
	}
	for _, id := range []session.ID{"ada-0", "ada-2"} {
		if _, err := r.Reserve("ada", id); err != nil {
			t.Errorf("a message to a conversation that runs or waits was refused: %v", err)
		}
	}
	release, err := r.Reserve("bob", "bob-0", "bob-1") // one runs, one waits
	if err != nil {
		t.Fatal(err)
	}
	one, err := r.Reserve("cyd", "cyd-0")
	if err != nil {
		t.Errorf("a user without queued conversations was locked out by others: %v", err)
	}
	if _, err := r.Reserve("cyd", "cyd-1"); !errors.As(err, &full) || full.User || full.Queued != 3 {
		t.Errorf("%+v", err)
	}
	if _, err := r.Reserve("cyd", "ada-2"); err == nil {
		t.Error("the conversation of another user made room")
	}
	one()
	release()
	release()
	if _, err := r.Reserve("cyd", "cyd-0"); err != nil {
		t.Error(err)
	}
}

// Requests that arrive together do not exceed the limit together.
func TestReservationsAreExact(t *testing.T) {
	t.Parallel()
	g := New(Limits{Running: 3, RunningPerUser: 3, Queued: 5, QueuedPerUser: 5})
	var wg sync.WaitGroup
	var mu sync.Mutex
	accepted := 0
	for i := range 100 {
		wg.Go(func() {
			id := session.ID(rune('A' + i))
			if release, err := g.Reserve("ada", id); err == nil {
				g.Enter(entry(id, "ada"))
				release()
				mu.Lock()
				accepted++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if now := g.Status(); accepted != 8 || now.Running != 3 || now.Waiting != 5 {
		t.Errorf("%d accepted, %+v", accepted, now)
	}
}

// After a start, places are given in order, whoever was read first.
func TestPause(t *testing.T) {
	t.Parallel()
	r := newRig(wide(1, 1))
	r.Pause(time.Hour)
	r.comes("ada-1")
	r.comes("ada-0", func(e *Entry) { e.Since = start })
	r.comes("ada-begun", func(e *Entry) { e.Began = true })
	r.want(t)
	r.Resume()
	r.Resume()
	r.want(t, "ada-begun")
	r.Leave("ada-begun")
	r.want(t, "ada-0")
}

// A turn keeps its place for a while, then gives it up to a user with fewer places, and gets it back.
func TestLongTurnsGiveWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(wide(1, 1))
		long := entry("ada-long", "ada")
		r.Enter(long)
		r.comes("ada-next")
		time.Sleep(2 * Slice)
		if r.GiveWay(long, false) {
			t.Error("gave way to another one of the same user")
		}
		r.comes("bob-0")
		if !r.GiveWay(long, false) {
			t.Error("a user without a place waits")
		}
		r.want(t, "bob-0")
		bob := entry("bob-0", "bob")
		if r.GiveWay(bob, false) {
			t.Error("gave way at once")
		}
		time.Sleep(Slice)
		long.Began = true
		if !r.GiveWay(bob, false) {
			t.Error("the first one does not continue")
		}
	})
}

func TestAutomationsGiveWayToPeople(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(wide(2, 2))
		bot := Entry{ID: "ada-bot", Root: "ada-bot", Owner: "ada", Automated: true}
		r.Enter(bot)
		r.comes("ada-0")
		r.comes("ada-1", automated)
		time.Sleep(Slice)
		if r.GiveWay(bot, false) {
			t.Error("gave way to another automation")
		}
		r.comes("ada-2")
		if !r.GiveWay(bot, false) {
			t.Error("a person waits")
		}
		r.want(t, "ada-2")
	})
}

// The next turn of a conversation queues behind those that wait.
func TestFollowUpsQueue(t *testing.T) {
	t.Parallel()
	r := newRig(wide(1, 1))
	first := entry("ada-0", "ada")
	r.Enter(first)
	if r.GiveWay(first, true) {
		t.Error("gave way to nobody")
	}
	r.comes("ada-1")
	first.Since = start.Add(time.Hour)
	if !r.GiveWay(first, true) {
		t.Error("did not give way")
	}
	r.want(t, "ada-1")
	if p := r.Place("ada-0"); p == nil || p.Position != 1 {
		t.Errorf("%+v", p)
	}
}

// Those who follow a queue are told of every place in the end, but not of every move.
func TestMovesAreTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(wide(1, 1))
		var mu sync.Mutex
		calls, now := 0, map[session.ID]int{}
		g.OnMove(func(_ string, id session.ID, place []byte) {
			mu.Lock()
			defer mu.Unlock()
			var p Place
			if calls++; json.Unmarshal(place, &p) != nil {
				delete(now, id)
			} else {
				now[id] = p.Position
			}
		})
		for i := range 60 {
			g.Enter(entry(session.ID(rune('a'+i)), "ada"))
		}
		synctest.Wait()
		time.Sleep(2 * tellEvery)
		mu.Lock()
		if len(now) != 59 || now[session.ID(rune('a'+59))] != 59 {
			t.Errorf("told %v", now)
		}
		calls = 0
		mu.Unlock()
		for i := range 50 {
			g.Leave(session.ID(rune('a' + i)))
		}
		time.Sleep(2 * tellEvery)
		mu.Lock()
		defer mu.Unlock()
		if len(now) != 9 || now[session.ID(rune('a'+51))] != 1 || calls > 2*60 {
			t.Errorf("told %v in %d calls", now, calls)
		}
	})
}

func TestStaleLinesAreCheap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := New(wide(1, 1))
		for i := range 300 {
			id := session.ID(rune('a' + i))
			g.Enter(entry(id, "user"+string(id)))
			if p := g.Place(id); i > 0 && (p == nil || p.Position != i || p.Reason != ServerLimit) {
				t.Fatalf("%d: %+v", i, p)
			}
		}
		g.Leave("a")
		time.Sleep(tellEvery)
		if p := g.Place(session.ID(rune('a' + 299))); p.Position != 298 {
			t.Errorf("%+v", p)
		}
	})
}

func TestNilGateAdmits(t *testing.T) {
	t.Parallel()
	var g *Gate
	g.OnGrant(nil)
	g.Leave("x")
	g.Arrived(session.State{})
	if _, err := g.Reserve("ada", "x"); err != nil || !g.Enter(entry("x", "ada")) || g.GiveWay(entry("x", "ada"), true) || g.Place("x") != nil || g.Waits("x") || g.Waiting() != 0 {
		t.Error("it does not")
	}
}

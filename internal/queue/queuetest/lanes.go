package queuetest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"deckhand/internal/queue"
)

func (s *suite) lanes() {
	want := queue.Lane{Name: "x", User: "maria", Waiting: 2, DueAt: at(1), Holder: "h", Until: at(2), Claim: 1 << 50}
	put := func(l queue.Lane) { s.Helper(); s.update(func(tx queue.Tx) error { return tx.PutLane(l) }) }
	put(want)
	s.equal(s.lane("x"), want)
	s.view(func(tx queue.Tx) error {
		held, err := tx.Held()
		s.equal(held, []queue.Lane{want})
		return err
	})
	want.Holder, want.Until, want.DueAt = "", time.Time{}, time.Time{}
	put(want)
	s.equal(s.lane("x"), want)
	want.Waiting = 0
	put(want)
	s.equal(s.lane("x"), queue.Lane{})
	s.view(func(tx queue.Tx) error {
		held, err := tx.Held()
		s.equal(len(held), 0)
		return err
	})
}

// isReady compares the lanes that are ready, and when there will be another.
func (s *suite) isReady(now time.Time, next time.Time, want ...string) {
	s.Helper()
	s.view(func(tx queue.Tx) error {
		found, then, err := tx.Ready(now, 100)
		var got []string
		for _, l := range found {
			got = append(got, l.Name)
		}
		s.equal(got, want)
		s.equal(then, next)
		return err
	})
}

func (s *suite) ready() {
	s.update(func(tx queue.Tx) error {
		return errors.Join(
			tx.PutLane(queue.Lane{Name: "second", User: "maria", Waiting: 1, DueAt: at(2)}),
			tx.PutLane(queue.Lane{Name: "first", User: "otto", Waiting: 1, DueAt: at(1)}),
			tx.PutLane(queue.Lane{Name: "never", User: "maria", Waiting: 1}),
			tx.PutLane(queue.Lane{Name: "held", User: "maria", Waiting: 1, DueAt: at(1), Holder: "h", Until: at(5)}))
	})
	s.isReady(at(0), at(1))
	s.isReady(at(1), at(2), "first")
	s.isReady(at(3), at(5), "first", "second")
	s.isReady(at(5), time.Time{}, "first", "second", "held")
	s.view(func(tx queue.Tx) error {
		found, _, err := tx.Ready(at(5), 2)
		s.equal(len(found), 2)
		return err
	})
	s.DisableUser("otto")
	s.isReady(at(1), at(2))
	s.isReady(at(3), at(5), "second")
}

func (s *suite) pushing() {
	late, early := item("a", "late"), item("a", "early")
	late.NextAt = at(9)
	s.push(late, "maria")
	s.equal(s.lane("lane of a"), queue.Lane{Name: "lane of a", User: "maria", Waiting: 1, DueAt: at(9)})
	s.push(early, "maria")
	s.equal(s.lane("lane of a"), queue.Lane{Name: "lane of a", User: "maria", Waiting: 2, DueAt: at(1)})
	never := item("a", "never")
	never.NextAt = time.Time{}
	s.push(never, "maria")
	s.equal(s.lane("lane of a").Waiting, 2)
	for id, g := range map[string]queue.Gate{"quiet": {NotBefore: at(3)}, "closed": {Closed: true}} {
		it := item("a", id)
		it.Lane = id
		s.update(func(tx queue.Tx) error {
			_, _, _, err := queue.Push(tx, it, "maria", g)
			return err
		})
	}
	s.equal(s.lane("quiet").DueAt, at(3))
	s.equal(s.lane("closed").DueAt, time.Time{})
}

func (s *suite) arming() {
	s.push(item("a", "1"), "maria")
	arm := func(g queue.Gate) queue.Lane {
		s.Helper()
		s.update(func(tx queue.Tx) error { return queue.Arm(tx, "lane of a", "maria", g) })
		return s.lane("lane of a")
	}
	s.equal(arm(queue.Gate{Closed: true}), queue.Lane{Name: "lane of a", User: "maria", Waiting: 1})
	s.equal(arm(queue.Gate{NotBefore: at(4)}).DueAt, at(4))
	s.equal(arm(queue.Gate{}).DueAt, at(1))
	it, _ := s.find("a", "1")
	it.NextAt = time.Time{}
	s.update(func(tx queue.Tx) error { _, err := tx.Put(it); return err })
	s.equal(arm(queue.Gate{}), queue.Lane{})
	s.equal(arm(queue.Gate{}), queue.Lane{})
}

// take claims a lane.
func (s *suite) take(holder string, now, until time.Time, lane string) (taken []queue.Lane) {
	s.Helper()
	s.update(func(tx queue.Tx) (err error) {
		taken, err = queue.Take(tx, holder, now, until, queue.Lane{Name: lane})
		return err
	})
	return taken
}

func (s *suite) claims() {
	s.push(item("a", "1"), "maria")
	got := s.take("one", at(1), at(2), "lane of a")
	if len(got) != 1 {
		s.Fatalf("%+v", got)
	}
	c := got[0].Claimed()
	s.equal(s.lane("lane of a"), queue.Lane{Name: "lane of a", User: "maria", Waiting: 1, DueAt: at(1), Holder: "one", Until: at(2), Claim: c.Number})
	s.isReady(at(1), at(2))
	s.equal(len(s.take("two", at(1), at(2), "lane of a")), 0)
	s.push(item("a", "2"), "maria") // a new item does not change it
	s.isReady(at(1), at(2))
	s.update(func(tx queue.Tx) error { return queue.Renew(tx, at(5), c) })
	s.isReady(at(2), at(5))
	s.update(c.Release)
	s.isReady(at(2), time.Time{}, "lane of a")

	// A lane in which nothing waits can be claimed too, and leaves nothing behind.
	got = s.take("one", at(1), at(2), "unknown")
	s.equal(len(got), 1)
	s.equal(len(s.take("two", at(1), at(2), "unknown")), 0)
	s.update(got[0].Claimed().Release)
	s.equal(s.lane("unknown"), queue.Lane{})
}

func (s *suite) oneClaims() {
	s.push(item("a", "1"), "maria")
	var all sync.WaitGroup
	got := make(chan queue.Lane, 8)
	for i := range cap(got) {
		all.Go(func() {
			for _, l := range s.take(fmt.Sprint("holder ", i), at(1), at(2), "lane of a") {
				got <- l
			}
		})
	}
	all.Wait()
	if len(got) != 1 {
		s.Fatalf("%d have claimed the lane", len(got))
	}
	s.equal(s.lane("lane of a").Holder, (<-got).Holder)
}

// lost: who is taken for dead can change nothing any more.
func (s *suite) lost() {
	s.push(item("a", "1"), "maria")
	old := s.take("one", at(1), at(2), "lane of a")[0].Claimed()
	holds := func(c queue.Claim) (yes bool) {
		s.Helper()
		s.update(func(tx queue.Tx) (err error) {
			yes, err = c.Holds(tx)
			return err
		})
		return yes
	}
	s.equal(holds(old), true)
	taken := s.take("two", at(2), at(3), "lane of a")
	if len(taken) != 1 {
		s.Fatal("a claim does not end")
	}
	s.equal(holds(old), false)
	s.update(old.Release)
	s.update(func(tx queue.Tx) error { return queue.Renew(tx, at(9), old) })
	s.equal(s.lane("lane of a").Until, at(3))
	s.equal(holds(taken[0].Claimed()), true)
	s.equal(holds(queue.Claim{}), true)

	// Free takes the lanes of the dead alone.
	s.update(func(tx queue.Tx) error { return queue.Free(tx, func(holder string) bool { return holder == "two" }) })
	s.equal(holds(taken[0].Claimed()), true)
	s.update(func(tx queue.Tx) error { return queue.Free(tx, func(string) bool { return false }) })
	s.equal(holds(taken[0].Claimed()), false)
	s.isReady(at(2), time.Time{}, "lane of a")
}

func (s *suite) reopen() {
	if s.Reopen == nil {
		s.Skip("the store does not survive its process")
	}
	want := s.push(item("a", "1"), "maria")
	s.take("one", at(1), at(2), "lane of a")
	lane := s.lane("lane of a")
	s.Store = s.Reopen()
	got, _ := s.find("a", "1")
	s.equal(got, want)
	s.equal(s.lane("lane of a"), lane)
}

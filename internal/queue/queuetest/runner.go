package queuetest

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"deckhand/internal/cluster"
	"deckhand/internal/queue"
)

// run works on the queue until stop is called, which waits for the end.
func (s *suite) run(r queue.Runner) (stop func()) {
	r.Store, r.Added, r.Logger = s.Store, s.Added, slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := r.Run(ctx); err != nil {
			s.Error(err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	s.Cleanup(stop)
	return stop
}

// settle does the first item of a lane: it is taken up again after a while, or never if that is 0.
func (s *suite) settle(l queue.Lane, again time.Duration) (done queue.Item) {
	err := s.Store.Update(context.Background(), func(tx queue.Tx) error {
		if holds, err := l.Claimed().Holds(tx); err != nil || !holds {
			return fmt.Errorf("the claim is lost: %w", err)
		}
		it, found, err := tx.First(l.Name)
		if err != nil || !found {
			return fmt.Errorf("nothing waits in %s: %w", l.Name, err)
		}
		done = it
		it.NextAt, it.Open = time.Time{}, false
		if again > 0 {
			it.NextAt, it.Open = time.Now().Add(again), true
		}
		it.Attempts++
		if _, err := tx.Put(it); err != nil {
			return err
		}
		if err := queue.Arm(tx, l.Name, l.User, queue.Gate{}); err != nil {
			return err
		}
		return l.Claimed().Release(tx)
	})
	if err != nil {
		s.Error(err)
	}
	return done
}

// allDone: every item is done once, those of a lane one after the other and in order,
// also if it comes while others are done.
func (s *suite) allDone() {
	const lanes, each = 5, 8
	var mu sync.Mutex
	at, last := map[string]int{}, map[string]int64{}
	done := make(chan string, lanes*each)
	add := func(from, to int) {
		for i := from; i < to; i++ {
			for lane := range lanes {
				it := item("a", fmt.Sprint(lane, " ", i))
				it.Lane, it.NextAt = fmt.Sprint("lane ", lane), Noon.Add(time.Duration(i)*time.Second)
				s.push(it, "maria")
			}
		}
	}
	add(0, each/2)
	s.run(queue.Runner{AtOnce: 3, Work: func(_ context.Context, l queue.Lane) bool {
		mu.Lock()
		if at[l.Name]++; at[l.Name] > 1 {
			s.Errorf("%d work on %s", at[l.Name], l.Name)
		}
		mu.Unlock()
		it := s.settle(l, 0)
		mu.Lock()
		at[l.Name]--
		if it.Seq <= last[l.Name] {
			s.Errorf("%d was done after %d", it.Seq, last[l.Name])
		}
		last[l.Name] = it.Seq
		mu.Unlock()
		done <- it.ID
		return true
	}})
	add(each/2, each)
	seen := map[string]bool{}
	for range lanes * each {
		id := <-done
		if seen[id] {
			s.Errorf("%s was done twice", id)
		}
		seen[id] = true
	}
}

// deadHolder: what a process had claimed when it died is done by the next, at once.
func (s *suite) deadHolder() {
	s.push(item("a", "1"), "maria")
	dead := s.take("dead", time.Now(), time.Now().Add(time.Hour), "lane of a")[0]
	done := make(chan string, 1)
	stop := s.run(queue.Runner{AtOnce: 1, Work: func(_ context.Context, l queue.Lane) bool {
		done <- s.settle(l, 0).ID
		return true
	}})
	s.equal(<-done, "1")
	stop()
	s.update(func(tx queue.Tx) error {
		holds, err := dead.Claimed().Holds(tx)
		s.equal(holds, false)
		return err
	})
}

// fair: an owner whose work never ends delays only itself.
func (s *suite) fair() {
	for i := range 6 {
		it := item("a", fmt.Sprint(i))
		it.Lane = "maria " + it.ID
		s.push(it, "maria")
	}
	slow, fast := make(chan string, 6), make(chan string, 1)
	stop := s.run(queue.Runner{AtOnce: 4, PerUser: 2, Work: func(ctx context.Context, l queue.Lane) bool {
		if l.User == "otto" {
			fast <- s.settle(l, 0).ID
			return true
		}
		slow <- l.Name
		<-ctx.Done()
		return false
	}})
	for range 2 {
		<-slow
	}
	s.push(item("b", "his"), "otto")
	s.equal(<-fast, "his")
	stop()
	s.equal(len(slow), 0)
	s.view(func(tx queue.Tx) error {
		held, err := tx.Held()
		s.equal(len(held), 0) // what was broken off can be claimed again
		return err
	})
}

// liveHolder: the claims of live members are kept when a Runner starts; those of others are not.
func (s *suite) liveHolder() {
	s.push(item("a", "1"), "maria")
	s.push(item("b", "2"), "otto")
	later := time.Now().Add(time.Hour)
	s.take("other", time.Now(), later, "lane of a")
	s.take("dead", time.Now(), later, "lane of b")
	members := cluster.NewMemory(0, nil)
	for _, name := range []string{"mine", "other"} {
		if err := members.Hold(context.Background(), name); err != nil {
			s.Fatal(err)
		}
	}
	done := make(chan string, 2)
	work := func(_ context.Context, l queue.Lane) bool {
		done <- s.lane(l.Name).Holder + ": " + s.settle(l, 0).ID
		return true
	}
	stop := s.run(queue.Runner{AtOnce: 2, Work: work, Member: queue.Member{Name: "mine", Live: members.Live}})
	s.equal(<-done, "mine: 2")
	stop()
	s.equal(s.lane("lane of a").Holder, "other")
	if err := members.Release(context.Background(), "other"); err != nil {
		s.Fatal(err)
	}
	s.run(queue.Runner{AtOnce: 2, Work: work, Member: queue.Member{Name: "mine", Live: members.Live}})
	s.equal(<-done, "mine: 1")
}

// again: what is to be tried later is, and the work has an end.
func (s *suite) again() {
	s.push(item("a", "1"), "maria")
	attempts := make(chan int, 10)
	n := 0
	stop := s.run(queue.Runner{AtOnce: 1, Work: func(_ context.Context, l queue.Lane) bool {
		again := time.Millisecond
		if n++; n == 3 {
			again = 0
		}
		attempts <- s.settle(l, again).Attempts
		return true
	}})
	for want := range 3 {
		s.equal(<-attempts, 3+want)
	}
	stop()
	s.equal(len(attempts), 0)
	it, _ := s.find("a", "1")
	s.equal(it.Attempts, 6)
	s.equal(s.lane("lane of a"), queue.Lane{})
}

// stopped: what is under way when Run ends is left to the next Run, which does it.
func (s *suite) stopped() {
	s.push(item("a", "1"), "maria")
	begun := make(chan string, 1)
	stop := s.run(queue.Runner{AtOnce: 1, Work: func(ctx context.Context, l queue.Lane) bool {
		begun <- l.Name
		<-ctx.Done()
		return false
	}})
	<-begun
	stop()
	it, _ := s.find("a", "1")
	s.equal(it.NextAt, at(1))
	done := make(chan string, 1)
	s.run(queue.Runner{AtOnce: 1, Work: func(_ context.Context, l queue.Lane) bool {
		done <- s.settle(l, 0).ID
		return true
	}})
	s.equal(<-done, "1")
}

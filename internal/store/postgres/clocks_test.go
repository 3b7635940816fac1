package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"deckhand/internal/cluster"
	"deckhand/internal/queue"
	"deckhand/internal/store/postgres/pgtest"
)

// worker is a server with a clock of its own, and its part of a queue.
type worker struct {
	*testing.T
	opened
	queue.Store
	clock func() time.Time
	done  chan string // lanes
}

func workerAt(t *testing.T, address string, differs time.Duration) *worker {
	w := &worker{T: t, opened: openAt(t, address), clock: func() time.Time { return time.Now().Add(differs) }, done: make(chan string, 10)}
	w.DB.Clock, w.Store = w.clock, w.Queue("work")
	return w
}

// push adds an item that is due now.
func (w *worker) push(lane string) {
	w.Helper()
	must(w.T, w.Update(w.Context(), func(tx queue.Tx) error {
		_, _, _, err := queue.Push(tx, queue.Item{Owner: "a", ID: lane, Lane: lane, Open: true, CreatedAt: w.clock(), NextAt: w.clock()}, "maria", queue.Gate{})
		return err
	}))
}

// run works on the queue until stop is called. stop waits until it has ended.
func (w *worker) run(name string, places int, members cluster.Leases, before func(lane string)) (stop func()) {
	must(w.T, members.Hold(w.Context(), name))
	r := queue.Runner{Store: w.Store, Logger: slog.New(slog.DiscardHandler), AtOnce: places, Clock: w.clock, Member: queue.Member{Name: name, Live: members.Live, Shared: true},
		Work: func(ctx context.Context, l queue.Lane) bool {
			before(l.Name)
			err := w.Update(context.WithoutCancel(ctx), func(tx queue.Tx) error {
				it, found, err := tx.First(l.Name)
				if err != nil || !found || it.NextAt.After(w.clock()) {
					return err
				}
				it.NextAt, it.Open = time.Time{}, false
				if _, err = tx.Put(it); err == nil {
					err = queue.Arm(tx, l.Name, l.User, queue.Gate{})
				}
				return err
			})
			if err != nil {
				w.Error(err)
			}
			w.done <- l.Name
			return false
		}}
	ctx, cancel := context.WithCancel(w.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := r.Run(ctx); err != nil {
			w.Error(err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	w.Cleanup(stop)
	return stop
}

// Servers whose clocks differ by hours neither take work in progress from another server nor delay due work.
func TestQueueWithOtherClocks(t *testing.T) {
	t.Parallel()
	for name, differs := range map[string]time.Duration{"ahead": 2 * time.Hour, "behind": -2 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := pgtest.Shared(t).Copy(t, base)
			right, other := workerAt(t, address, 0), workerAt(t, address, differs)
			right.addUser(t)("maria")
			must(t, right.Update(t.Context(), func(tx queue.Tx) error { return tx.AddOwner("a", "maria") }))
			for i, servers := range [][2]*worker{{right, other}, {other, right}} {
				holder, next := servers[0], servers[1]
				held, free := fmt.Sprint("held ", i), fmt.Sprint("free ", i)
				members, begun, end := cluster.NewMemory(0, nil), make(chan string, 1), make(chan struct{})
				next.push(held)
				stop := holder.run("holder", 1, members, func(lane string) { begun <- lane; <-end })
				<-begun
				holder.push(free) // the holder has no place left
				stopNext := next.run("next", 2, members, func(string) {})
				if lane := <-next.done; lane != free {
					t.Errorf("%s was done twice", lane)
				}
				stopNext()
				if len(next.done) > 0 {
					t.Errorf("%s was done twice", <-next.done)
				}
				close(end)
				if lane := <-holder.done; lane != held {
					t.Errorf("the holder did %s", lane)
				}
				stop()
			}
		})
	}
}

//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"deckhand/torture/check"
	"deckhand/torture/fault"
	"deckhand/torture/report"
)

// Times between two faults of a lane.
const (
	mostBetween     = 600 * time.Millisecond
	mostSurrounding = 3 * time.Second
)

// random is the source of chance of a part of the run.
func random(seed, part uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, part)) }

// faults injects faults until enough processes were killed.
func (r *run) faults(ctx context.Context) error {
	ctx, r.end = context.WithCancel(ctx)
	defer r.end()
	around, stop := context.WithCancel(ctx)
	defer stop()
	failed := make(chan error, 1)
	var wait sync.WaitGroup
	lanes := r.lanes()
	wait.Go(func() {
		failed <- r.lane(around, lanes[1], r.scene(1), mostSurrounding, func() bool { return true })
	})
	err := r.lane(ctx, lanes[0], r.scene(0), mostBetween, func() bool { return r.killed() < r.kills })
	stop()
	wait.Wait()
	if err == nil {
		err = <-failed
	}
	return err
}

// lanes are the faults that happen one after the other, two lists at the same time.
func (r *run) lanes() [2][]fault.Fault {
	return [2][]fault.Fault{r.possible(fault.Processes), r.possible(fault.Surroundings)}
}

// killed counts the kills so far.
func (r *run) killed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, e := range r.history {
		if e.Kill {
			n++
		}
	}
	return n
}

// possible are the faults that this run can have.
func (r *run) possible(all []fault.Fault) []fault.Fault {
	return slices.DeleteFunc(slices.Clone(all), func(f fault.Fault) bool {
		return f.Possible != nil && !f.Possible(r.world) || len(r.only) > 0 && !slices.Contains(r.only, f.Name)
	})
}

// lane injects one fault after the other while more says so.
func (r *run) lane(ctx context.Context, from []fault.Fault, scene *fault.Scene, most time.Duration, more func() bool) error {
	if len(from) == 0 {
		<-ctx.Done()
		return nil
	}
	for more() {
		wait := time.Duration(scene.Random.Int64N(int64(most)))
		f := choose(from, scene.Random)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
		begin := time.Now()
		// A fault is repaired before its lane ends, so it does not get a context that ends.
		what, err := f.Inject(context.WithoutCancel(ctx), scene)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		if what == "" {
			continue
		}
		r.noteGroups()
		r.record(f, what, begin)
	}
	return nil
}

// record adds a fault to the history, with the time until writes are accepted again.
func (r *run) record(f fault.Fault, what string, begin time.Time) {
	entry := report.Entry{At: begin.Sub(r.begin), Name: f.Name, What: what, Kill: f.Kills, Lasted: time.Since(begin)}
	if f.Kills || f.Name == "stop-server" || f.Name == "full-disk" || f.Name == "silent-database" {
		waiting, stop := context.WithTimeout(r.root, 3*time.Minute)
		took, ok := r.prober.Recovered(waiting, time.Now())
		stop()
		if entry.Recovery = took; !ok && r.root.Err() == nil {
			r.violated(check.Violation{Rule: check.RuleUnavailable, Detail: "no write was accepted for 3 minutes after " + f.Name + " " + what}, nil)
		}
	}
	r.mu.Lock()
	r.history = append(r.history, entry)
	n := len(r.history)
	r.mu.Unlock()
	if n%50 == 0 {
		fmt.Printf("torture: %d faults, %d kills, %d conversations, %v\n", n, r.killed(), r.crowd.Conversations.Load(), time.Since(r.begin).Round(time.Second))
	}
}

// choose picks a fault by weight.
func choose(from []fault.Fault, random *rand.Rand) fault.Fault {
	sum := 0
	for _, f := range from {
		sum += f.Weight
	}
	n := random.IntN(sum)
	for _, f := range from {
		if n -= f.Weight; n < 0 {
			return f
		}
	}
	return from[0]
}

// Package clustertest is the suite that every implementation of cluster.Leases
// and cluster.Wakes must pass.
package clustertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"deckhand/internal/cluster"
)

// Rig is a new cluster without members.
type Rig struct {
	// Process is the cluster as one process sees it. Each call is another process.
	Process func() Process
	// Advance moves the clock of the leases forward.
	Advance func(time.Duration)
}

// Process is one process's view of the cluster.
type Process struct {
	cluster.Leases
	cluster.Wakes
}

// Run runs the suite. open makes a new cluster, with leases that end, and removes
// it with t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) Rig) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, Rig)
	}{
		{"Hold", hold},
		{"Expire", expire},
		{"Renew", renew},
		{"RenewTooLate", renewTooLate},
		{"Release", release},
		{"HoldTogether", holdTogether},
		{"Cancelled", cancelled},
		{"Others", others},
		{"Wakes", wakes},
		{"WakesInOrder", wakesInOrder},
		{"Unsubscribe", unsubscribe},
		{"SlowSubscriber", slowSubscriber},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// live checks who is alive, as every process sees it.
func live(t *testing.T, all []Process, want ...string) {
	t.Helper()
	for i, p := range all {
		got, err := p.Live(t.Context())
		must(t, err)
		if !slices.Equal(got, want) {
			t.Fatalf("process %d says that %q are alive, want %q", i, got, want)
		}
	}
}

func two(r Rig) (a, b Process, all []Process) {
	a, b = r.Process(), r.Process()
	return a, b, []Process{a, b}
}

func hold(t *testing.T, r Rig) {
	a, b, all := two(r)
	if a.Duration() <= 0 {
		t.Fatalf("leases last for %v: the suite needs leases that end", a.Duration())
	}
	live(t, all)
	must(t, b.Hold(t.Context(), "b"))
	live(t, all, "b")
	must(t, a.Hold(t.Context(), "a"))
	must(t, a.Hold(t.Context(), "a"))
	live(t, all, "a", "b")
}

// expire: a lease lasts for its duration, and not longer.
func expire(t *testing.T, r Rig) {
	a, b, all := two(r)
	must(t, a.Hold(t.Context(), "a"))
	r.Advance(a.Duration() / 2)
	must(t, b.Hold(t.Context(), "b"))
	r.Advance(a.Duration()/2 - time.Millisecond)
	live(t, all, "a", "b")
	r.Advance(time.Millisecond)
	live(t, all, "b")
	r.Advance(a.Duration())
	live(t, all)
}

func renew(t *testing.T, r Rig) {
	a, b, all := two(r)
	must(t, a.Hold(t.Context(), "a"))
	must(t, b.Hold(t.Context(), "b"))
	for range 5 {
		r.Advance(a.Duration() * 2 / 3)
		must(t, a.Renew(t.Context(), "a"))
	}
	live(t, all, "a")
	r.Advance(a.Duration())
	live(t, all)
	// Hold renews, too.
	must(t, a.Hold(t.Context(), "a"))
	r.Advance(a.Duration() * 2 / 3)
	must(t, a.Hold(t.Context(), "a"))
	r.Advance(a.Duration() * 2 / 3)
	live(t, all, "a")
}

// renewTooLate: a member learns that it was taken for dead, and is not alive
// again before it holds a new lease.
func renewTooLate(t *testing.T, r Rig) {
	a, _, all := two(r)
	if err := a.Renew(t.Context(), "a"); !errors.Is(err, cluster.ErrExpired) {
		t.Fatalf("renewing what was never held: %v, want ErrExpired", err)
	}
	must(t, a.Hold(t.Context(), "a"))
	r.Advance(a.Duration())
	for range 2 {
		if err := a.Renew(t.Context(), "a"); !errors.Is(err, cluster.ErrExpired) {
			t.Fatalf("renewing too late: %v, want ErrExpired", err)
		}
		live(t, all)
	}
	must(t, a.Hold(t.Context(), "a"))
	live(t, all, "a")
	must(t, a.Renew(t.Context(), "a"))
}

func release(t *testing.T, r Rig) {
	a, b, all := two(r)
	must(t, a.Release(t.Context(), "a"))
	must(t, a.Hold(t.Context(), "a"))
	must(t, b.Hold(t.Context(), "b"))
	must(t, a.Release(t.Context(), "a"))
	live(t, all, "b")
	if err := a.Renew(t.Context(), "a"); !errors.Is(err, cluster.ErrExpired) {
		t.Errorf("renewing what was released: %v, want ErrExpired", err)
	}
	must(t, a.Release(t.Context(), "a"))
	live(t, all, "b")
	must(t, a.Hold(t.Context(), "a"))
	live(t, all, "a", "b")
}

func holdTogether(t *testing.T, r Rig) {
	const n = 8
	done := make(chan error, n)
	all, want := make([]Process, n), make([]string, n)
	for i := range n {
		all[i], want[i] = r.Process(), fmt.Sprint("m", i)
		go func() {
			done <- errors.Join(all[i].Hold(context.Background(), want[i]), all[i].Renew(context.Background(), want[i]))
		}()
	}
	for range n {
		must(t, <-done)
	}
	live(t, all, want...)
}

func cancelled(t *testing.T, r Rig) {
	a := r.Process()
	must(t, a.Hold(t.Context(), "a"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.Hold(ctx, "b"); err == nil {
		t.Error("Hold ignores that its context has ended")
	}
	if err := a.Renew(ctx, "a"); err == nil || errors.Is(err, cluster.ErrExpired) {
		t.Errorf("Renew: %v", err)
	}
	if _, err := a.Live(ctx); err == nil {
		t.Error("Live ignores that its context has ended")
	}
}

func others(t *testing.T, r Rig) {
	a := r.Process()
	for _, name := range []string{"a", "b", "c"} {
		must(t, a.Hold(t.Context(), name))
	}
	for member, want := range map[string][]string{"a": {"b", "c"}, "b": {"a", "c"}, "x": {"a", "b", "c"}} {
		got, err := cluster.Others(t.Context(), a, member)
		must(t, err)
		if !slices.Equal(got, want) {
			t.Errorf("others than %s: %q, want %q", member, got, want)
		}
	}
}

// subscribe collects the wakes of a member until the test ends.
func subscribe(t *testing.T, p Process, member string) <-chan cluster.Wake {
	t.Helper()
	got := make(chan cluster.Wake, 1000)
	stop, err := p.Subscribe(member, func(w cluster.Wake) { got <- w })
	must(t, err)
	t.Cleanup(stop)
	return got
}

// patience only ends a test that hangs.
const patience = 2 * time.Minute

func next(t *testing.T, got <-chan cluster.Wake) cluster.Wake {
	t.Helper()
	select {
	case w := <-got:
		return w
	case <-time.After(patience):
		t.Fatal("no wake came")
		return cluster.Wake{}
	}
}

// wakes reach every other member whole, and not the one that publishes.
func wakes(t *testing.T, r Rig) {
	a, b, _ := two(r)
	atA, atB, atC := subscribe(t, a, "a"), subscribe(t, b, "b"), subscribe(t, b, "c")
	all := []cluster.Wake{
		{Kind: cluster.Grew, From: "a", Session: "s1", Last: 1 << 40},
		{Kind: cluster.RowChanged, From: "a", Session: "s2", Last: 7, Holder: "b"},
		{Kind: cluster.Interrupt, From: "a", Session: "s1", Last: 8},
		{Kind: cluster.MemberLeft, From: "a"},
	}
	for _, w := range all {
		a.Publish(w)
	}
	for _, got := range []<-chan cluster.Wake{atB, atC} {
		for _, want := range all {
			if w := next(t, got); w != want {
				t.Errorf("got %+v, want %+v", w, want)
			}
		}
	}
	// What comes first at the publisher is what another one says.
	mark := cluster.Wake{Kind: cluster.Grew, From: "b", Session: "mark"}
	b.Publish(mark)
	if w := next(t, atA); w != mark {
		t.Errorf("the publisher got %+v", w)
	}
}

func wakesInOrder(t *testing.T, r Rig) {
	const n = 200
	a, b, _ := two(r)
	got := subscribe(t, r.Process(), "c")
	done := make(chan struct{}, 2)
	for _, p := range []struct {
		Process
		name string
	}{{a, "a"}, {b, "b"}} {
		go func() {
			defer func() { done <- struct{}{} }()
			for i := range int64(n) {
				p.Publish(cluster.Wake{Kind: cluster.Grew, From: p.name, Session: "s", Last: i + 1})
			}
		}()
	}
	<-done
	<-done
	last := map[string]int64{}
	for range 2 * n {
		w := next(t, got)
		if w.Last != last[w.From]+1 {
			t.Fatalf("%s: %d comes after %d", w.From, w.Last, last[w.From])
		}
		last[w.From] = w.Last
	}
}

func unsubscribe(t *testing.T, r Rig) {
	a, b, _ := two(r)
	stays := subscribe(t, b, "stays")
	var heard atomic.Int64
	first := make(chan struct{}, 10)
	stop, err := b.Subscribe("goes", func(cluster.Wake) { heard.Add(1); first <- struct{}{} })
	must(t, err)
	a.Publish(cluster.Wake{Kind: cluster.Grew, From: "a", Last: 1})
	select {
	case <-first:
	case <-time.After(patience):
		t.Fatal("no wake came")
	}
	stop()
	stop()
	a.Publish(cluster.Wake{Kind: cluster.Grew, From: "a", Last: 2})
	for want := range int64(2) {
		if w := next(t, stays); w.Last != want+1 {
			t.Errorf("got %+v", w)
		}
	}
	if n := heard.Load(); n != 1 {
		t.Errorf("%d wakes, want 1", n)
	}
}

// slowSubscriber: one that does not return holds up neither those that publish
// nor other subscribers.
func slowSubscriber(t *testing.T, r Rig) {
	a, b, _ := two(r)
	busy, release := make(chan struct{}, 1), make(chan struct{})
	stop, err := b.Subscribe("slow", func(cluster.Wake) {
		select {
		case busy <- struct{}{}:
		default:
		}
		<-release
	})
	must(t, err)
	defer stop()
	defer close(release)
	fast := subscribe(t, b, "fast")
	for i := range int64(5000) { // more than anything that waits in between can hold
		a.Publish(cluster.Wake{Kind: cluster.Grew, From: "a", Last: i})
		next(t, fast)
	}
	<-busy
}

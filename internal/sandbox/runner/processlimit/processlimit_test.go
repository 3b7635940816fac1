package processlimit

import (
	"maps"
	"slices"
	"testing"
	"time"

	"deckhand/internal/sandbox/runner/processes"
)

// steps looks so often, a quarter of a second apart, and counts how often a sandbox must be
// relieved.
func steps(p *pressure, now *time.Time, n int, full func(i int) bool) (times int) {
	for i := range n {
		*now = now.Add(lookSoon)
		if p.look(*now, full(i)) {
			times++
			p.relieved(*now, false)
		}
	}
	return times
}

// A build that meets the limit now and then is not ended; a bomb is, also if its processes come
// and go, and sooner if it comes back.
func TestPressure(t *testing.T) {
	t.Parallel()
	now := time.Now()
	always := func(int) bool { return true }
	p := &pressure{at: now}
	if n := steps(p, &now, 12, always); n != 0 {
		t.Error("3 seconds at the limit are too long")
	}
	if n := steps(p, &now, 400, func(i int) bool { return i%5 < 2 }); n != 0 {
		t.Error("a sandbox that can usually start processes was relieved")
	}
	if n := steps(p, &now, 20, always); n != 1 {
		t.Errorf("5 seconds at the limit: relieved %d times", n)
	}
	if n := steps(p, &now, 20, always); n != 3 || p.times != 4 {
		t.Errorf("5 seconds more: relieved %d times, then %d", n, p.times)
	}
	p = &pressure{at: now}
	if n := steps(p, &now, 40, func(i int) bool { return i%4 < 3 }); n != 1 {
		t.Errorf("with gaps: relieved %d times", n)
	}
}

// Processes belong to the running command if they descend from it, whatever their group and session,
// and otherwise to what an earlier command left.
func TestUnits(t *testing.T) {
	t.Parallel()
	const self, shell, tool, loop = 1, 10, 20, 30
	all := []processes.Process{
		{PID: self}, {PID: 2},
		{PID: shell, Parent: self, Group: shell, Session: shell, Start: 100},
		{PID: 11, Parent: shell, Group: 11, Session: shell, Start: 150}, // started by the command before
		{PID: 12, Parent: self, Group: 11, Session: shell, Start: 900},  // its orphan
		{PID: 13, Parent: shell, Group: 13, Session: shell, Start: 300}, // in the foreground
		{PID: 14, Parent: 13, Group: 14, Session: 14, Start: 310},       // with a session of its own
		{PID: 15, Parent: shell, Group: 15, Session: shell, Start: 320}, // in the background of the command
		{PID: 16, Parent: self, Group: 13, Session: shell, Start: 330},  // an orphan in the foreground
		{PID: 17, Parent: self, Group: 17, Session: 17, Start: 340},
		{PID: tool, Parent: self, Group: tool, Session: 0, Start: 100},
		{PID: 21, Parent: tool, Group: tool, Session: 0, Start: 400},
		{PID: loop, Parent: loop + 1, Session: 31}, {PID: loop + 1, Parent: loop, Session: 31}, // read at different moments
	}
	for i := range all {
		all[i].Threads = 1
	}
	units := Units(all, self, []Leader{{PID: shell, Foreground: 13, Began: 200}, {PID: tool}})
	want := map[Unit][]int{{Leader: shell}: {11, 12}, {shell, true}: {13, 14, 15, 16}, {}: {17, loop, loop + 1}, {Leader: tool}: {21}}
	got := map[Unit][]int{}
	for u, all := range units {
		for _, p := range all {
			got[u] = append(got[u], p.PID)
		}
	}
	if !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%v", got)
	}
	if got := Choose(units, 15); !slices.Equal(got, []Unit{{shell, true}}) {
		t.Errorf("at a limit of 15 the units are %v", got)
	}
	if got := Choose(units, 8); !slices.Equal(got, []Unit{{shell, true}, {}}) {
		t.Errorf("at a limit of 8 the units are %v", got)
	}
}

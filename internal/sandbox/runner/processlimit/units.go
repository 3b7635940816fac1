package processlimit

import (
	"cmp"
	"maps"
	"slices"

	"deckhand/internal/sandbox/runner/processes"
)

// Leader is a shell or another program that the runner started.
type Leader struct {
	PID int
	// Foreground is the process group that the terminal of a shell belongs to.
	Foreground int
	// Began is when the running command began, as processes.Now counts time; 0 if none runs.
	Began int64
}

// Unit is what is ended together.
type Unit struct {
	// Leader is the PID of the program that it comes from. 0 stands for programs that left the
	// session of their shell, and whose parents have ended.
	Leader int
	// Running means the running command of a shell, and not what earlier ones left behind.
	Running bool
}

// Units sorts processes by where they come from, without the leaders themselves. self is the
// runner, which inherits orphans.
func Units(all []processes.Process, self int, leaders []Leader) map[Unit][]processes.Process {
	known := make(map[int]processes.Process, len(all))
	for _, p := range all {
		known[p.PID] = p
	}
	led := map[int]Leader{}
	for _, l := range leaders {
		led[l.PID] = l
	}
	units := map[Unit][]processes.Process{}
	for _, p := range all {
		_, leads := led[p.PID]
		if p.PID == self || leads || p.Parent == 0 { // what has no parent came from outside
			continue
		}
		u := origin(p, known, led)
		units[u] = append(units[u], p)
	}
	return units
}

// origin finds the unit of a process.
func origin(p processes.Process, known map[int]processes.Process, led map[int]Leader) Unit {
	at := p
	for range known { // what was read at different moments may lead in a circle
		if l, ok := led[at.Session]; ok && l.Began > 0 && at.Group == l.Foreground {
			return Unit{l.PID, true}
		}
		if l, ok := led[at.Parent]; ok {
			// Of the same moment may be what the command before started last.
			return Unit{l.PID, l.Began > 0 && at.Start > l.Began}
		}
		up, ok := known[at.Parent]
		if !ok {
			break
		}
		at = up
	}
	if l, ok := led[p.Session]; ok {
		return Unit{Leader: l.PID}
	}
	return Unit{}
}

// Choose returns the units to end, the largest first, so that what is left takes up less than
// half of the limit.
func Choose(units map[Unit][]processes.Process, limit int) []Unit {
	size, sum := map[Unit]int{}, 0
	for u, all := range units {
		for _, p := range all {
			size[u] += p.Threads
		}
		sum += size[u]
	}
	order := slices.SortedFunc(maps.Keys(size), func(a, b Unit) int { return cmp.Compare(size[b], size[a]) })
	for i, u := range order {
		if sum*2 < limit {
			return order[:i]
		}
		sum -= size[u]
	}
	return order
}

package processlimit

import (
	"os"
	"slices"
	"syscall"
	"time"

	"deckhand/internal/sandbox/runner/processes"
)

// reapTime is how long what was killed may take to be reaped: it counts until then, and the next
// command must find room.
const (
	reapTime  = time.Second
	reapPause = 20 * time.Millisecond
)

// End kills the units that keep a sandbox full, and returns them. All other processes are stopped
// until release is called. This process must be the first.
func End(limit int, find func() []Leader) (ended []Unit, release func()) {
	// Stopped at once, none can start another while it is found out which ones to end.
	_ = syscall.Kill(-1, syscall.SIGSTOP)
	leaders, list := find(), processes.List()
	units := Units(list, os.Getpid(), leaders)
	ended = Choose(units, limit)
	over := map[int]bool{os.Getpid(): true}
	for _, u := range ended {
		for _, p := range units[u] {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
			over[p.PID] = true
		}
	}
	return ended, func() {
		for _, p := range list {
			if !over[p.PID] && !slices.ContainsFunc(leaders, func(l Leader) bool { return l.PID == p.PID }) {
				_ = syscall.Kill(p.PID, syscall.SIGCONT)
			}
		}
		for _, l := range leaders { // last, because a shell reports a job that is stopped
			_ = syscall.Kill(l.PID, syscall.SIGCONT)
		}
		for end := time.Now().Add(reapTime); processes.Count()*2 >= limit && time.Now().Before(end); {
			time.Sleep(reapPause)
		}
	}
}

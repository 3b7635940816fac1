// Package process measures processor time and memory of processes.
package process

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tick is the unit of processor time in /proc.
const tick = 10 * time.Millisecond

// Used is processor time: of the whole machine, and of this run's part in it.
type Used struct{ all, own time.Duration }

// Usage is what was used until now. A child counts when it has ended.
func Usage() Used {
	var u Used
	stat, _ := os.ReadFile("/proc/stat")
	first, _, _ := strings.Cut(string(stat), "\n")
	for i, f := range strings.Fields(first) {
		if n, err := strconv.Atoi(f); err == nil && i <= 8 && i != 4 && i != 5 { // without idle and waiting for the disk
			u.all += time.Duration(n) * tick
		}
	}
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var r syscall.Rusage
		if syscall.Getrusage(who, &r) == nil {
			u.own += time.Duration(r.Utime.Nano() + r.Stime.Nano())
		}
	}
	return u
}

// Others returns how many cores other programs used between two readings.
func Others(before, after Used, during time.Duration) float64 {
	busy := (after.all - before.all) - (after.own - before.own)
	return max(busy.Seconds()/during.Seconds(), 0)
}

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tick is the unit of processor time in /proc.
const tick = 10 * time.Millisecond

// used is processor time: of the whole machine, and of this run's part in it.
type used struct{ all, own time.Duration }

// usage is what was used until now. A child counts when it has ended.
func usage() used {
	var u used
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

// others is how many cores somebody else used between two looks.
func others(before, after used, during time.Duration) float64 {
	busy := (after.all - before.all) - (after.own - before.own)
	return max(busy.Seconds()/during.Seconds(), 0)
}

// cpu is the processor time that a child has used.
func (c *child) cpu() time.Duration {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
	// The name may hold anything, so the fields are counted from its end.
	_, rest, _ := strings.Cut(string(stat), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return time.Duration(user+system) * tick
}

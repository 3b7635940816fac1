package machine

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// prepareTime is how long a start usually takes, with what goes on after the server listens.
	prepareTime = time.Second
	// settleTime is how long it takes at most, usually.
	settleTime = 3 * time.Second
	// restTime is how often to look whether a busy process has come to rest.
	restTime = 10 * time.Second
)

// Settle ends what CollectOften began. It gives memory back once the start is over, and then each
// time the process comes to rest after it was busy. The runtime would keep much of what a burst of
// requests needed.
func Settle(ctx context.Context) {
	if !sleep(ctx, prepareTime) {
		return
	}
	collectRarely()
	if !sleep(ctx, settleTime-prepareTime) {
		return
	}
	giveBack()
	pace := pace{used: used()}
	for sleep(ctx, restTime) {
		if pace.rested(used(), restTime) {
			giveBack()
		}
	}
}

// sleep is false if ctx has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// pace tells when a process comes to rest.
type pace struct {
	used time.Duration
	busy bool
}

// rested is told the processor time until now, and how long ago it was told the last time. It
// is true once after each busy time.
func (p *pace) rested(used, since time.Duration) bool {
	was, now := p.busy, (used-p.used)*20 > since // a twentieth of a processor is rest
	p.used, p.busy = used, now
	return was && !now
}

// used is the processor time of this process.
func used() time.Duration {
	var r unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// giveBack gives back garbage, and the pages of the program's own file that were read. They
// are clean, so one that is needed again after all comes from the page cache.
func giveBack() {
	debug.FreeOSMemory()
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return
	}
	defer maps.Close()
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) != 6 || fields[5] != self || strings.Contains(fields[1], "w") {
			continue
		}
		var from, to uintptr
		if _, err := fmt.Sscanf(fields[0], "%x-%x", &from, &to); err != nil || to <= from {
			continue
		}
		// Nothing to be done if it fails: it was a favour.
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED)
	}
}

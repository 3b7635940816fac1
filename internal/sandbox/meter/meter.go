// Package meter holds a sandbox to its disk limit by measuring what it has written. The server
// measures the sandboxes that it is attached to, and a runner its own while no server is.
package meter

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"deckhand/internal/sandbox"
)

// How often a sandbox is looked at. Looking asks the file system what is left, which
// costs nothing; measuring goes through all files.
const (
	lookAtLeast  = 2 * time.Second
	lookAtMost   = 5 * time.Millisecond
	measureEvery = 2 * time.Second
	// maxCalm bounds how seldom a sandbox is measured in which nothing happens: to
	// every minute.
	maxCalm = 5
	// measureTime is how long measuring may take, and endTime how long ending all processes may take.
	measureTime = 10 * time.Second
	endTime     = time.Minute
	// writeRate is what a sandbox is taken to write in a second at least, when it has
	// not been seen to be faster, and fileRate how many files it may make.
	writeRate = 1 << 30
	fileRate  = 1 << 19
	// lateness is how late a look may be on a busy machine.
	lateness = 50 * time.Millisecond
	// approach is how many looks there are before a limit can be reached.
	approach = 4
)

// What is left alone on a disk that sandboxes fill, for each of those that write: at most a
// tenth of a small disk for one, and a quarter for all.
const (
	headroomBytes  = 64 << 20
	headroomInodes = 2048
)

// Meter decides when a sandbox is measured, and whether it has written too much.
type Meter struct {
	box   Sandbox
	mu    sync.Mutex // held while the sandbox is measured
	above atomic.Bool
	limit int64
	// used is what was measured last, at which time, with how much left on the disk.
	used  int64
	files sandbox.Usage // as its driver counts them, without deleted files
	at    time.Time
	space sandbox.Space
	took  time.Duration
	known bool
	// hidden is what deleted files that are open take up.
	hidden   int64
	hiddenAt time.Time
	rate     float64 // bytes in a second, the highest lately
	// base is the least that it had since the disk became nearly full, or used.
	base int64
	// peak is what a sandbox above its limit may have: what it had when it was ended,
	// and a little more, since deleting files writes some, too. 0 is below the limit.
	peak int64
	calm int
}

// left is how much may be written, as far as is known.
func (m *Meter) left(now sandbox.Space) int64 {
	left := m.limit - m.used
	if now.Bytes > 0 {
		left = min(left, (now.FreeBytes-headroom(now, now.Bytes, headroomBytes))/writers(now))
	}
	return max(left, 0)
}

// leftFiles is how many files may be made before the disk has too few inodes.
func leftFiles(now sandbox.Space) int64 {
	if now.Inodes == 0 { // it has no end of them
		return math.MaxInt64
	}
	return max((now.FreeInodes-headroom(now, now.Inodes, headroomInodes))/writers(now), 0)
}

func headroom(now sandbox.Space, all, most int64) int64 {
	return min(most*writers(now), all*writers(now)/10, all/4)
}

func writers(now sandbox.Space) int64 { return max(now.Writers, 1) }

// wait is how long to wait until the next look.
func (m *Meter) wait(now sandbox.Space) time.Duration {
	return min(m.pace(now)<<max(m.calm-1, 0), lookAtLeast)
}

// pace is the part of the time in which a limit could be reached after which to look again.
func (m *Meter) pace(now sandbox.Space) time.Duration {
	files := min(leftFiles(now), m.left(now)/costOf(now))
	seconds := min(float64(m.left(now))/max(m.rate, writeRate), float64(files)/fileRate) / approach
	d := time.Duration(min(seconds, 60) * float64(time.Second))
	least := lookAtMost
	if m.peak > 0 { // above the limit every change is measured
		least = max(least, m.took)
	}
	return min(max(d, least), lookAtLeast)
}

// due says whether to measure: a part of what is left is gone from the disk, or it is
// long ago. Where the file system cannot be asked, it is measured at the pace of looks.
func (m *Meter) due(at time.Time, now sandbox.Space, inUse bool) bool {
	if inUse {
		m.calm = 0
	}
	if !m.known || now.Bytes == 0 {
		return !m.known || at.Sub(m.at) >= max(m.pace(now), 10*m.took)<<m.calm
	}
	return m.lost(now) || at.Sub(m.at) >= max(measureEvery<<m.calm, 20*m.took)
}

// lost says whether a part of what is left is gone from the disk since it was measured.
func (m *Meter) lost(now sandbox.Space) bool {
	gone := m.space.FreeBytes - now.FreeBytes
	files := m.space.FreeInodes - now.FreeInodes
	left := m.left(m.space) / approach
	return gone > left || files*costOf(now) > left || files > leftFiles(m.space)/approach || Tight(now) && (gone > 0 || files > 0)
}

// stale says whether a sandbox may have come to its limit, or back below it, since it was measured.
func (m *Meter) stale(now sandbox.Space) bool {
	return m.known && now.Bytes > 0 && (m.lost(now) || m.peak > 0 && now != m.space)
}

// fileCost is what a file takes up at least.
const fileCost = 1024

// costOf is what a file without content takes up, as sandbox.Measurer counts it: the disk
// has only so many of them.
func costOf(now sandbox.Space) int64 {
	if now.Inodes == 0 {
		return fileCost
	}
	return max(fileCost, now.Bytes/now.Inodes)
}

// Tight says that the disk itself is nearly full.
func Tight(now sandbox.Space) bool {
	return now.Bytes > 0 && now.FreeBytes < headroom(now, now.Bytes, headroomBytes) ||
		now.Inodes > 0 && now.FreeInodes < headroom(now, now.Inodes, headroomInodes)
}

// near says that the limit could be reached while the sandbox is measured.
func (m *Meter) near(now sandbox.Space) bool {
	if !m.known || now.Bytes == 0 {
		return false
	}
	gone := max(m.space.FreeBytes-now.FreeBytes, (m.space.FreeInodes-now.FreeInodes)*costOf(now))
	if gone <= 0 {
		return false
	}
	soon := (m.took + lateness).Seconds()
	return float64(m.left(now)-gone) < soon*max(m.rate, writeRate) || float64(leftFiles(now)) < soon*fileRate
}

// mostFiles is how many files the limit is, if it is their number that exceeds it, and
// not their bytes; otherwise 0.
func (m *Meter) mostFiles() int64 {
	if m.files.Files == 0 || m.files.Bytes <= m.limit {
		return 0
	}
	return m.limit / (m.files.Bytes / m.files.Files)
}

// slack is how much more a sandbox may have that is above its limit already.
const slack = 1 << 20

// ended remembers what a sandbox has after everything in it was ended.
func (m *Meter) ended(used int64) {
	m.used, m.base = used, used
	if used > m.limit {
		m.peak = used + slack
	}
}

// measured records a measurement, with the free space before and after it, and returns why the
// sandbox must be ended, "" if it may continue. A shrinking sandbox is not ended: files are
// being deleted.
func (m *Meter) measured(at time.Time, took time.Duration, used int64, before, now sandbox.Space) string {
	grew, first := used-m.used, !m.known
	if span := at.Sub(m.at).Seconds(); !first && span > 0 {
		m.rate = max(float64(grew)/span, m.rate*0.9)
	}
	if grew != 0 {
		m.calm = 0
	} else {
		m.calm = min(m.calm+1, maxCalm)
	}
	m.used, m.at, m.took, m.space, m.known = used, at, took, before, true
	switch {
	case used <= m.limit:
		m.peak = 0
	case first:
		m.peak = used + slack
	}
	if first || !Tight(now) {
		m.base = used
	}
	m.base = min(m.base, used)
	switch {
	case first || grew < 0 || m.peak > 0 && used <= m.peak:
		return ""
	case used > m.limit && grew > 0 && m.mostFiles() > 0:
		return fmt.Sprintf("Disk limit reached: %d of %d files used. All running processes were stopped. Delete files to continue.", m.files.Files, m.mostFiles())
	case used > m.limit && grew > 0:
		return fmt.Sprintf("Disk limit reached: %s of %s used. All running processes were stopped. Delete files to continue.", Size(used), Size(m.limit))
	case Tight(now) && used > m.base: // it may have stopped growing: nothing grows on a full disk
		return fmt.Sprintf("The server's disk is nearly full (%s and %d files left). All running processes were stopped. Delete files to continue.", Size(now.FreeBytes), now.FreeInodes)
	}
	return ""
}

// Size is a number of bytes for people.
func Size(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
}

// Package processes lists the processes of a sandbox as the kernel describes them.
package processes

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Process is one that lives.
type Process struct {
	PID, Parent, Group, Session int
	// Threads counts against the limit of a sandbox, each like a process.
	Threads int
	// Start is when it was started, as Now counts time.
	Start int64
}

// ticks is how many units of time the kernel counts in a second for programs.
const ticks = 100

// Now is the time in the unit of Process.Start.
func Now() int64 {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return 0
	}
	return now.Nano() / (1e9 / ticks)
}

// IDs lists all processes, also the dead that were not waited for.
func IDs() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// List lists the processes that live.
func List() []Process {
	var all []Process
	for _, pid := range IDs() {
		if p, ok := Look(pid); ok {
			all = append(all, p)
		}
	}
	return all
}

// Look reads what the kernel says of a process. A dead one that was not waited for cannot be
// killed, and is not found.
func Look(pid int) (p Process, ok bool) {
	f := fields("/proc/" + strconv.Itoa(pid) + "/stat")
	if len(f) < 20 || f[0] == "Z" || f[0] == "X" {
		return p, false
	}
	p.PID = pid
	for field, to := range map[int]*int{1: &p.Parent, 2: &p.Group, 3: &p.Session, 17: &p.Threads} {
		*to, _ = strconv.Atoi(f[field])
	}
	p.Start, _ = strconv.ParseInt(f[19], 10, 64)
	return p, true
}

// Count counts processes and threads, also the dead that were not waited for: the kernel counts
// them against a limit, too.
func Count() int {
	n := 0
	for _, pid := range IDs() {
		// A folder has a link for itself, its name, and each folder in it.
		if info, err := os.Stat("/proc/" + strconv.Itoa(pid) + "/task"); err == nil {
			n += max(1, int(info.Sys().(*syscall.Stat_t).Nlink)-2)
		}
	}
	return n
}

// Load is the processor time that the processes of a sandbox and their children that ended have used, and the
// memory that they do not share with files. self is the sandbox's first process, or the one from which all others
// descend.
func Load(self int) (cpu time.Duration, memory int64) {
	pids := IDs()
	if self != 1 { // there are others, which are not the sandbox's
		below, _ := Below(self, nil, true)
		pids = append(below, self)
	}
	page := int64(os.Getpagesize())
	for _, pid := range pids {
		at := "/proc/" + strconv.Itoa(pid)
		if f := fields(at + "/stat"); len(f) > 14 {
			for _, n := range f[11:15] { // its own time, and its children's
				used, _ := strconv.ParseInt(n, 10, 64)
				cpu += time.Duration(used) * time.Second / ticks
			}
		}
		if b, err := os.ReadFile(at + "/statm"); err == nil {
			if f := strings.Fields(string(b)); len(f) > 2 {
				resident, _ := strconv.ParseInt(f[1], 10, 64)
				shared, _ := strconv.ParseInt(f[2], 10, 64)
				memory += (resident - shared) * page
			}
		}
	}
	return cpu, memory
}

// fields are those of a stat file that follow the name, which is in brackets and may hold anything.
func fields(path string) []string {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
}

// Guests are processes that live here and came from outside, as a container
// engine's do: the server's own connection may be one of them.
func Guests() (found []int) {
	for _, pid := range IDs() {
		if p, ok := Look(pid); ok && p.Parent == 0 && pid != os.Getpid() {
			found = append(found, pid)
		}
	}
	return found
}

// Below lists the processes in some sessions, parents before their children, and if all is true
// every other one that descends from self. gone are the sessions without a process.
func Below(self int, sessions map[int]struct{}, all bool) (found, gone []int) {
	known, used := map[int]Process{}, map[int]bool{}
	for _, p := range List() {
		known[p.PID] = p
		used[p.Session] = true
	}
	for id := range sessions {
		if !used[id] {
			gone = append(gone, id)
		}
	}
	depth := map[int]int{}
	for pid, p := range known {
		_, ours := sessions[p.Session]
		// What was read at different moments may lead in a circle.
		for at := p; at.Parent != 0 && depth[pid] < len(known); at = known[at.Parent] {
			depth[pid]++
			ours = ours || all && at.Parent == self
		}
		if ours && pid != self {
			found = append(found, pid)
		}
	}
	slices.SortFunc(found, func(a, b int) int { return depth[a] - depth[b] })
	return found, gone
}

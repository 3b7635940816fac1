package process

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tree is every process below this one.
type tree []int

func descendants() tree {
	children := map[int][]int{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if f := statFields(pid); len(f) > 2 {
			parent, _ := strconv.Atoi(f[1])
			children[parent] = append(children[parent], pid)
		}
	}
	all := tree(slices.Clone(children[os.Getpid()]))
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

// CPU is the processor time that a process has used.
func CPU(pid int) time.Duration {
	f := statFields(pid)
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return time.Duration(user+system) * tick
}

// statFields are those of /proc/PID/stat from the state on. The name before it may hold anything.
func statFields(pid int) []string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	at := strings.LastIndex(string(stat), ") ")
	if err != nil || at < 0 {
		return nil
	}
	return strings.Fields(string(stat[at+2:]))
}

// TreeCPU is the processor time of every process below this one, and of those
// that they started and that have ended.
func TreeCPU() time.Duration {
	var ticks int
	for _, pid := range descendants() {
		if f := statFields(pid); len(f) > 14 {
			for _, field := range f[11:15] {
				n, _ := strconv.Atoi(field)
				ticks += n
			}
		}
	}
	return time.Duration(ticks) * tick
}

// TreePSS is the memory of every process below this one in MB: what several
// share is divided among them.
func TreePSS() float64 {
	var kb float64
	for _, pid := range descendants() {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		for line := range strings.Lines(string(text)) {
			if value, ok := strings.CutPrefix(line, "Pss:"); ok {
				n, _ := strconv.ParseFloat(strings.Fields(value)[0], 64)
				kb += n
			}
		}
	}
	return kb / 1024
}

package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// adopt makes this process the parent of what its children leave behind, so that
// sandboxes, which outlive their server, still count as its own.
func adopt() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

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

// statFields are those of /proc/PID/stat from the state on. The name before it may hold anything.
func statFields(pid int) []string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	at := strings.LastIndex(string(stat), ") ")
	if err != nil || at < 0 {
		return nil
	}
	return strings.Fields(string(stat[at+2:]))
}

// treeCPU is the processor time of every process below this one, and of those
// that they started and that have ended.
func treeCPU() time.Duration {
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

// treePSS is the memory of every process below this one in MB: what several
// share is divided among them.
func treePSS() float64 {
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

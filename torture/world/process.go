//go:build linux

package world

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Process is a process of the run.
type Process struct {
	PID, Parent int
	State, Name string
}

// Processes lists all processes of the namespace: those of the run, and no others.
func Processes() []Process {
	var out []Process
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		at := strings.LastIndex(string(stat), ") ")
		if err != nil || at < 0 {
			continue
		}
		f := strings.Fields(string(stat[at+2:]))
		p := Process{PID: pid, State: f[0], Name: string(stat[strings.IndexByte(string(stat), '(')+1 : at])}
		p.Parent, _ = strconv.Atoi(f[1])
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if len(line) > 0 {
			p.Name = fmt.Sprintf("%.200s", strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " ")))
		}
		out = append(out, p)
	}
	return out
}

func childrenOf(parent int) []int {
	var out []int
	for _, p := range Processes() {
		if p.Parent == parent {
			out = append(out, p.PID)
		}
	}
	return out
}

// Sandbox is a sandbox as its files on the machine describe it.
type Sandbox struct {
	ID     string
	PID    int
	Groups []string
}

// Sandboxes lists the sandboxes of a server, in the order of their names.
func (s *Server) Sandboxes() []Sandbox {
	files, _ := filepath.Glob(filepath.Join(s.Dir, "boxes", "*", "meta.json")) // the pattern is good
	var out []Sandbox
	for _, file := range files {
		var meta struct {
			PID    int
			Groups []string
		}
		text, err := os.ReadFile(file)
		if err != nil || json.Unmarshal(text, &meta) != nil {
			continue // it is being made or removed
		}
		out = append(out, Sandbox{filepath.Base(filepath.Dir(file)), meta.PID, meta.Groups})
	}
	return out
}

// Runners lists the sandboxes whose runner is running.
func (s *Server) Runners() []Sandbox {
	living := map[int]string{}
	for _, p := range Processes() {
		living[p.PID] = p.State
	}
	return slices.DeleteFunc(s.Sandboxes(), func(b Sandbox) bool {
		state, ok := living[b.PID]
		return b.PID <= 1 || !ok || state == "Z" || state == "X"
	})
}

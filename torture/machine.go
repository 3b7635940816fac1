//go:build linux

package main

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"deckhand/torture/check"
	"deckhand/torture/world"
)

// endTime bounds the wait for the end of sandboxes. It only ends a hang.
const endTime = time.Minute

// noteGroups remembers the control groups of the sandboxes that exist now.
func (r *run) noteGroups() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.world.Servers {
		for _, b := range s.Sandboxes() {
			for _, g := range b.Groups {
				r.groups[g] = true
			}
		}
	}
}

// checkMachine looks for what is left after every conversation was deleted: first while
// the servers run without load, then after their end.
func (r *run) checkMachine(ctx context.Context) {
	r.noteGroups()
	var m check.Machine
	for _, s := range r.world.Servers {
		r.until(ctx, func() bool { return len(r.sandboxes(s)) == 0 })
		m.Sandboxes = append(m.Sandboxes, r.sandboxes(s)...)
		busy := r.goroutines(ctx, s)
		open := s.Descriptors()
		// The same server, started on the same data, is what it should look like.
		stopping, stop := context.WithTimeout(ctx, time.Minute)
		err := s.Stop(stopping)
		stop()
		if err != nil {
			r.violated(check.Violation{Rule: check.RuleOrphans, Detail: err.Error()}, nil)
		}
		if err := s.Start(ctx); err != nil {
			r.violated(check.Violation{Rule: check.RuleUnavailable, Detail: err.Error()}, nil)
			continue
		}
		m.Goroutines = append(m.Goroutines, check.Growth{Of: s.Name, Before: r.goroutines(ctx, s), After: busy})
		m.Descriptors = append(m.Descriptors, check.Growth{Of: s.Name, Before: s.Descriptors(), After: open})
	}
	if err := r.world.Stop(ctx); err != nil {
		r.violated(check.Violation{Rule: check.RuleOrphans, Detail: err.Error()}, nil)
	}
	r.until(ctx, func() bool { return len(r.processes()) == 0 && len(r.leftGroups()) == 0 })
	m.Processes, m.Groups = r.processes(), r.leftGroups()
	for _, s := range r.world.Servers {
		m.Files = append(m.Files, leftFiles(s.Dir)...)
	}
	for _, v := range check.Remains(m) {
		r.violated(v, nil)
	}
}

// endAll ends every process of the run. A run that is over has ended them, one that failed has not,
// and would leave the control groups of its sandboxes.
func (r *run) endAll() {
	r.noteGroups()
	for _, s := range r.world.Servers {
		_ = s.Kill() // it may have ended
	}
	for _, p := range world.Processes() {
		if p.PID != 1 && p.PID != os.Getpid() {
			_ = syscall.Kill(p.PID, syscall.SIGKILL) // it may have ended
		}
	}
	r.until(context.Background(), func() bool {
		for _, g := range r.leftGroups() {
			_ = os.Remove(g) // it may still hold a process that is ending
		}
		return len(r.leftGroups()) == 0
	})
}

// until waits for something, for a bounded time. What is then not so is a violation that the
// caller finds.
func (r *run) until(ctx context.Context, ok func() bool) {
	ctx, stop := context.WithTimeout(ctx, endTime)
	defer stop()
	for !ok() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// sandboxes lists the sandboxes of conversations. A spare one belongs to no conversation.
func (r *run) sandboxes(s *world.Server) []string {
	var out []string
	for _, b := range s.Sandboxes() {
		if strings.HasPrefix(b.ID, "torture-") {
			out = append(out, b.ID)
		}
	}
	return out
}

// goroutines asks the metrics of a server when it has come to rest: the smallest number in some seconds.
func (r *run) goroutines(ctx context.Context, s *world.Server) int {
	least := 0
	for range 10 {
		if n := r.metric(ctx, s, "go_goroutines"); n > 0 && (least == 0 || n < least) {
			least = n
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return least
}

func (r *run) metric(ctx context.Context, s *world.Server, name string) int {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Base+"/metrics", nil)
	if err != nil {
		return 0
	}
	req.Header.Set("X-Session-API-Key", r.admin)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			n, _ := strconv.ParseFloat(value, 64)
			return int(n)
		}
	}
	return 0
}

// processes lists those that should not be there when the servers have ended.
func (r *run) processes() []string {
	known := map[int]bool{1: true, os.Getpid(): true}
	if r.world.Database != nil {
		for _, pid := range r.world.Database.Processes() {
			known[pid] = true
		}
	}
	if r.world.NATS != nil {
		known[r.world.NATS.PID()] = true
	}
	var out []string
	for _, p := range world.Processes() {
		if !known[p.PID] && p.State != "Z" {
			out = append(out, fmt.Sprintf("%d (child of %d, %s): %s", p.PID, p.Parent, p.State, p.Name))
		}
	}
	return out
}

// leftGroups lists control groups of sandboxes that still exist.
func (r *run) leftGroups() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for g := range r.groups {
		if _, err := os.Stat(g); err == nil {
			out = append(out, g)
		}
	}
	return out
}

// leftFiles lists files of conversations in a data directory whose conversations were all deleted.
func leftFiles(dir string) []string {
	var out []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), "torture-") {
			out = append(out, path)
			if d.IsDir() {
				return filepath.SkipDir
			}
		}
		return nil
	})
	for _, pattern := range []string{"boxes/.scrap-*", "filler"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern))
		out = append(out, found...)
	}
	return out
}

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"deckhand/torture/check"
	"deckhand/torture/fault"
	"deckhand/torture/people"
	"deckhand/torture/report"
	"deckhand/torture/world"
)

const (
	// maxViolations ends a run, because later violations rarely show anything new.
	maxViolations = 10
	// maxHistory is how many lines of the history a failed run prints.
	maxHistory = 300
)

// run is one run.
type run struct {
	options
	dir    string
	begin  time.Time
	world  *world.World
	crowd  *people.Crowd
	prober *people.Prober
	admin  string
	root   context.Context    // ends when the run is interrupted
	end    context.CancelFunc // of the faults

	mu         sync.Mutex
	history    []report.Entry
	violations []check.Violation
	groups     map[string]bool // control groups of sandboxes that were seen
}

// torture does a whole run and returns its exit code.
func torture(ctx context.Context, o options) (int, error) {
	dir, err := os.MkdirTemp("", "torture-")
	if err != nil {
		return 1, err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // users of sandboxes pass through
		return 1, err
	}
	r := &run{options: o, root: ctx, dir: dir, begin: time.Now(), groups: map[string]bool{}}
	fmt.Printf("torture: seed %d, %d kills, store %s, %d server(s)\n", o.seed, o.kills, o.store, o.servers)
	err = r.all(ctx)
	if r.world != nil {
		r.endAll()
	}
	done := r.report()
	failed := err != nil || len(r.violations) > 0
	if failed {
		fmt.Printf("torture: history of faults:\n%s", r.recent(maxHistory))
	}
	if failed || o.keep {
		at, e := r.save()
		fmt.Printf("torture: logs and the history of faults are in %s\n", at)
		if err = errors.Join(err, e); err == nil && len(r.violations) > 0 {
			err = fmt.Errorf("%d violations; repeat with SEED=%d KILLS=%d STORE=%s SERVERS=%d", len(r.violations), o.seed, o.kills, o.store, o.servers)
		}
	}
	fmt.Print(done.Summary())
	if err != nil {
		return 1, err
	}
	if o.results != "" {
		err = done.Write(o.results)
	}
	return 0, errors.Join(err, r.remove())
}

// all starts everything, injects the faults under load and checks what is left.
func (r *run) all(ctx context.Context) error {
	if err := r.start(ctx); err != nil {
		return err
	}
	load, endLoad := context.WithCancel(ctx)
	defer endLoad()
	var crowd, probing sync.WaitGroup
	for person := range r.people {
		crowd.Go(func() { r.crowd.Converse(load, ctx, person, r.seed) })
	}
	probe, endProbe := context.WithCancel(ctx)
	defer endProbe()
	probing.Go(func() { r.prober.Run(probe) })
	err := r.faults(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("torture: the faults are over after %v, waiting for the conversations\n", time.Since(r.begin).Round(time.Second))
	endLoad()
	crowd.Wait()
	endProbe()
	probing.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.prober.Check(ctx)
	r.crowd.End(ctx, r.world.Model.Billed)
	for _, c := range r.world.Model.Complaints() {
		r.violated(check.Violation{Rule: check.RuleRefused, Detail: "a provider would refuse a request: " + c}, nil)
	}
	r.world.Model.Rest()
	r.checkMachine(ctx)
	return nil
}

// start starts the world and makes the users.
func (r *run) start(ctx context.Context) error {
	var err error
	o := world.Options{
		Program: r.program, Dir: r.dir, Store: r.store, Servers: r.servers, NATSProgram: r.nats,
		Clocks: len(r.only) == 0 || slices.Contains(r.only, "clock"),
	}
	if r.world, err = world.New(ctx, o); err != nil {
		return err
	}
	var bases []string
	for _, s := range r.world.Servers {
		if err := s.Start(ctx); err != nil {
			return err
		}
		bases = append(bases, s.Base)
	}
	if r.admin, err = r.world.Servers[0].AdminKey(); err != nil {
		return err
	}
	if r.crowd, err = people.New(ctx, bases, r.admin, world.ModelName, r.world.Model.URL, r.users); err != nil {
		return fmt.Errorf("make users: %w\n%s", err, r.world.Servers[0].Tail(2000))
	}
	r.crowd.OnViolation = r.violated
	r.prober, err = r.crowd.NewProber(ctx)
	return err
}

// violated records a violation, with what is known of the conversation.
func (r *run) violated(v check.Violation, h *check.Conversation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.violations) >= maxViolations {
		return
	}
	r.violations = append(r.violations, v)
	r.history = append(r.history, report.Entry{At: time.Since(r.begin), Name: "VIOLATION", What: v.String()})
	fmt.Printf("VIOLATION after %v: %s\n", time.Since(r.begin).Round(time.Millisecond), v)
	if h != nil {
		if text, err := json.MarshalIndent(h, "", " "); err == nil {
			_ = os.WriteFile(filepath.Join(r.dir, "conversation-"+h.ID+".json"), text, 0o600)
		}
		var log []byte
		for _, e := range h.Log {
			log = append(append(log, e.Raw...), '\n')
		}
		_ = os.WriteFile(filepath.Join(r.dir, "log-"+h.ID+".jsonl"), log, 0o600)
	}
	if len(r.violations) == maxViolations && r.end != nil {
		r.end()
	}
}

// scene is what a lane of faults acts on.
func (r *run) scene(lane uint64) *fault.Scene {
	return &fault.Scene{World: r.world, Crowd: r.crowd, Random: random(r.seed, lane), Long: r.long}
}

// recent is the end of the history, at most so many lines.
func (r *run) recent(most int) string {
	var out strings.Builder
	left := max(0, len(r.history)-most)
	if left > 0 {
		fmt.Fprintf(&out, "(%d earlier lines are in history.txt)\n", left)
	}
	for _, e := range r.history[left:] {
		out.WriteString(e.String() + "\n")
	}
	return out.String()
}

// save keeps the logs of a run that failed.
func (r *run) save() (string, error) {
	if r.failed != "" {
		if err := os.MkdirAll(r.failed, 0o755); err != nil {
			return "", err
		}
	}
	at, err := os.MkdirTemp(r.failed, "torture-failed-")
	if err != nil {
		return "", err
	}
	err = os.WriteFile(filepath.Join(at, "history.txt"), []byte(r.recent(len(r.history))), 0o644)
	for _, pattern := range []string{"*.log", "*.json", "*.jsonl"} {
		files, _ := filepath.Glob(filepath.Join(r.dir, pattern))
		for _, f := range files {
			text, e := os.ReadFile(f)
			err = errors.Join(err, e, os.WriteFile(filepath.Join(at, filepath.Base(f)), text, 0o644))
		}
	}
	return at, errors.Join(err, r.remove())
}

// remove removes the folder of the run with its disks.
func (r *run) remove() error {
	if r.world != nil {
		r.world.Unmount()
	}
	return os.RemoveAll(r.dir)
}

//go:build linux

package main

import (
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"deckhand/torture/fault"
	"deckhand/torture/report"
)

// report sums up the run.
func (r *run) report() *report.Report {
	out := &report.Report{
		Date: time.Now().UTC().Format(time.DateOnly), Machine: fmt.Sprintf("%d cores, %s/%s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH),
		Store: r.store, Seed: r.seed, Seconds: time.Since(r.begin).Seconds(), Violations: r.violations,
	}
	if text, err := exec.Command(r.program, "version").Output(); err == nil {
		first, _, _ := strings.Cut(string(text), "\n")
		out.Version = strings.TrimSpace(strings.TrimPrefix(first, "deckhand"))
	}
	what := map[string]string{}
	for _, f := range append(append([]fault.Fault{}, fault.Processes...), fault.Surroundings...) {
		what[f.Name] = f.What
	}
	out.Sum(r.history, what)
	if r.world == nil {
		return out
	}
	out.Servers = len(r.world.Servers)
	starts := 0
	for _, s := range r.world.Servers {
		starts += s.Starts()
	}
	out.Counts = append(out.Counts, report.Count{What: "starts of servers", N: int64(starts)})
	if c := r.crowd; c != nil {
		out.Counts = append(out.Counts,
			report.Count{What: "requests", N: c.Requests.Load()},
			report.Count{What: "of them acknowledged", N: c.Acknowledged.Load()},
			report.Count{What: "attempts that were repeated", N: c.Retries.Load()},
			report.Count{What: "conversations checked", N: c.Conversations.Load()},
			report.Count{What: "turns", N: c.Turns.Load()},
			report.Count{What: "turns that ended with an error of the model or of the budget", N: c.Failed.Load()},
			report.Count{What: "events", N: c.Events.Load()},
			report.Count{What: "results of commands", N: c.Commands.Load()},
			report.Count{What: "of them with an unknown outcome, because their sandbox was killed", N: c.Unknown.Load()},
			report.Count{What: "connections of followers that ended", N: c.Cuts.Load()},
		)
	}
	return out
}

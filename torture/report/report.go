// Package report writes what a torture run did and found, as Markdown and JSON.
package report

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"deckhand/torture/check"
)

// Entry is a line of the history of a run.
type Entry struct {
	At       time.Duration `json:"at"`
	Name     string        `json:"name"`
	What     string        `json:"what"`
	Kill     bool          `json:"kill,omitempty"`
	Lasted   time.Duration `json:"lasted,omitempty"`
	Recovery time.Duration `json:"recovery,omitempty"`
}

func (e Entry) String() string {
	out := fmt.Sprintf("%10.3f s  %-16s %s", e.At.Seconds(), e.Name, e.What)
	if e.Recovery > 0 {
		out += fmt.Sprintf("; writes accepted after %v", e.Recovery.Round(time.Millisecond))
	}
	return out
}

// Fault sums up one kind of fault.
type Fault struct {
	Name   string  `json:"name"`
	What   string  `json:"what"`
	Count  int     `json:"count"`
	Median float64 `json:"median_recovery_ms,omitempty"`
	Worst  float64 `json:"worst_recovery_ms,omitempty"`
}

// Report is a run.
type Report struct {
	Date       string            `json:"date"`
	Version    string            `json:"version"`
	Machine    string            `json:"machine"`
	Store      string            `json:"store"`
	Servers    int               `json:"servers"`
	Seed       uint64            `json:"seed"`
	Kills      int               `json:"kills"`
	Seconds    float64           `json:"seconds"`
	Counts     []Count           `json:"counts"`
	Faults     []Fault           `json:"faults"`
	Median     float64           `json:"median_recovery_ms"`
	Worst      float64           `json:"worst_recovery_ms"`
	Violations []check.Violation `json:"violations"`
}

// Count is a number with its meaning.
type Count struct {
	What string `json:"what"`
	N    int64  `json:"n"`
}

// Sum fills in the figures of the history. what describes each fault by its name.
func (r *Report) Sum(history []Entry, what map[string]string) {
	by := map[string][]float64{}
	count := map[string]int{}
	var all []float64
	for _, e := range history {
		if what[e.Name] == "" {
			continue
		}
		count[e.Name]++
		if e.Kill {
			r.Kills++
		}
		if e.Recovery > 0 {
			ms := float64(e.Recovery.Microseconds()) / 1000
			by[e.Name], all = append(by[e.Name], ms), append(all, ms)
		}
	}
	for name, n := range count {
		f := Fault{Name: name, What: what[name], Count: n}
		f.Median, f.Worst = spread(by[name])
		r.Faults = append(r.Faults, f)
	}
	slices.SortFunc(r.Faults, func(a, b Fault) int { return cmp.Or(b.Count-a.Count, cmp.Compare(a.Name, b.Name)) })
	r.Median, r.Worst = spread(all)
}

func spread(ms []float64) (median, worst float64) {
	if len(ms) == 0 {
		return 0, 0
	}
	slices.Sort(ms)
	return ms[len(ms)/2], ms[len(ms)-1]
}

// Summary is a few lines for the terminal.
func (r *Report) Summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "torture: %s, seed %d, %.0f s, %d kills, writes accepted again after %.0f ms (median), %.0f ms (worst)\n", r.Store, r.Seed, r.Seconds, r.Kills, r.Median, r.Worst)
	for _, f := range r.Faults {
		fmt.Fprintf(&b, "  %5d %s\n", f.Count, f.Name)
	}
	for _, c := range r.Counts {
		fmt.Fprintf(&b, "  %8d %s\n", c.N, c.What)
	}
	fmt.Fprintf(&b, "torture: %d violations\n", len(r.Violations))
	return b.String()
}

// Markdown is the report as a page.
func (r *Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Torture: %d kills on %s\n\n", r.Kills, r.Store)
	fmt.Fprintf(&b, "%s, version %s, %s. Repeat it with `make torture SEED=%d KILLS=%d STORE=%s SERVERS=%d`.\n", r.Date, r.Version, r.Machine, r.Seed, r.Kills, r.Store, r.Servers)
	fmt.Fprintf(&b, "The run took %.0f s with %d server(s). **Violations: %d.** Writes were accepted again %.0f ms after a fault ended (median), %.0f ms (worst). A kill ends when the server is healthy again.\n\n", r.Seconds, r.Servers, len(r.Violations), r.Median, r.Worst)
	b.WriteString("| Fault | Times | Writes accepted again, median | worst | |\n|---|---|---|---|---|\n")
	for _, f := range r.Faults {
		median, worst := "–", "–"
		if f.Worst > 0 {
			median, worst = fmt.Sprintf("%.0f ms", f.Median), fmt.Sprintf("%.0f ms", f.Worst)
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s |\n", f.Name, f.Count, median, worst, f.What)
	}
	b.WriteString("\n| Count | |\n|---|---|\n")
	for _, c := range r.Counts {
		fmt.Fprintf(&b, "| %d | %s |\n", c.N, c.What)
	}
	b.WriteString("\n| Rule | Violations | |\n|---|---|---|\n")
	for _, rule := range check.Rules {
		n := 0
		for _, v := range r.Violations {
			if v.Rule == rule[0] {
				n++
			}
		}
		fmt.Fprintf(&b, "| %s | %d | %s |\n", rule[0], n, rule[1])
	}
	return b.String()
}

// Write writes both files to a folder.
func (r *Report) Write(folder string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	name := filepath.Join(folder, fmt.Sprintf("%s-torture-%s", r.Date, r.Store))
	if r.Servers > 1 {
		name += fmt.Sprintf("-%d-servers", r.Servers)
	}
	err = errors.Join(os.WriteFile(name+".json", append(text, '\n'), 0o644), os.WriteFile(name+".md", []byte(r.Markdown()), 0o644))
	if err == nil {
		fmt.Printf("torture: the report is %s.md\n", name)
	}
	return err
}

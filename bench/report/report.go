// Package report collects the rows of a benchmark, each with its target, and writes them as
// tables and charts.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"deckhand/internal/load/process"
)

// Units of a figure.
const (
	PerSecond = "/s"
	Millis    = "ms"
	Micros    = "µs"
	Megabytes = "MB"
	Kilobytes = "kB"
	Bytes     = "bytes"
	Count     = ""
)

// Line is one row of the table. Floor and Ratio are zero where there is nothing
// to compare with.
type Line struct {
	Part   string  `json:"part"`
	Name   string  `json:"name"`
	Unit   string  `json:"unit,omitempty"`
	Ours   float64 `json:"ours"`
	Floor  float64 `json:"floor,omitempty"`
	Ratio  float64 `json:"ratio,omitempty"`
	Want   string  `json:"want,omitempty"`
	Missed bool    `json:"missed,omitempty"`
	// Use is how much of the target is used: above 1 it is missed. 0 where it is no number.
	Use float64 `json:"use,omitempty"`
	// Factor is how many times better than a peer, in rows that compare with one.
	Factor float64 `json:"factor,omitempty"`
	Note   string  `json:"note,omitempty"`
}

// Part is a part of a warm turn.
type Part struct {
	Name   string  `json:"name"`
	Millis float64 `json:"ms"`
	What   string  `json:"what"`
}

// Report collects lines and writes them.
type Report struct {
	Date    string `json:"date"`
	Machine string `json:"machine"`
	// Others is how many cores other programs used during the run: above a few
	// tenths, figures of one caller are too low and their ratios too good.
	Others float64 `json:"others"`
	Quick  bool    `json:"quick"`
	Only   string  `json:"only,omitempty"`
	Lines  []Line  `json:"lines"`
	// Parts is where the time of a warm turn goes.
	Parts []Part `json:"parts,omitempty"`
	// Notes are sentences about the whole run.
	Notes []string `json:"notes,omitempty"`

	at     time.Time
	before process.Used
}

// New begins a report.
func New(quick bool, only string) *Report {
	now := time.Now()
	return &Report{Date: now.Format("2006-01-02 15:04 MST"), Machine: machine(), Quick: quick, Only: only, at: now, before: process.Usage()}
}

// machine says what the raw figures depend on.
func machine() string {
	model := "unknown processor"
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			model = strings.TrimSpace(value)
			break
		}
	}
	return fmt.Sprintf("%d cores, %s, %s/%s, %s", runtime.NumCPU(), model, runtime.GOOS, runtime.GOARCH, runtime.Version())
}

// Add makes a line with what is compared; 0 is no floor.
func (r *Report) Add(part, name, unit string, ours, floor float64) *Line {
	l := Line{Part: part, Name: name, Unit: unit, Ours: ours, Floor: floor}
	if floor != 0 {
		l.Ratio = ours / floor
	}
	r.Lines = append(r.Lines, l)
	return &r.Lines[len(r.Lines)-1]
}

// Broken records a part that could not be measured: as bad as a miss.
func (r *Report) Broken(part string, err error) {
	fmt.Printf("   FAILED: %v\n", err)
	r.Add(part, "could not be measured", Count, 0, 0).Require(false, "a figure").Comment("%v", err)
}

// Require says what must hold. Several of one line are all wanted.
func (l *Line) Require(holds bool, want string) *Line {
	if l.Want != "" {
		want = l.Want + ", " + want
	}
	l.Want = want
	l.Missed = l.Missed || !holds
	return l
}

// uses keeps the worst of several targets. What is divided by zero is no number to draw.
func (l *Line) uses(part float64) *Line {
	if !math.IsNaN(part) && !math.IsInf(part, 0) {
		l.Use = max(l.Use, part)
	}
	return l
}

// PairedBy replaces the ratio of the medians by the median of the ratios.
func (l *Line) PairedBy(ratio float64) *Line {
	l.Ratio = ratio
	return l
}

// RatioAtLeast wants a ratio to the floor of at least limit.
func (l *Line) RatioAtLeast(limit float64) *Line {
	return l.uses(limit/l.Ratio).Require(l.Ratio >= limit, fmt.Sprintf("ratio >= %.2f", limit))
}

// RatioAtMost wants a ratio to the floor of at most limit.
func (l *Line) RatioAtMost(limit float64) *Line {
	return l.uses(l.Ratio/limit).Require(l.Ratio > 0 && l.Ratio <= limit, fmt.Sprintf("ratio <= %.2f", limit))
}

// AtMost wants a figure of at most limit.
func (l *Line) AtMost(limit float64) *Line {
	return l.uses(l.Ours/limit).Require(l.Ours <= limit, "<= "+Figure(limit, l.Unit))
}

// AtLeast wants a figure of at least limit.
func (l *Line) AtLeast(limit float64) *Line {
	return l.uses(limit/l.Ours).Require(l.Ours >= limit, ">= "+Figure(limit, l.Unit))
}

// Comment adds to the note of the row.
func (l *Line) Comment(format string, args ...any) *Line {
	l.Note = strings.TrimPrefix(l.Note+"; "+fmt.Sprintf(format, args...), "; ")
	return l
}

// Figure is a number with its unit, with as many digits as mean something.
func Figure(v float64, unit string) string {
	digits := 0
	switch {
	case v == float64(int64(v)) && unit == Count:
	case v == 0:
	case v < 1:
		digits = 3
	case v < 10:
		digits = 2
	case v < 100:
		digits = 1
	}
	text := fmt.Sprintf("%.*f", digits, v)
	if whole, _, _ := strings.Cut(text, "."); len(whole) > 3 {
		for at := len(whole) - 3; at > 0; at -= 3 {
			text = text[:at] + "," + text[at:]
		}
	}
	if unit == "" || unit == PerSecond {
		return text + unit
	}
	return text + " " + unit
}

// cells are the columns of a line, as text.
func (l Line) cells() []string {
	floor, ratio, verdict := "", "", ""
	if l.Floor != 0 {
		floor, ratio = Figure(l.Floor, l.Unit), fmt.Sprintf("%.2f", l.Ratio)
	}
	switch {
	case l.Missed:
		verdict = "missed"
	case l.Want != "":
		verdict = "met"
	}
	return []string{l.Part, l.Name, Figure(l.Ours, l.Unit), floor, ratio, l.Want, verdict, l.Note}
}

var columns = []string{"part", "what", "ours", "floor", "ratio", "target", "", "note"}

// print is the table for a terminal.
func (r *Report) print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(columns, "\t"))
	for _, l := range r.Lines {
		fmt.Fprintln(t, strings.Join(l.cells(), "\t"))
	}
	t.Flush()
}

// Finish prints and stores the table. The error says what was missed.
func (r *Report) Finish(dir string) error {
	r.Others = process.Others(r.before, process.Usage(), time.Since(r.at))
	for i := range r.Lines {
		if l := &r.Lines[i]; l.Want == "" { // a figure that nothing is asked of says nothing
			l.Require(false, "a target, which this row lacks")
		}
	}
	fmt.Println()
	r.print(os.Stdout)
	if r.Others > 0.2 {
		fmt.Printf("\nother programs used %.1f cores during the run: take the figures as hints\n", r.Others)
	}
	if err := r.store(dir); err != nil {
		return err
	}
	missed := 0
	for _, l := range r.Lines {
		if l.Missed {
			missed++
			fmt.Println("MISSED:", l.miss())
		}
	}
	if missed > 0 {
		return fmt.Errorf("%d of %d lines missed what is wanted of them", missed, len(r.Lines))
	}
	fmt.Println("every line is as wanted")
	return nil
}

// miss says in words what a line was to be and is.
func (l Line) miss() string {
	text := fmt.Sprintf("%s: %s: %s", l.Part, l.Name, Figure(l.Ours, l.Unit))
	if l.Floor != 0 {
		text += fmt.Sprintf(", floor %s, ratio %.2f", Figure(l.Floor, l.Unit), l.Ratio)
	}
	if text += "; wanted: " + l.Want; l.Note != "" {
		text += " (" + l.Note + ")"
	}
	return text
}

// store writes the table under the date. Only a whole run becomes the latest,
// so that a look at one part does not replace what the rest is compared with.
func (r *Report) store(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	name := r.at.Format("2006-01-02")
	if r.Only != "" {
		name += "-" + r.Only
	}
	if r.Quick {
		name += "-quick"
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	files := map[string][]byte{name + ".json": append(data, '\n'), name + ".md": r.page(name)}
	maps.Copy(files, r.charts(name))
	if !r.Quick && r.Only == "" {
		files["latest.md"] = r.page("latest")
		maps.Copy(files, r.charts("latest"))
	}
	for file, content := range files {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("\nstored as %s (and .json)\n", filepath.Join(dir, name+".md"))
	return nil
}

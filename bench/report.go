package main

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
	perSecond = "/s"
	millis    = "ms"
	micros    = "µs"
	megabytes = "MB"
	kilobytes = "kB"
	count     = ""
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

// report collects lines and writes them.
type report struct {
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

func newReport(quick bool, only string) *report {
	now := time.Now()
	return &report{Date: now.Format("2006-01-02 15:04 MST"), Machine: machine(), Quick: quick, Only: only, at: now, before: process.Usage()}
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

// add makes a line with what is compared; 0 is no floor.
func (r *report) add(part, name, unit string, ours, floor float64) *Line {
	l := Line{Part: part, Name: name, Unit: unit, Ours: ours, Floor: floor}
	if floor != 0 {
		l.Ratio = ours / floor
	}
	r.Lines = append(r.Lines, l)
	return &r.Lines[len(r.Lines)-1]
}

// broken records a part that could not be measured: as bad as a miss.
func (r *report) broken(part string, err error) {
	fmt.Printf("   FAILED: %v\n", err)
	r.add(part, "could not be measured", count, 0, 0).require(false, "a figure").note("%v", err)
}

// require says what must hold. Several of one line are all wanted.
func (l *Line) require(holds bool, want string) *Line {
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

// pairedBy replaces the ratio of the medians by the median of the ratios.
func (l *Line) pairedBy(ratio float64) *Line {
	l.Ratio = ratio
	return l
}

func (l *Line) ratioAtLeast(limit float64) *Line {
	return l.uses(limit/l.Ratio).require(l.Ratio >= limit, fmt.Sprintf("ratio >= %.2f", limit))
}

func (l *Line) ratioAtMost(limit float64) *Line {
	return l.uses(l.Ratio/limit).require(l.Ratio > 0 && l.Ratio <= limit, fmt.Sprintf("ratio <= %.2f", limit))
}

func (l *Line) atMost(limit float64) *Line {
	return l.uses(l.Ours/limit).require(l.Ours <= limit, "<= "+figure(limit, l.Unit))
}

func (l *Line) atLeast(limit float64) *Line {
	return l.uses(limit/l.Ours).require(l.Ours >= limit, ">= "+figure(limit, l.Unit))
}

func (l *Line) note(format string, args ...any) *Line {
	l.Note = strings.TrimPrefix(l.Note+"; "+fmt.Sprintf(format, args...), "; ")
	return l
}

// figure is a number with its unit, with as many digits as mean something.
func figure(v float64, unit string) string {
	digits := 0
	switch {
	case v == float64(int64(v)) && unit == count:
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
	if unit == "" || unit == perSecond {
		return text + unit
	}
	return text + " " + unit
}

// cells are the columns of a line, as text.
func (l Line) cells() []string {
	floor, ratio, verdict := "", "", ""
	if l.Floor != 0 {
		floor, ratio = figure(l.Floor, l.Unit), fmt.Sprintf("%.2f", l.Ratio)
	}
	switch {
	case l.Missed:
		verdict = "missed"
	case l.Want != "":
		verdict = "met"
	}
	return []string{l.Part, l.Name, figure(l.Ours, l.Unit), floor, ratio, l.Want, verdict, l.Note}
}

var columns = []string{"part", "what", "ours", "floor", "ratio", "target", "", "note"}

// print is the table for a terminal.
func (r *report) print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(columns, "\t"))
	for _, l := range r.Lines {
		fmt.Fprintln(t, strings.Join(l.cells(), "\t"))
	}
	t.Flush()
}

// finish prints and stores the table. The error says what was missed.
func (r *report) finish(dir string) error {
	r.Others = process.Others(r.before, process.Usage(), time.Since(r.at))
	for i := range r.Lines {
		if l := &r.Lines[i]; l.Want == "" { // a figure that nothing is asked of says nothing
			l.require(false, "a target, which this row lacks")
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
	text := fmt.Sprintf("%s: %s: %s", l.Part, l.Name, figure(l.Ours, l.Unit))
	if l.Floor != 0 {
		text += fmt.Sprintf(", floor %s, ratio %.2f", figure(l.Floor, l.Unit), l.Ratio)
	}
	if text += "; wanted: " + l.Want; l.Note != "" {
		text += " (" + l.Note + ")"
	}
	return text
}

// store writes the table under the date. Only a whole run becomes the latest,
// so that a look at one part does not replace what the rest is compared with.
func (r *report) store(dir string) error {
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

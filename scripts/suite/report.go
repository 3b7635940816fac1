package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// event is one line of go test -json.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
	FailedBuild                               string
}

// name is one test, or a whole package when Test is empty.
type name struct{ Package, Test string }

func (n name) String() string {
	if n.Test == "" {
		return short(n.Package)
	}
	return short(n.Package) + " " + n.Test
}

type timing struct {
	name    name
	elapsed time.Duration
	cpu     time.Duration
}

// report collects what go test says.
type report struct {
	mu       sync.Mutex // two runs of go test may speak at once
	out      io.Writer
	packages int // how many are expected
	ended    int

	output          map[name][]string
	bad             map[name]bool
	flaky           []name
	passed, failing int
	skipped         map[string]int // by reason
	tests           []timing
	pkgs            []timing
	cpu             map[string]time.Duration
	builds          map[string][]string
}

func newReport(out io.Writer, packages int) *report {
	return &report{out: out, packages: packages, output: map[name][]string{}, bad: map[name]bool{},
		skipped: map[string]int{}, cpu: map[string]time.Duration{}, builds: map[string][]string{}}
}

func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			r.take(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) take(line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var e event
	if json.Unmarshal(line, &e) != nil {
		fmt.Fprintf(r.out, "%s", line)
		return
	}
	r.note(e)
}

func (r *report) note(e event) {
	n := name{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		r.builds[e.ImportPath] = append(r.builds[e.ImportPath], e.Output)
	case "output":
		if cpu, ok := strings.CutPrefix(e.Output, cpuMark); ok {
			if d, err := time.ParseDuration(strings.TrimSpace(cpu)); err == nil {
				r.cpu[e.Package] = d
				return
			}
		}
		r.output[n] = append(r.output[n], e.Output)
	case "pass", "skip", "fail":
		if e.Test == "" {
			r.endPackage(e)
		} else {
			r.endTest(e)
		}
	}
}

func (r *report) endTest(e event) {
	n := name{e.Package, e.Test}
	switch e.Action {
	case "pass":
		r.passed++
	case "skip":
		r.skipped[reason(r.output[n])]++
	case "fail":
		r.failing++
		r.bad[n] = true
		fmt.Fprintf(r.out, "FAIL %s (%.1fs)\n%s\n", n, e.Elapsed, indent(r.output[n]))
	}
	if e.Action != "skip" {
		r.tests = append(r.tests, timing{name: n, elapsed: seconds(e.Elapsed)})
	}
	delete(r.output, n)
}

func (r *report) endPackage(e event) {
	n := name{e.Package, ""}
	r.ended++
	r.pkgs = append(r.pkgs, timing{n, seconds(e.Elapsed), r.cpu[e.Package]})
	word := "ok  "
	if e.Action == "fail" {
		word = "FAIL"
		// A package fails by itself when it does not build, panics, or hangs.
		if !slices.ContainsFunc(r.failed(), func(f name) bool { return f.Package == e.Package }) {
			r.bad[n] = true
			r.failing++
		}
		fmt.Fprint(r.out, indent(r.builds[e.FailedBuild]))
		for open, lines := range r.output {
			if open.Package == e.Package {
				fmt.Fprintf(r.out, "%s, not ended:\n%s\n", open, indent(tail(lines, 200)))
			}
		}
	}
	fmt.Fprintf(r.out, "%s %3d/%d %s %.1fs, CPU %.1fs\n", word, r.ended, r.packages, short(e.Package), e.Elapsed, r.cpu[e.Package].Seconds())
	for open := range r.output {
		if open.Package == e.Package {
			delete(r.output, open)
		}
	}
}

// anyFailed tells whether something in one of these packages failed.
func (r *report) anyFailed(packages []string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.failed(), func(n name) bool { return slices.Contains(packages, n.Package) })
}

// failed lists what failed: the innermost tests, and packages that failed
// outside of any test.
func (r *report) failed() []name {
	var out []name
	for n := range r.bad {
		inner := false
		for m := range r.bad {
			inner = inner || m.Package == n.Package && strings.HasPrefix(m.Test, n.Test+"/")
		}
		if !inner {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, func(a, b name) int { return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Test, b.Test)) })
	return out
}

// most is how many failures are run again. More than that is no accident.
const most = 5

// again runs each failed test once more, by itself, and takes what passes off
// the list of failures.
func (r *report) again(test func(r *report, flags, packages []string) error, flags []string, failed []name) {
	if len(failed) > most {
		return
	}
	for _, n := range failed {
		if n.Test == "" {
			continue
		}
		fmt.Fprintf(r.out, "\n== again, by itself: %s\n", n)
		second := newReport(r.out, 1)
		args := append(slices.Clone(flags), "-count=1", "-p=1", "-parallel=1", "-run", exactly(n.Test))
		if err := test(second, args, []string{n.Package}); err != nil || len(second.failed()) > 0 || second.passed == 0 {
			continue
		}
		r.flaky = append(r.flaky, n)
		for m := range r.bad {
			if m.Package == n.Package && (m == n || strings.HasPrefix(n.Test, m.Test+"/") && r.alone(m, n)) {
				delete(r.bad, m)
			}
		}
		r.failing = len(r.bad)
	}
}

// alone tells whether n is the only failure left below m.
func (r *report) alone(m, n name) bool {
	for other := range r.bad {
		if other != n && other.Package == m.Package && strings.HasPrefix(other.Test, m.Test+"/") && !strings.HasPrefix(n.Test, other.Test+"/") {
			return false
		}
	}
	return true
}

// exactly is the -run pattern for one test.
func exactly(test string) string {
	parts := strings.Split(test, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

func (r *report) summary(total time.Duration) {
	var cpu time.Duration
	for _, d := range r.cpu {
		cpu += d
	}
	longest := func(all []timing) []timing {
		slices.SortStableFunc(all, func(a, b timing) int { return cmp.Compare(b.elapsed, a.elapsed) })
		return all[:min(10, len(all))]
	}
	fmt.Fprintf(r.out, "\nslowest packages\n")
	for _, p := range longest(r.pkgs) {
		fmt.Fprintf(r.out, "  %7.1fs  CPU %7.1fs  %s\n", p.elapsed.Seconds(), p.cpu.Seconds(), p.name)
	}
	// A test with subtests takes as long as they do: only the innermost count.
	outer := map[name]bool{}
	for _, t := range r.tests {
		for i := strings.LastIndexByte(t.name.Test, '/'); i > 0; i = strings.LastIndexByte(t.name.Test[:i], '/') {
			outer[name{t.name.Package, t.name.Test[:i]}] = true
		}
	}
	fmt.Fprintf(r.out, "slowest tests\n")
	for _, t := range longest(slices.DeleteFunc(slices.Clone(r.tests), func(t timing) bool { return outer[t.name] })) {
		fmt.Fprintf(r.out, "  %7.1fs  %s\n", t.elapsed.Seconds(), t.name)
	}
	skips := 0
	for why, n := range r.skipped {
		fmt.Fprintf(r.out, "skipped %d: %s\n", n, why)
		skips += n
	}
	for _, n := range r.flaky {
		fmt.Fprintf(r.out, "FLAKY %s: failed, then passed by itself. This is a bug in the test or in the product.\n", n)
	}
	for _, n := range r.failed() {
		fmt.Fprintf(r.out, "FAILED %s\n", n)
	}
	fmt.Fprintf(r.out, "total %s, CPU of the tests %s, %d packages\n", total.Round(time.Second), cpu.Round(time.Second), r.ended)
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", r.passed, r.failing, skips)
}

// saveTimes writes how long every package and test took, the slowest first.
func (r *report) saveTimes(file string) error {
	var b strings.Builder
	for _, all := range [][]timing{r.pkgs, r.tests} {
		slices.SortStableFunc(all, func(a, b timing) int { return cmp.Compare(b.elapsed, a.elapsed) })
		for _, t := range all {
			fmt.Fprintf(&b, "%.1f\t%s\n", t.elapsed.Seconds(), t.name)
		}
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

// reason is the last thing that a skipped test said.
func reason(lines []string) string {
	for _, l := range slices.Backward(lines) {
		l = strings.TrimSpace(l)
		if l != "" && !strings.HasPrefix(l, "---") && !strings.HasPrefix(l, "===") {
			if _, text, ok := strings.Cut(l, ".go:"); ok {
				_, text, _ = strings.Cut(text, ": ")
				return text
			}
			return l
		}
	}
	return "no reason given"
}

func indent(lines []string) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString("    " + l)
	}
	return b.String()
}

func tail(lines []string, n int) []string { return lines[max(0, len(lines)-n):] }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Command suite runs go test on packages, shows progress and failures, and ends
// with the slowest tests and packages, the total, and what was left behind.
//
//	suite [-rerun] [-leftovers] [-changed=COMMIT] [go test flags] -- PACKAGE...
//
// With -leftovers the tests get a folder of their own, processor time is
// measured, bin/test-times.txt tells how long each test took, and what remains
// after them is listed and fails the run. With -changed
// only packages run that a change since then can touch.
//
// With -rerun a test that failed runs once more, by itself. If it passes then,
// the run passes, and the test is listed as flaky: a bug to fix, not a reason to
// refuse the change at hand. Two different failures of one test fail the run.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	// go test starts each test program through this one: see measure.go.
	if len(os.Args) > 2 && os.Args[1] == "measure" {
		os.Exit(measure(os.Args[2:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	passed, err := run(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(2)
	}
	if !passed {
		os.Exit(1)
	}
}

// options are what the command line says.
type options struct {
	rerun, leftovers bool
	changed          string // the commit to compare with; empty: run all
	flags, packages  []string
}

func parse(args []string) (options, error) {
	split := slices.Index(args, "--")
	if split < 0 || split == len(args)-1 {
		return options{}, fmt.Errorf("usage: suite [-rerun] [-leftovers] [-changed=COMMIT] [go test flags] -- PACKAGES")
	}
	o := options{packages: args[split+1:]}
	for _, a := range args[:split] {
		base, changed := strings.CutPrefix(a, "-changed=")
		switch {
		case a == "-rerun":
			o.rerun = true
		case a == "-leftovers":
			o.leftovers = true
		case changed:
			o.changed = base
		default:
			o.flags = append(o.flags, a)
		}
	}
	return o, nil
}

func run(ctx context.Context, args []string) (bool, error) {
	o, err := parse(args)
	if err != nil {
		return false, err
	}
	packages, err := list(ctx, o.packages)
	if err != nil {
		return false, err
	}
	if o.changed != "" {
		if packages, err = changed(ctx, o.changed, packages); err != nil {
			return false, err
		}
		fmt.Printf("%d packages are touched\n", len(packages))
		if len(packages) == 0 {
			return true, nil
		}
	}
	if slices.Contains(o.flags, "-short") {
		packages = slices.DeleteFunc(packages, func(p string) bool { return slices.Contains(long, short(p)) })
		fmt.Printf("left out of the short round: %s\n", strings.Join(long, ", "))
	}
	temp, before := "", map[string]bool{}
	env, programs := os.Environ(), "bin/test"
	if o.leftovers {
		if temp, err = makeTemp(); err != nil {
			return false, err
		}
		defer os.RemoveAll(temp)
		home, err := os.MkdirTemp(filepath.Dir(temp), "home")
		if err != nil {
			return false, err
		}
		defer os.RemoveAll(home)
		if programs, err = os.MkdirTemp(filepath.Dir(temp), "programs"); err != nil {
			return false, err
		}
		defer os.RemoveAll(programs)
		env, before = environment(temp, home), outside(true)
	}
	if dir := memory(); dir != "" && !o.leftovers {
		env = append(env, "TMPDIR="+dir) // the same each time: results can be reused
	}
	built, err := buildPrograms(ctx, programs)
	if err != nil {
		return false, err
	}
	env = append(env, built...)
	start := time.Now()
	r := newReport(os.Stdout, len(packages))
	test := func(r *report, flags, packages []string) error {
		return goTest(ctx, r, env, o.leftovers, flags, packages)
	}
	if err := test(r, o.flags, packages); err != nil {
		return false, err
	}
	if failed := r.failed(); o.rerun && len(failed) > 0 && ctx.Err() == nil {
		r.again(test, o.flags, failed)
	}
	r.summary(time.Since(start))
	if o.leftovers {
		if err := r.saveTimes("bin/test-times.txt"); err != nil {
			return false, err
		}
	}
	clean := !o.leftovers || checkLeftovers(os.Stdout, temp, before)
	return clean && len(r.failed()) == 0 && ctx.Err() == nil, nil
}

// list resolves package patterns, and puts the slow packages first so that no
// long one is left running alone at the end.
func list(ctx context.Context, patterns []string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-f",
		"{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}"}, patterns...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	packages := strings.Fields(string(out))
	if len(packages) == 0 {
		return nil, fmt.Errorf("no package with tests matches %s", strings.Join(patterns, " "))
	}
	rank := func(p string) int {
		for i, s := range slowest {
			if strings.HasSuffix(p, "/"+s) {
				return i
			}
		}
		return len(slowest)
	}
	slices.SortStableFunc(packages, func(a, b string) int { return rank(a) - rank(b) })
	return packages, nil
}

func short(pkg string) string { return strings.TrimPrefix(pkg, "deckhand/") }

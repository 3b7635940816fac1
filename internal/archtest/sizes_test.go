package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"math"
	"slices"
	"testing"
)

// Sizes that pleasant codebases keep without trying. Tests and generated files
// do not count: both are long for good reasons.
const (
	fileP90 = 500 // nine of ten files are at most this long
	fileMax = 700 // and none is longer than this
	funcP95 = 65  // nineteen of twenty functions are at most this long
)

// packageMax is how many lines a package has at most.
const packageMax = 2500

// packageLimits are the packages with a limit of their own. Those above packageMax are
// packages from before the rule: numbers here only go down, and no package is added.
var packageLimits = map[string]int{
	"cmd/deckhand": 2000, // flags, config, wiring

	"bench":                         3340,
	"internal/agent":                4150,
	"internal/risk":                 2600,
	"internal/sandbox/egress":       2800,
	"internal/sandbox/local":        2950,
	"internal/sandbox/runner/shell": 3200,
	"internal/session":              3900,
	"internal/store/sqlite":         3850,
	"internal/v0":                   2700,
}

// importMax is how many packages of ours a package imports at most. cmd wires and
// bench measures everything, so neither is bound.
const importMax = 12

// importLimits are the packages with more. Numbers here only go down, and no package is added.
var importLimits = map[string]int{
	"internal/cli":            13,
	"internal/profile":        23,
	"internal/sandbox/runner": 13,
}

// lists are packages that only list what is below a port. They import each of those, so
// the number says nothing about what they decide.
var lists = []string{"internal/tool/toolbox"}

const (
	whyImports  = "a package that needs this many others decides too much: hand it what it needs as a function, or give its second idea a package"
	whyPackages = "a large package collects what has no better place: name its second idea and give it a package"
	whyMain     = "main turns flags into a config and wires; what decides, computes or talks to people belongs in a package that can be tested without a process"
	whyFiles    = "a long file usually holds two ideas: name the second one and give it a file"
	whyFuncs    = "a long function usually does two things: name the second one"
)

// size is a thing and its length in lines.
type size struct {
	where string
	lines int
}

// fileSizes lists the files that count, longest last.
func fileSizes(t *tree) []size {
	var all []size
	for _, p := range t.pkgs {
		for _, f := range p.files {
			if !f.test && !ast.IsGenerated(f.ast) {
				all = append(all, size{f.path, f.lines})
			}
		}
	}
	slices.SortFunc(all, func(a, b size) int { return cmp.Compare(a.lines, b.lines) })
	return all
}

// funcSizes lists the functions that count, longest last. Function literals
// count to the function they stand in.
func funcSizes(t *tree) []size {
	var all []size
	for _, p := range t.pkgs {
		for _, f := range p.files {
			if f.test || ast.IsGenerated(f.ast) {
				continue
			}
			for _, d := range f.ast.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
					lines := t.fset.Position(fn.End()).Line - t.fset.Position(fn.Pos()).Line + 1
					all = append(all, size{t.at(fn.Pos()) + " " + fn.Name.Name, lines})
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b size) int { return cmp.Compare(a.lines, b.lines) })
	return all
}

// percentile is the nearest-rank percentile of sizes in ascending order.
func percentile(sorted []size, p float64) int {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[max(rank, 1)-1].lines
}

// packages finds packages that are too long, and limits that are not needed any more.
func packages(t *tree) []finding {
	var found []finding
	for _, p := range t.pkgs {
		lines := 0
		for _, f := range p.files {
			if !f.test && !ast.IsGenerated(f.ast) {
				lines += f.lines
			}
		}
		limit, own := packageLimits[p.dir]
		if !own {
			limit = packageMax
		}
		why := whyPackages
		if p.name == "main" {
			why = whyMain
		}
		switch {
		case lines > limit:
			found = append(found, finding{p.dir, fmt.Sprintf("%d lines, wanted at most %d", lines, limit), why})
		case own && limit > packageMax && lines <= packageMax:
			found = append(found, finding{p.dir, fmt.Sprintf("%d lines: it needs no limit above %d any more, remove it from packageLimits", lines, packageMax), why})
		}
	}
	return found
}

// ownImports finds packages that import too many others of ours, and limits that are not needed any more.
func ownImports(t *tree) []finding {
	var found []finding
	for _, p := range t.pkgs {
		if p.name == "main" || within(p.dir, "bench") || slices.Contains(lists, p.dir) {
			continue
		}
		own := map[string]bool{}
		for _, f := range p.files {
			if f.test {
				continue
			}
			for imp := range t.imports(f) {
				if dir, ours := t.ours(imp); ours {
					own[dir] = true
				}
			}
		}
		limit, listed := importLimits[p.dir]
		switch {
		case len(own) > max(limit, importMax):
			found = append(found, finding{p.dir, fmt.Sprintf("%d own imports, wanted at most %d", len(own), max(limit, importMax)), whyImports})
		case listed && len(own) <= importMax:
			found = append(found, finding{p.dir, fmt.Sprintf("%d own imports: remove it from importLimits", len(own)), whyImports})
		}
	}
	return found
}

// files finds files that are too long, alone or on the whole.
func files(t *tree) []finding {
	var found []finding
	all := fileSizes(t)
	if p90 := percentile(all, 90); p90 > fileP90 {
		found = append(found, finding{"files", fmt.Sprintf("the 90th percentile is %d lines, wanted at most %d", p90, fileP90), whyFiles})
	}
	for _, s := range all {
		if s.lines > fileMax {
			found = append(found, finding{s.where, fmt.Sprintf("%d lines, wanted at most %d", s.lines, fileMax), whyFiles})
		}
	}
	return found
}

// functions finds too many long functions.
func functions(t *tree) []finding {
	all := funcSizes(t)
	p95 := percentile(all, 95)
	if p95 <= funcP95 {
		return nil
	}
	found := []finding{{"functions", fmt.Sprintf("the 95th percentile is %d lines, wanted at most %d", p95, funcP95), whyFuncs}}
	for _, s := range all {
		if s.lines > funcP95 {
			found = append(found, finding{s.where, fmt.Sprintf("%d lines", s.lines), whyFuncs})
		}
	}
	return found
}

func TestFileSizes(t *testing.T) {
	repo := repository(t)
	report(t, files(repo))
	for _, s := range fileSizes(repo) {
		if s.lines > fileP90 {
			t.Logf("%s has %d lines: allowed, but %s", s.where, s.lines, whyFiles)
		}
	}
}

func TestPackageSizes(t *testing.T) { report(t, packages(repository(t))) }

func TestOwnImports(t *testing.T) { report(t, ownImports(repository(t))) }

func TestFunctionSizes(t *testing.T) { report(t, functions(repository(t))) }

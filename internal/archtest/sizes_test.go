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

const (
	whyFiles = "a long file usually holds two ideas: name the second one and give it a file"
	whyFuncs = "a long function usually does two things: name the second one"
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

func TestFunctionSizes(t *testing.T) { report(t, functions(repository(t))) }

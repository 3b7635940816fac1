package archtest

import (
	"go/ast"
	"path"
	"strconv"
	"testing"
)

const whySleep = "a test that sleeps is slow when all is well and fails when the machine is busy; " +
	"wait for a signal (a channel, an event, an answer), or run inside synctest.Test, where time is not real"

// sleeps finds tests that wait for time. Inside a synctest bubble sleeping is how the
// made-up clock moves, and costs nothing: there it is allowed.
func sleeps(t *tree) []finding {
	var found []finding
	for _, p := range t.pkgs {
		for _, f := range p.files {
			timeName, bubbleName := localName(f.ast, "time"), localName(f.ast, "testing/synctest")
			if !f.test || timeName == "" {
				continue
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && selects(call.Fun, bubbleName, "Test") {
					return false
				}
				if e, ok := n.(ast.Expr); ok && selects(e, timeName, "Sleep") {
					found = append(found, finding{t.at(n.Pos()), "time.Sleep in a test", whySleep})
				}
				return true
			})
		}
	}
	return found
}

// localName is the name under which a file knows an import: "" if it does not.
func localName(f *ast.File, importPath string) string {
	for _, spec := range f.Imports {
		if p, _ := strconv.Unquote(spec.Path.Value); p != importPath {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(importPath)
	}
	return ""
}

// selects reports the expression pkg.name, or name alone under a dot import.
func selects(e ast.Expr, pkg, name string) bool {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		x, ok := e.X.(*ast.Ident)
		return ok && pkg != "" && x.Name == pkg && e.Sel.Name == name
	case *ast.Ident:
		return pkg == "." && e.Name == name
	}
	return false
}

func TestNoSleepInTests(t *testing.T) { report(t, sleeps(repository(t))) }

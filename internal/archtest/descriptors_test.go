package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strconv"
	"testing"
)

const (
	whyDriver = "a new driver would have to be added here too; ask for a field of sandbox.Properties, which each driver declares in its folder"
	// driverHome is the folder below which drivers live.
	driverHome = "internal/sandbox"
)

// driverExempt may use these words: the list of drivers, and what knows programs of the same name.
var driverExempt = []string{"internal/sandbox/drivers", "internal/risk", "scripts/suite"}

// textOf is the value of a string literal, also in parentheses or converted.
func textOf(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return textOf(e.X)
	case *ast.CallExpr:
		if len(e.Args) == 1 {
			if id, ok := e.Fun.(*ast.Ident); ok && id.Name == "string" {
				return textOf(e.Args[0])
			}
		}
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			s, err := strconv.Unquote(e.Value)
			return s, err == nil
		}
	}
	return "", false
}

// constants are the string constants that files declare.
func constants(files []*goFile) map[string]string {
	found := map[string]string{}
	for _, f := range files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, name := range spec.Names {
				if i < len(spec.Values) {
					if s, ok := textOf(spec.Values[i]); ok {
						found[name.Name] = s
					}
				}
			}
			return true
		})
	}
	return found
}

// driverNames are the folders of sandbox drivers and their names: packages right
// below internal/sandbox with a constant Name.
func driverNames(t *tree) map[string]string {
	found := map[string]string{}
	for _, p := range t.pkgs {
		if path.Dir(p.dir) != driverHome {
			continue
		}
		shipped := slices.DeleteFunc(slices.Clone(p.files), func(f *goFile) bool { return f.test })
		if name := constants(shipped)["Name"]; name != "" {
			found[p.dir] = name
		}
	}
	return found
}

// compared lists the expressions that a node compares with others: operands of
// == and !=, cases of a switch, arguments of functions that compare or look up.
func compared(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if n.Op == token.EQL || n.Op == token.NEQ {
			return []ast.Expr{n.X, n.Y}
		}
	case *ast.CaseClause:
		return n.List
	case *ast.CallExpr:
		s, ok := n.Fun.(*ast.SelectorExpr)
		if !ok {
			return nil
		}
		if id, ok := s.X.(*ast.Ident); ok && slices.Contains([]string{"strings", "slices", "cmp", "bytes"}, id.Name) {
			return n.Args
		}
	case *ast.CompositeLit:
		if _, ok := n.Type.(*ast.MapType); ok {
			return keys(n)
		}
	}
	return nil
}

func keys(lit *ast.CompositeLit) []ast.Expr {
	var found []ast.Expr
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			found = append(found, kv.Key)
		}
	}
	return found
}

// driverComparisons finds code that asks which sandbox driver it has to do with.
func driverComparisons(t *tree) []finding {
	names := driverNames(t)
	var found []finding
	for _, p := range t.pkgs {
		inDriver := false
		for dir := range names {
			inDriver = inDriver || within(p.dir, dir)
		}
		if inDriver || slices.Contains(driverExempt, p.dir) {
			continue
		}
		consts := constants(p.files)
		for _, f := range p.files {
			if f.test {
				continue
			}
			found = append(found, driverNamesIn(t, f, names, consts)...)
		}
	}
	return found
}

func driverNamesIn(t *tree, f *goFile, names, consts map[string]string) []finding {
	known := map[string]bool{}
	for _, name := range names {
		known[name] = true
	}
	drivers := map[string]bool{} // what this file calls them
	for _, spec := range f.ast.Imports {
		imp, _ := strconv.Unquote(spec.Path.Value)
		if dir, ok := t.ours(imp); ok && names[dir] != "" {
			name := path.Base(dir)
			if spec.Name != nil {
				name = spec.Name.Name
			}
			drivers[name] = true
		}
	}
	var found []finding
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Name" {
			if id, ok := s.X.(*ast.Ident); ok && drivers[id.Name] {
				found = append(found, finding{t.at(s.Pos()), "uses " + id.Name + ".Name, the name of a sandbox driver", whyDriver})
			}
		}
		for _, e := range compared(n) {
			text, ok := textOf(e)
			if id, isName := e.(*ast.Ident); isName {
				text, ok = consts[id.Name]
			}
			if ok && known[text] {
				found = append(found, finding{t.at(e.Pos()), fmt.Sprintf("compares with %q, the name of a sandbox driver", text), whyDriver})
			}
		}
		return true
	})
	return found
}

func TestDriverNames(t *testing.T) {
	t.Parallel()
	tree := repository(t)
	if names := driverNames(tree); len(names) < 3 {
		t.Errorf("found the drivers %v, and there are more", names)
	}
	report(t, driverComparisons(tree))
}

func TestDriverNamesCatches(t *testing.T) {
	t.Parallel()
	check := func(body string) []finding {
		return driverComparisons(planted(t, map[string]string{
			"internal/sandbox/cloud/cloud.go": "package cloud\n\nconst Name = \"cloud\"\n\nfunc is(s string) bool { return s == Name }\n",
			"internal/live/live.go":           "package live\n\n" + body + "\n",
		}))
	}
	report(t, check(`type a struct { B string "json:\"cloud\"" }; var c = []string{"cloud"}; func d(s string) bool { return s == "clouds" }`))
	for name, body := range map[string]string{
		"comparison": `func f(s string) bool { return "cloud" != s }`,
		"switch":     `func f(s string) int { switch s { case "a", ("cloud"): return 1 }; return 0 }`,
		"constant":   `const c = "cloud"; func f(s string) bool { return s == c }`,
		"variable":   `var c = "cloud"; func f(s string) bool { return s == c }`,
		"function":   `import "strings"; func f(s string) bool { return strings.EqualFold(s, "cloud") }`,
		"map":        `var m = map[string]bool{"cloud": true}`,
	} {
		t.Run(name, func(t *testing.T) { caught(t, check(body), "internal/live/live.go", `"cloud"`) })
	}
	caught(t, check("import c \"deckhand/internal/sandbox/cloud\"\n\nfunc f(s string) bool { return s == c.Name }"), "internal/live/live.go", "c.Name")
}

package archtest

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// httpAPI is the package that all requests come in by. These are its sizes, without tests.
// They may only shrink.
const (
	httpAPI        = "internal/httpapi"
	httpAPILines   = 1100
	configFields   = 15
	groupLines     = 2500
	sharedByRoutes = "rest, status, timeline"
)

const (
	whyHTTPAPI = "the root of the API attracts everything: routes on a subject of their own belong in a folder below, with their few dependencies"
	whyConfig  = "what belongs together is a struct of the package that needs it"
	whyGroup   = "no group of routes calls another: what two of them need is in rest, or is passed as a function"
	whyContext = "a handler takes the context first, as all Go functions do"
)

// routeGroups checks the sizes of the API and of the groups of routes below it, and that the groups do not import each other.
func routeGroups(t *tree) []finding {
	var found []finding
	for _, p := range t.pkgs {
		if !within(p.dir, httpAPI) {
			continue
		}
		lines := 0
		for _, f := range p.files {
			if f.test {
				continue
			}
			lines += f.lines
			for imp, at := range t.imports(f) {
				dir, ours := t.ours(imp)
				if !ours {
					continue
				}
				below, isRoutes := strings.CutPrefix(dir, httpAPI)
				if p.dir != httpAPI && isRoutes && !slices.Contains(strings.Split(sharedByRoutes, ", "), strings.TrimPrefix(below, "/")) {
					found = append(found, finding{at, fmt.Sprintf("%s imports %s, but below internal/httpapi may import only %s", p.dir, dir, sharedByRoutes), whyGroup})
				}
			}
			found = append(found, contexts(t, f)...)
			if p.dir == httpAPI {
				found = append(found, config(t, f)...)
			}
		}
		most := groupLines
		if p.dir == httpAPI {
			most = httpAPILines
		}
		if lines > most {
			found = append(found, finding{p.dir, fmt.Sprintf("%d lines, wanted at most %d", lines, most), whyHTTPAPI})
		}
	}
	return found
}

// config counts the fields of Config.
func config(t *tree, f *goFile) []finding {
	var found []finding
	ast.Inspect(f.ast, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != "Config" {
			return true
		}
		if s, ok := spec.Type.(*ast.StructType); ok && s.Fields.NumFields() > configFields {
			found = append(found, finding{t.at(spec.Pos()), fmt.Sprintf("Config has %d fields, wanted at most %d", s.Fields.NumFields(), configFields), whyConfig})
		}
		return true
	})
	return found
}

// contexts finds functions whose context is not the first parameter.
func contexts(t *tree, f *goFile) []finding {
	var found []finding
	for _, decl := range f.ast.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		for i, p := range fn.Type.Params.List {
			s, ok := p.Type.(*ast.SelectorExpr)
			if !ok || i == 0 || s.Sel.Name != "Context" {
				continue
			}
			if pkg, ok := s.X.(*ast.Ident); ok && pkg.Name == "context" {
				found = append(found, finding{t.at(fn.Pos()), fn.Name.Name + " has its context after another parameter", whyContext})
			}
		}
	}
	return found
}

func TestRouteGroups(t *testing.T) { report(t, routeGroups(repository(t))) }

func TestRouteGroupsCatch(t *testing.T) {
	const file = httpAPI + "/files/files.go"
	check := func(path, body string) []finding {
		return routeGroups(planted(t, map[string]string{path: "package x\n\n" + body + "\n"}))
	}
	report(t, check(file, "import (\n\t\"context\"\n\t\"deckhand/internal/httpapi/rest\"\n)\n\nfunc list(ctx context.Context, c *rest.Call) {}"))
	for what, body := range map[string]string{
		"files imports internal/httpapi/git": "import _ \"deckhand/internal/httpapi/git\"",
		"files imports internal/httpapi,":    "import _ \"deckhand/internal/httpapi\"",
		"context after another parameter":    "import \"context\"\n\nfunc list(id string, ctx context.Context) {}",
		"lines, wanted at most":              strings.Repeat("\n", groupLines),
	} {
		caught(t, check(file, body), httpAPI, what)
	}
	caught(t, check(httpAPI+"/handler.go", "type Config struct {\n"+strings.Repeat("\tA int\n", configFields+1)+"}"), httpAPI, "fields, wanted at most")
}

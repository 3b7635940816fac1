package archtest

import (
	"go/ast"
	"strings"
	"testing"
)

const whyEntryPoints = "no entry point calls another or makes up a request: what two of them do is in internal/conversation, and what they read in internal/conversation/query"

// entryPoints finds entry points below internal/httpapi that make up a request of the API, and interfaces through which one could
// be given the handlers of another, which no import shows.
func entryPoints(t *tree) []finding {
	var found []finding
	for _, p := range t.pkgs {
		if !strings.HasPrefix(p.dir, httpAPI+"/") || p.dir == httpAPI+"/rest" {
			continue // requests come in at the root, and rest defines Call
		}
		for _, f := range p.files {
			if f.test {
				continue
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CompositeLit:
					if named(n.Type, "rest", "Call") {
						found = append(found, finding{t.at(n.Pos()), "makes up a rest.Call", whyEntryPoints})
					}
				case *ast.CallExpr:
					if named(n.Fun, "http", "NewRequest") || named(n.Fun, "http", "NewRequestWithContext") || named(n.Fun, "httptest", "NewRequest") {
						found = append(found, finding{t.at(n.Pos()), "makes up an HTTP request", whyEntryPoints})
					}
				case *ast.InterfaceType:
					if contains(n, func(n ast.Node) bool { e, ok := n.(ast.Expr); return ok && named(e, "rest", "Call") }) {
						found = append(found, finding{t.at(n.Pos()), "an interface has a method that takes a rest.Call", whyEntryPoints})
					}
				}
				return true
			})
		}
	}
	return found
}

// named reports whether an expression is pkg.name.
func named(e ast.Expr, pkg, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg
}

func TestEntryPoints(t *testing.T) { report(t, entryPoints(repository(t))) }

func TestEntryPointsCatch(t *testing.T) {
	const file = httpAPI + "/mcp/calls.go"
	check := func(body string) []finding {
		return entryPoints(planted(t, map[string]string{file: "package mcp\n\n" + body + "\n"}))
	}
	report(t, check("func serve(c *rest.Call) string { return c.Who.User }\n\ntype reader interface{ Get(id string) error }"))
	caught(t, check("func asker(c *rest.Call) *rest.Call { return &rest.Call{Who: c.Who} }"), file, "rest.Call")
	caught(t, check("type queries interface {\n\tStop(c *rest.Call, id string) error\n}"), file, "interface")
	caught(t, check("func ask() { http.NewRequest(\"GET\", \"/\", nil) }"), file, "HTTP request")
}

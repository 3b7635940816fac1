package archtest

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// door is the package that all requests come in by. These are its sizes, without tests.
// They may only shrink.
const (
	door          = "internal/httpapi"
	doorLines     = 1100
	doorImports   = 12 // own ones
	configFields  = 15
	subdoorLines  = 2500
	sharedByDoors = "rest, status, timeline"
)

const (
	whyDoor    = "the door attracts everything: routes on a subject of their own belong in a folder below, with their few dependencies"
	whyConfig  = "what belongs together is a struct of the package that needs it"
	whySubdoor = "no door calls another: what two of them need is in rest, or is handed over as a function"
	whyContext = "a handler takes the context first, as all Go functions do"
)

// doors checks the sizes of the door and of those below it, and that they do not know each other.
func doors(t *tree) []finding {
	var found []finding
	for _, p := range t.pkgs {
		if !within(p.dir, door) {
			continue
		}
		lines, own := 0, map[string]bool{}
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
				own[dir] = true
				below, isDoor := strings.CutPrefix(dir, door)
				if p.dir != door && isDoor && !slices.Contains(strings.Split(sharedByDoors, ", "), strings.TrimPrefix(below, "/")) {
					found = append(found, finding{at, fmt.Sprintf("%s imports %s, but of the doors may know only %s", p.dir, dir, sharedByDoors), whySubdoor})
				}
			}
			found = append(found, contexts(t, f)...)
			if p.dir == door {
				found = append(found, config(t, f)...)
			}
		}
		most := subdoorLines
		if p.dir == door {
			most = doorLines
			if len(own) > doorImports {
				found = append(found, finding{p.dir, fmt.Sprintf("%d own imports, wanted at most %d", len(own), doorImports), whyDoor})
			}
		}
		if lines > most {
			found = append(found, finding{p.dir, fmt.Sprintf("%d lines, wanted at most %d", lines, most), whyDoor})
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

func TestDoors(t *testing.T) { report(t, doors(repository(t))) }

func TestDoorsCatches(t *testing.T) {
	const file = door + "/files/files.go"
	check := func(path, body string) []finding {
		return doors(planted(t, map[string]string{path: "package x\n\n" + body + "\n"}))
	}
	report(t, check(file, "import (\n\t\"context\"\n\t\"deckhand/internal/httpapi/rest\"\n)\n\nfunc list(ctx context.Context, c *rest.Call) {}"))
	for what, body := range map[string]string{
		"files imports internal/httpapi/git": "import _ \"deckhand/internal/httpapi/git\"",
		"files imports internal/httpapi,":    "import _ \"deckhand/internal/httpapi\"",
		"context after another parameter":    "import \"context\"\n\nfunc list(id string, ctx context.Context) {}",
		"lines, wanted at most":              strings.Repeat("\n", subdoorLines),
	} {
		caught(t, check(file, body), door, what)
	}
	caught(t, check(door+"/door.go", "type Config struct {\n"+strings.Repeat("\tA int\n", configFields+1)+"}"), door, "fields, wanted at most")
}

package archtest

import (
	"fmt"
	"go/ast"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	contributing = "CONTRIBUTING.md"
	walkthrough  = "docs/walk.md"

	whyListed = "the table is how a newcomer finds a package: it names each folder right below internal, and none that is gone"
	whyWalk   = "the table says what to look at in each file; a reader who does not find it stops trusting the page"
)

var (
	quotedWord = regexp.MustCompile("`([^`]+)`")
	// walkRow is a row of the walkthrough: the file, and what to look at in it.
	walkRow = regexp.MustCompile(`^\|[^|]*\| \[([^\]]+)\]\([^)]*\) \|([^|]*)\|`)
)

// packageTable compares the table of folders in CONTRIBUTING.md with the tree.
func packageTable(t *tree) []finding {
	src, err := fs.ReadFile(t.fsys, contributing)
	if err != nil {
		return []finding{{contributing, err.Error(), whyListed}}
	}
	var found []finding
	listed := map[string]bool{}
	for line := range strings.Lines(string(src)) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		for _, m := range quotedWord.FindAllStringSubmatch(cell, -1) {
			dir := m[1]
			if below, ok := strings.CutPrefix(dir, "…/"); ok {
				dir = httpAPI + "/" + below
			}
			if !within(dir, "internal") && !within(dir, "cmd") {
				continue
			}
			listed[dir] = true
			if info, err := fs.Stat(t.fsys, dir); err != nil || !info.IsDir() {
				found = append(found, finding{contributing, "lists " + dir + ", which is not there", whyListed})
			}
		}
	}
	for _, p := range t.pkgs {
		parts := strings.Split(p.dir, "/")
		if len(parts) < 2 || parts[0] != "internal" {
			continue
		}
		if dir := path.Join(parts[:2]...); !listed[dir] {
			listed[dir] = true // said once
			found = append(found, finding{contributing, "does not list " + dir, whyListed})
		}
	}
	return found
}

// walk finds names in the table of the walkthrough that their files do not declare.
func walk(t *tree) []finding {
	src, err := fs.ReadFile(t.fsys, walkthrough)
	if err != nil {
		return []finding{{walkthrough, err.Error(), whyWalk}}
	}
	var found []finding
	for line := range strings.Lines(string(src)) {
		m := walkRow.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		declared := declarations(t, m[1])
		for _, name := range quotedWord.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(declared, name[1]) {
				found = append(found, finding{walkthrough, fmt.Sprintf("%s does not declare %s", m[1], name[1]), whyWalk})
			}
		}
	}
	return found
}

// declarations are the names of the functions, methods and types of a file.
func declarations(t *tree, file string) []string {
	var names []string
	for _, p := range t.pkgs {
		for _, f := range p.files {
			if f.path != file {
				continue
			}
			for _, d := range f.ast.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					names = append(names, d.Name.Name)
				case *ast.GenDecl:
					for _, spec := range d.Specs {
						if spec, ok := spec.(*ast.TypeSpec); ok {
							names = append(names, spec.Name.Name)
						}
					}
				}
			}
		}
	}
	return names
}

func TestPackageTable(t *testing.T) { report(t, packageTable(repository(t))) }

func TestWalkthrough(t *testing.T) {
	report(t, walk(repository(t)))
	src, err := fs.ReadFile(repository(t).fsys, walkthrough)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(regexp.MustCompile(`(?m)`+walkRow.String()).FindAllIndex(src, -1)); n < 10 {
		t.Errorf("found %d rows of the table in %s: its form has changed", n, walkthrough)
	}
}

func TestDocsCatch(t *testing.T) {
	table := "| `cmd/deckhand` | wires |\n| `internal/session`, `internal/store` | the core |\n| `internal/httpapi`, `…/rest` | routes |\n"
	extra := map[string]string{"internal/httpapi/rest/r.go": "package rest\n", "internal/live/live.go": "package live\n"}
	with := func(name, text string) *tree {
		extra[name] = text
		return planted(t, extra)
	}
	report(t, packageTable(with(contributing, table+"| `internal/live` | streams |\n")))
	caught(t, packageTable(with(contributing, table)), contributing, "does not list internal/live")
	caught(t, packageTable(with(contributing, table+"| `internal/live`, `…/gone` | streams |\n")), contributing, "lists internal/httpapi/gone")

	extra["internal/live/live.go"] = "package live\n\ntype Hub struct{}\n\nfunc (Hub) Follow() {}\n"
	row := "| 9 the stream | [internal/live/live.go](../internal/live/live.go) | `Hub`, `Follow`%s |\n"
	report(t, walk(with(walkthrough, fmt.Sprintf(row, ""))))
	caught(t, walk(with(walkthrough, fmt.Sprintf(row, ", `gone`"))), walkthrough, "does not declare gone")
}

package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strconv"
	"testing"
)

const (
	whyTool = "a new tool would have to be added here too; ask for a field of tool.Descriptor, which each tool declares in its folder"
	// toolHome is the folder below which tools live.
	toolHome = "internal/tool"
)

// toolExempt are words that mean something else in a package: legacy actions, decisions, programs
// and operations of the runner with the name of a tool. The demo model is a script that
// names the tool it calls, and must not know tools.
var toolExempt = map[string][]string{
	"internal/v0":                    {"think", "finish", "delegate", "reject"},
	"internal/httpapi/conversations": {"reject"},
	"internal/native":                {"think", "finish"},
	"internal/risk":                  {"grep", "fetch"},
	"internal/sandbox/runner/search": {"grep", "glob"},
	"internal/llm/scripted":          {"execute_bash"},
}

// toolExemptOnPage are words that mean something else in files of the web page: a decision
// about a call, a panel of the workspace.
var toolExemptOnPage = map[string][]string{
	"web/src/conversation/ApprovalCard.svelte": {"reject"},
	"web/src/workspace/Workspace.svelte":       {"browser"},
	"web/src/workspace/panels.ts":              {"browser"},
}

// described is the name of the tool that a literal describes, "" if it describes none.
// Only descriptors have a name and rate calls.
func described(lit *ast.CompositeLit, consts map[string]string) (name string) {
	rates := false
	for _, e := range lit.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return ""
		}
		switch key, _ := kv.Key.(*ast.Ident); {
		case key == nil:
		case key.Name == "Rate":
			rates = true
		case key.Name == "Name":
			name, _ = textOf(kv.Value)
			if id, ok := kv.Value.(*ast.Ident); ok {
				name = consts[id.Name]
			}
		}
	}
	if !rates {
		return ""
	}
	return name
}

// toolNames are the names of tools and the folders that declare them.
func toolNames(t *tree) map[string]string {
	found := map[string]string{}
	for _, p := range t.pkgs {
		if !within(p.dir, toolHome) || p.dir == toolHome {
			continue
		}
		shipped := slices.DeleteFunc(slices.Clone(p.files), func(f *goFile) bool { return f.test })
		consts := constants(shipped)
		for _, f := range shipped {
			ast.Inspect(f.ast, func(n ast.Node) bool {
				if lit, ok := n.(*ast.CompositeLit); ok {
					if name := described(lit, consts); name != "" {
						found[name] = p.dir
					}
				}
				return true
			})
		}
	}
	return found
}

// toolComparisons finds code outside of the tools' folders that asks which tool it has to do with.
func toolComparisons(t *tree) []finding {
	names := toolNames(t)
	var found []finding
	for _, p := range t.pkgs {
		if within(p.dir, toolHome) && p.dir != toolHome {
			continue
		}
		consts := constants(p.files)
		for _, f := range p.files {
			if !f.test {
				found = append(found, toolNamesIn(t, p.dir, f, names, consts)...)
			}
		}
	}
	return found
}

func toolNamesIn(t *tree, dir string, f *goFile, names, consts map[string]string) []finding {
	tools := map[string]bool{} // what this file calls the packages of tools
	for _, spec := range f.ast.Imports {
		imp, _ := strconv.Unquote(spec.Path.Value)
		if at, ok := t.ours(imp); ok && within(at, toolHome) && at != toolHome {
			name := path.Base(at)
			if spec.Name != nil {
				name = spec.Name.Name
			}
			tools[name] = true
		}
	}
	var found []finding
	ast.Inspect(f.ast, func(n ast.Node) bool {
		for _, e := range compared(n) {
			text, ok := textOf(e)
			switch e := e.(type) {
			case *ast.Ident:
				text, ok = consts[e.Name]
			case *ast.SelectorExpr:
				if id, isName := e.X.(*ast.Ident); isName && tools[id.Name] && e.Sel.Name == "Name" {
					found = append(found, finding{t.at(e.Pos()), "compares with " + id.Name + ".Name, the name of a tool", whyTool})
				}
			}
			if ok && names[text] != "" && !slices.Contains(toolExempt[dir], text) {
				found = append(found, finding{t.at(e.Pos()), fmt.Sprintf("compares with %q, the name of a tool", text), whyTool})
			}
		}
		return true
	})
	return found
}

// toolsOnPage finds code of the web page that asks which tool it has to do with.
func toolsOnPage(t *tree) []finding {
	var found []finding
	for _, l := range pageLiterals(t, slices.Sorted(maps.Keys(toolNames(t)))) {
		if !slices.Contains(toolExemptOnPage[l.file], l.word) {
			found = append(found, finding{l.file, fmt.Sprintf("has %q, the name of a tool", l.word),
				"the page shows a call by its display (docs/events.md), so that a new tool needs no change here; ask for a field of tool.Display"})
		}
	}
	return found
}

func TestToolNames(t *testing.T) {
	t.Parallel()
	tree := repository(t)
	if names := toolNames(tree); len(names) < 18 {
		t.Errorf("found the tools %v, and there are more", names)
	}
	report(t, toolComparisons(tree))
	report(t, toolsOnPage(tree))
}

func TestToolNamesCatches(t *testing.T) {
	t.Parallel()
	check := func(body string) []finding {
		return toolComparisons(planted(t, map[string]string{
			"internal/tool/whistle/whistle.go": "package whistle\n\nconst Name = \"blow_whistle\"\n\nvar Descriptor = tool.Descriptor{Name: Name, Rate: rate}\n\nfunc is(s string) bool { return s == Name }\n",
			"internal/tool/retired/retired.go": "package retired\n\nvar All = []tool.Descriptor{{Name: \"ring_bell\", Rate: rate}}\n",
			"internal/live/live.go":            "package live\n\n" + body + "\n",
		}))
	}
	report(t, check(`type a struct { B string "json:\"ring_bell\"" }; var c = call{Name: "blow_whistle"}; func d(s string) bool { return s == "bell" }`))
	for name, body := range map[string]string{
		"comparison": `func f(s string) bool { return "ring_bell" != s }`,
		"switch":     `func f(s string) int { switch s { case "a", ("ring_bell"): return 1 }; return 0 }`,
		"constant":   `const c = "ring_bell"; func f(s string) bool { return s == c }`,
		"function":   `import "slices"; func f(s []string) bool { return slices.Contains(s, "ring_bell") }`,
		"map":        `var m = map[string]bool{"ring_bell": true}`,
	} {
		t.Run(name, func(t *testing.T) { caught(t, check(body), "internal/live/live.go", `"ring_bell"`) })
	}
	page := func(name, text string) []finding {
		return toolsOnPage(planted(t, map[string]string{
			"internal/tool/retired/retired.go": "package retired\n\nvar All = []tool.Descriptor{{Name: \"ring_bell\", Rate: rate}}\n",
			name:                               text,
		}))
	}
	for _, name := range []string{"web/src/home/a.test.ts", "web/src/testing/a.ts", "web/src/locales/en/a.json", "web/src/lib/schema.d.ts"} {
		report(t, page(name, `const a = { b: "ring_bell" };`))
	}
	for _, line := range []string{`if (name === 'ring_bell') show();`, "const cards = {\n  ring_bell: Bell,\n};", `<Card tool="ring_bell" />`} {
		caught(t, page("web/src/home/A.svelte", line), "web/src/home/A.svelte", `"ring_bell"`)
	}
	caught(t, check("import w \"deckhand/internal/tool/whistle\"\n\nfunc f(s string) bool { return s == w.Name }"), "internal/live/live.go", "w.Name")
}

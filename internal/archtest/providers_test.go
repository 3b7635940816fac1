package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	whyProvider  = "a new provider would have to be added here too; ask for a field of gitprovider.Descriptor, which each provider declares in its folder"
	providerHome = "internal/gitprovider"
)

// providerExempt are files with these words that mean something else: triggers of older conversations.
var providerExempt = []string{"internal/takeover/conversation.go"}

// providerWords are the names and hosts that descriptors of git providers declare.
func providerWords(t *tree) map[string]bool {
	found := map[string]bool{}
	for _, p := range t.pkgs {
		if !within(p.dir, providerHome) {
			continue
		}
		consts := constants(p.files)
		for _, f := range p.files {
			ast.Inspect(f.ast, func(n ast.Node) bool {
				lit, ok := n.(*ast.CompositeLit)
				if !ok || f.test || !isDescriptor(lit.Type) {
					return true
				}
				for _, e := range lit.Elts {
					kv, ok := e.(*ast.KeyValueExpr)
					if !ok {
						continue
					}
					key, _ := kv.Key.(*ast.Ident)
					text, known := textOf(kv.Value)
					if id, ok := kv.Value.(*ast.Ident); ok {
						text, known = consts[id.Name]
					}
					if known && text != "" && (key.Name == "Name" || key.Name == "Host") {
						found[text] = true
					}
				}
				return true
			})
		}
	}
	return found
}

func isDescriptor(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "Descriptor"
}

// providerNames finds the names and hosts of git providers outside of their folders, in
// the program and in the web page.
func providerNames(t *tree) []finding {
	words := providerWords(t)
	var found []finding
	for _, p := range t.pkgs {
		if within(p.dir, providerHome) && p.dir != providerHome {
			continue
		}
		for _, f := range p.files {
			if !f.test && !slices.Contains(providerExempt, f.path) {
				found = append(found, providerNamesIn(t, f, words)...)
			}
		}
	}
	return append(found, providersOnPage(t, words)...)
}

func providerNamesIn(t *tree, f *goFile, words map[string]bool) []finding {
	var found []finding
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field: // with its tag
			if n.Tag != nil {
				for _, value := range strings.Split(tagOf(n.Tag.Value, "enum"), ",") {
					if words[value] {
						found = append(found, finding{t.at(n.Pos()), fmt.Sprintf("the enum has %q, the name of a git provider", value), "enum:\"git_provider\" takes all that there are"})
						break
					}
				}
			}
			return n.Tag == nil
		case *ast.BasicLit:
			if n.Kind != token.STRING {
				return true
			}
			if text, err := strconv.Unquote(n.Value); err == nil && words[text] {
				found = append(found, finding{t.at(n.Pos()), fmt.Sprintf("has %q, the name or host of a git provider", text), whyProvider})
			}
		}
		return true
	})
	return found
}

// tagOf is the value of a key in a field's tag. Triggers of conversations are another list.
func tagOf(tag, key string) string {
	m := regexp.MustCompile(key + `:"([^"]*)"`).FindStringSubmatch(tag)
	if m == nil || strings.Contains(tag, "conversation_trigger") {
		return ""
	}
	return m[1]
}

func providersOnPage(t *tree, words map[string]bool) []finding {
	var found []finding
	for _, l := range pageLiterals(t, slices.Sorted(maps.Keys(words))) {
		found = append(found, finding{l.file, fmt.Sprintf("has %q, the name or host of a git provider", l.word), "the page has them from lib/providers.json, which is made of the descriptors"})
	}
	return found
}

func TestProviderNames(t *testing.T) {
	t.Parallel()
	tree := repository(t)
	if words := providerWords(tree); len(words) < 9 {
		t.Errorf("found %v, and there are more", words)
	}
	report(t, providerNames(tree))
}

func TestProviderNamesCatches(t *testing.T) {
	t.Parallel()
	check := func(name, text string) []finding {
		return providerNames(planted(t, map[string]string{
			"internal/gitprovider/hub/hub.go": "package hub\n\nconst host = \"hub.example\"\n\nvar A = gitprovider.Descriptor{Name: \"hub\", Host: host}\n",
			name:                              text,
		}))
	}
	report(t, check("internal/live/live.go", "package live\n\nimport _ \"hub\"\n\ntype a struct { B string `json:\"hub\" enum:\"git_provider\"` }\n\n// \"hub\" is a name.\nvar b = \"a hub\"\n"))
	report(t, check("web/src/home/a.test.ts", `const a = "hub";`))
	for body, what := range map[string]string{
		`func f(s string) bool { return s == "hub" }`:   `"hub"`,
		`var a = map[string]string{"hub": "Hub"}`:       `"hub"`,
		`const own = "hub.example"`:                     `"hub.example"`,
		"type a struct { B string `enum:\"lab,hub\"` }": `enum has "hub"`,
	} {
		caught(t, check("internal/live/live.go", "package live\n\n"+body+"\n"), "internal/live/live.go", what)
	}
	for _, line := range []string{`if (a === 'hub') b();`, "const c = { \"hub.example\": 1 };", "const c = {\n  hub: \"Hub\",\n};"} {
		caught(t, check("web/src/home/a.ts", line+"\n"), "web/src/home/a.ts", "hub")
	}
}

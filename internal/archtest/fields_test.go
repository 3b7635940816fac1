package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// fieldPlaces is how many files name a setting at most: the wire type, the settings
// package, its effect and its form field.
const fieldPlaces = 4

const whyFields = "a setting that must be copied from layer to layer is forgotten in one of them; copy fields in internal/settings/plain.go, and read the setting where it has its effect"

// fieldLimits are the settings with more places. Numbers here only go down, and no setting is added.
var fieldLimits = map[string]int{
	// The page shows their defaults before any settings are stored.
	"enable_default_condenser": 5, "enable_proactive_conversation_starters": 5, "enable_solvability_analysis": 5,
	"enable_sound_notifications": 6, // and plays the sound on two pages

	// A secret is sealed, masked and merged on its own.
	"sandbox_api_key": 6, "search_api_key": 8, "llm_api_key": 12,

	// A conversation can override them, and a test of the model uses them before they are stored.
	"llm_model": 17, "llm_base_url": 9, "max_budget_per_task": 15,
	// A conversation can bring its own servers, and a list of servers can be tested.
	"mcp_config": 15,
}

// uncountable are settings whose name is a common word, or a claim of OpenID Connect.
var uncountable = []string{"language", "agent", "email", "email_verified"}

// otherSurfaces name settings that a setting does not need: flags, the import of a legacy
// server's data, files of exported conversations, tools of developers, and the load of benchmarks and of torture runs.
var otherSurfaces = []string{"internal/config", "internal/takeover", "internal/conversation/portable", "internal/load", "bench", "torture", "scripts"}

// settingNames returns the Go name of each setting by its name on the wire.
func settingNames(t *tree) map[string]string {
	found := map[string]string{}
	for _, p := range t.pkgs {
		if p.dir != "api" {
			continue
		}
		for _, f := range p.files {
			ast.Inspect(f.ast, func(n ast.Node) bool {
				spec, ok := n.(*ast.TypeSpec)
				if !ok || spec.Name.Name != "SettingsInput" {
					return true
				}
				for _, field := range spec.Type.(*ast.StructType).Fields.List {
					if field.Tag == nil {
						continue
					}
					tag, _ := strconv.Unquote(field.Tag.Value)
					name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
					found[name] = field.Names[0].Name
				}
				return false
			})
		}
	}
	return found
}

// knowsSettings reports files that can name a field of the settings in Go.
func knowsSettings(t *tree, p *pkg, f *goFile) bool {
	if p.dir == "api" || p.dir == "internal/settings" {
		return true
	}
	for imp := range t.imports(f) {
		if dir, ours := t.ours(imp); ours && (dir == "api" || dir == "internal/settings") {
			return true
		}
	}
	return false
}

// namedIn returns what may be names of settings in a Go file: whole string literals, names in
// JSON tags and, if it knows the settings, keys and selectors. A message that mentions a
// setting is not a place to change.
func namedIn(t *tree, p *pkg, f *goFile) map[string]bool {
	words, knows := map[string]bool{}, knowsSettings(t, p, f)
	ident := func(e ast.Expr) {
		if id, ok := e.(*ast.Ident); ok && knows {
			words[id.Name] = true
		}
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil {
				name, _, _ := strings.Cut(reflect.StructTag(text).Get("json"), ",")
				words[text], words[name] = true, true
			}
		case *ast.SelectorExpr:
			ident(n.Sel)
		case *ast.KeyValueExpr:
			ident(n.Key)
		}
		return true
	})
	return words
}

var word = regexp.MustCompile(`\w+`)

// fieldFiles returns the files that name each setting. Tests, locales, generated files and
// other surfaces do not count. A file of the page that names most settings
// is the index of its forms and counts as one place with the form field.
func fieldFiles(t *tree) map[string][]string {
	settings, files := settingNames(t), map[string][]string{}
	for _, p := range t.pkgs {
		for _, f := range p.files {
			if f.test || ast.IsGenerated(f.ast) || slices.ContainsFunc(otherSurfaces, func(dir string) bool { return within(p.dir, dir) }) {
				continue
			}
			words := namedIn(t, p, f)
			for name, field := range settings {
				if words[name] || words[field] {
					files[name] = append(files[name], f.path)
				}
			}
		}
	}
	for _, p := range t.paths {
		if !within(p, "web/src") || within(p, "web/src/locales") || within(p, "web/src/testing") || strings.Contains(p, ".test.") ||
			!slices.Contains([]string{".ts", ".svelte"}, path.Ext(p)) {
			continue
		}
		text, err := fs.ReadFile(t.fsys, p)
		if err != nil {
			continue
		}
		words := word.FindAllString(string(text), -1)
		named := slices.DeleteFunc(slices.Collect(maps.Keys(settings)), func(name string) bool { return !slices.Contains(words, name) })
		if 2*len(named) > len(settings) {
			continue
		}
		for _, name := range named {
			files[name] = append(files[name], p)
		}
	}
	return files
}

// fields finds settings that are named in too many files, and limits that are not needed any more.
func fields(t *tree) []finding {
	var found []finding
	files := fieldFiles(t)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if slices.Contains(uncountable, name) {
			continue
		}
		limit, listed := fieldLimits[name]
		n := len(files[name])
		switch {
		case n > max(limit, fieldPlaces):
			found = append(found, finding{name, fmt.Sprintf("%d files name it, wanted at most %d: %s", n, max(limit, fieldPlaces), strings.Join(files[name], ", ")), whyFields})
		case listed && n <= fieldPlaces:
			found = append(found, finding{name, fmt.Sprintf("%d files name it: remove it from fieldLimits", n), whyFields})
		}
	}
	return found
}

func TestSettingsFields(t *testing.T) { report(t, fields(repository(t))) }

func TestSettingsFieldsCatch(t *testing.T) {
	const wire = "// Package api is the contract of the tests of this rule.\npackage api\n\ntype SettingsInput struct {\n\tGitUserName string `json:\"git_user_name,omitzero\"`\n\tGitUserEmail string `json:\"git_user_email,omitzero\"`\n\tOther string `json:\"other\"`\n}\n"
	copies := map[string]string{
		"api/settings.go":             wire,
		"web/src/settings/Git.svelte": "<Text name=\"git_user_name\" />",
		"web/src/settings/all.ts":     "[\"git_user_name\", \"git_user_email\"]", // the index
		"web/src/locales/en/a.ts":     "{ git_user_name: \"Name\" }",
		"internal/live/help.go":       "package live\n\nconst help = \"Set git_user_name first.\"\n",
	}
	for _, name := range []string{"a", "b"} {
		copies["internal/live/"+name+".go"] = "package live\n\nimport \"deckhand/api\"\n\nfunc " + name + "(s api.SettingsInput) string { return s.GitUserName }\n"
	}
	report(t, fields(planted(t, copies)))
	copies["internal/live/c.go"] = "package live\n\nvar c = map[string]string{\"git_user_name\": \"\"}\n"
	caught(t, fields(planted(t, copies)), "git_user_name", "5 files name it")
}

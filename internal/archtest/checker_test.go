package archtest

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/fstest"
)

// The tests in this file judge the judges: every rule is shown a made-up tree
// that breaks it and must complain, and one that does not and must be silent.

// tidy is a small tree that keeps every rule.
func tidy() map[string]string {
	return map[string]string{
		"go.mod":                         "module deckhand\n\ngo 1.26.0\n",
		"README.md":                      "Read [the walk](docs/walk.md#start), [this](#below), [that](https://example.com/x.md).\n",
		"docs/walk.md":                   "Back to [the start](../README.md). Not a link: `[x](gone.md)`.\n```\n[y](gone.md)\n```\n",
		"api/api.go":                     "// Package api is the contract that travels over the wire.\npackage api\n\nimport \"encoding/json\"\n\nvar _ json.Marshaler\n",
		"internal/session/session.go":    "// Package session is the core: events, their fold, and rules on it.\npackage session\n",
		"internal/session/core_test.go":  "package session_test\n\nimport (\n\t_ \"deckhand/internal/session/memlog\"\n\t_ \"pgregory.net/rapid\"\n)\n",
		"internal/session/memlog/m.go":   "// Package memlog is a log in memory, for tests and for trying out.\npackage memlog\n\nimport _ \"deckhand/internal/session\"\n",
		"internal/store/sqlite/s.go":     "// Package sqlite keeps the log and the small stores in one SQLite file.\npackage sqlite\n\nimport (\n\t_ \"deckhand/internal/session\"\n\t_ \"deckhand/internal/store/sqlite/migrations\"\n\t_ \"modernc.org/sqlite\"\n)\n",
		"internal/httpapi/e2e_test.go":   "package httpapi_test\n\nimport _ \"deckhand/internal/store/sqlite\"\n",
		"internal/httpapi/httpapi.go":    "// Package httpapi is the HTTP API: it checks keys and answers requests.\npackage httpapi\n\nimport _ \"deckhand/internal/session\"\n",
		"cmd/deckhand/main.go":           "// Command deckhand is the server and the tools around it.\npackage main\n\nimport _ \"deckhand/internal/store/sqlite\"\n",
		"internal/live/clock_test.go":    "// Package live follows a session as it grows and tells readers.\npackage live\n\nimport (\n\t\"testing\"\n\t\"testing/synctest\"\n\t\"time\"\n)\n\nfunc TestBubble(t *testing.T) {\n\tsynctest.Test(t, func(t *testing.T) { time.Sleep(time.Hour) })\n}\n",
		"tools/go.mod":                   "module deckhand/tools\n",
		"tools/util/util.go":             "package util\n",
		"internal/session/testdata/x.go": "package util this does not parse\n",
		"bin/notes.md":                   "[gone](gone.md)\n",
	}
}

// planted is the tidy tree with files added or replaced.
func planted(t *testing.T, extra map[string]string) *tree {
	t.Helper()
	all := tidy()
	maps.Copy(all, extra)
	fsys := fstest.MapFS{}
	for name, text := range all {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	loaded, err := load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// everything runs all rules.
func everything(t *tree) []finding {
	var found []finding
	for _, a := range arrows {
		found = append(found, a.check(t)...)
	}
	for _, o := range ports {
		found = append(found, o.check(t)...)
	}
	for _, u := range texts {
		found = append(found, u.check(t)...)
	}
	for _, check := range []func(*tree) []finding{comments, names, files, functions, sleeps, readme, links} {
		found = append(found, check(t)...)
	}
	return found
}

// caught fails unless the findings are about the place and say why.
func caught(t *testing.T, found []finding, where, what string) {
	t.Helper()
	for _, f := range found {
		if strings.Contains(f.where, where) && strings.Contains(f.what, what) {
			if f.why == "" {
				t.Errorf("%s: caught, but without a reason", f.where)
			}
			return
		}
	}
	t.Errorf("a breach in %s (%q) was not caught; found %v", where, what, found)
}

func TestTidyTreePasses(t *testing.T) {
	report(t, everything(planted(t, nil)))
}

func TestArrowsCatch(t *testing.T) {
	for _, a := range arrows {
		from, imp := a.breach[0], a.breach[1]
		t.Run(from+"→"+imp, func(t *testing.T) {
			file := from + "/breach.go"
			src := fmt.Sprintf("package x\n\nimport _ %q\n", imp)
			caught(t, a.check(planted(t, map[string]string{file: src})), file, imp)

			inTest := a.check(planted(t, map[string]string{from + "/breach_test.go": src}))
			if got := len(inTest) > 0; got != a.tests {
				t.Errorf("the same import in a test: caught %v, wanted %v", got, a.tests)
			}
		})
	}
}

func TestPortsCatch(t *testing.T) {
	for _, o := range ports {
		from, imp := o.breach[0], o.breach[1]
		t.Run(from+"→"+imp, func(t *testing.T) {
			file := from + "/breach.go"
			src := fmt.Sprintf("package x\n\nimport _ %q\n", imp)
			caught(t, o.check(planted(t, map[string]string{file: src})), file, imp)
		})
	}
}

func TestTextsCatch(t *testing.T) {
	here, ok := workplace("/elsewhere/deep/deckhand")
	if !ok {
		t.Fatal("a repository in /elsewhere/deep has a workplace to hide")
	}
	here.breach = "see /elsewhere/deep/notes.md"
	for _, u := range append([]unwanted{here}, texts...) {
		t.Run(u.what, func(t *testing.T) {
			file := "docs/breach.md"
			if len(u.in) > 0 {
				file = "web/" + u.in[0]
			}
			line := strings.ReplaceAll(u.breach, "@", "")
			caught(t, u.check(planted(t, map[string]string{file: "first\n" + line + "\n"})), file+":2", u.what)
		})
	}
	if _, ok := workplace("/usr/src/deckhand"); ok {
		t.Error("/usr/src is on every machine: it gives nobody away")
	}
	example := planted(t, map[string]string{"docs/a.md": "cd /ho" + "me/user/src and https://example.com/home/maria\n"})
	for _, u := range texts {
		report(t, u.check(example))
	}
}

func TestRulesCatch(t *testing.T) {
	const doc = "// Package x is a package that somebody made up to be judged.\npackage x\n"
	long := func(lines int) string {
		return doc + "\nfunc f() {\n" + strings.Repeat("\t_ = 0\n", lines) + "}\n"
	}
	imports := func(n int) string {
		src := "package x\n\nimport (\n"
		for i := range n {
			src += fmt.Sprintf("\t_ \"deckhand/internal/y%d\"\n", i)
		}
		return src + ")\n"
	}
	sleep := func(imp, call string) string {
		return "package x\n\nimport " + imp + "\"time\"\n\nvar unused int\n\nfunc f() { " + call + " }\n"
	}
	for name, c := range map[string]struct {
		check       func(*tree) []finding
		file, text  string
		where, what string
	}{
		"no comment":        {comments, "internal/x/x.go", "package x\n", "internal/x", "0 characters"},
		"short comment":     {comments, "internal/x/x.go", "// Package x is x.\npackage x\n", "internal/x", "15 characters"},
		"name of folder":    {names, "internal/util/x.go", "package x\n", "internal/util", `"util"`},
		"name of package":   {names, "internal/x/x.go", "package helpers\n", "internal/x", `"helpers"`},
		"long file":         {files, "internal/x/x.go", long(fileMax), "internal/x/x.go", "wanted at most 700"},
		"long package":      {packages, "internal/x/x.go", long(packageMax), "internal/x", "wanted at most 2500"},
		"long main":         {packages, "cmd/deckhand/x.go", long(2000), "cmd/deckhand", "wanted at most 2000"},
		"needless limit":    {packages, "internal/risk/x.go", long(10), "internal/risk", "remove it from packageLimits"},
		"many imports":      {ownImports, "internal/x/x.go", imports(importMax + 1), "internal/x", "wanted at most 12"},
		"needless imports":  {ownImports, "internal/profile/x.go", imports(3), "internal/profile", "remove it from importLimits"},
		"long functions":    {functions, "internal/x/x.go", long(funcP95), "internal/x/x.go", "67 lines"},
		"sleep in a test":   {sleeps, "internal/x/x_test.go", sleep("", "time.Sleep(1)"), "internal/x/x_test.go:7", "time.Sleep"},
		"sleep by alias":    {sleeps, "internal/x/x_test.go", sleep("t ", "t.Sleep(1)"), "internal/x/x_test.go:7", "time.Sleep"},
		"sleep in a suite":  {sleeps, "internal/xtest/x.go", sleep("", "time.Sleep(1)"), "internal/xtest/x.go:7", "time.Sleep"},
		"sleep as a value":  {sleeps, "internal/x/x_test.go", sleep("", "wait := time.Sleep; wait(1)"), "internal/x/x_test.go:7", "time.Sleep"},
		"sleep, dot import": {sleeps, "internal/x/x_test.go", sleep(". ", "Sleep(1)"), "internal/x/x_test.go:7", "time.Sleep"},
		"long README":       {readme, "README.md", strings.Repeat("x\n", maxReadme+1), "README.md", "151 lines"},
		"link to nowhere":   {links, "docs/x.md", "[x](gone.md#there)\n", "docs/x.md", "gone.md"},
	} {
		t.Run(name, func(t *testing.T) {
			caught(t, c.check(planted(t, map[string]string{c.file: c.text})), c.where, c.what)
		})
	}
}

func TestFilesCatchTheWhole(t *testing.T) {
	// Many files of a length that each may have, and that all may not.
	extra := map[string]string{}
	for i := range 20 {
		extra[fmt.Sprintf("internal/x/x%d.go", i)] = "package x\n" + strings.Repeat("\n", fileP90)
	}
	caught(t, files(planted(t, extra)), "files", "90th percentile is 501")
}

func TestGeneratedAndTestsAreNotMeasured(t *testing.T) {
	huge := strings.Repeat("\n", 2*fileMax)
	report(t, files(planted(t, map[string]string{
		"internal/x/x.go":      "// Code generated by hand. DO NOT EDIT.\n\npackage x\n" + huge,
		"internal/x/x_test.go": "package x\n" + huge,
	})))
}

func TestPercentile(t *testing.T) {
	var ten []size
	for i := range 10 {
		ten = append(ten, size{lines: i + 1})
	}
	for p, want := range map[float64]int{1: 1, 50: 5, 90: 9, 91: 10, 100: 10} {
		if got := percentile(ten, p); got != want {
			t.Errorf("percentile %v of 1…10 is %d, wanted %d", p, got, want)
		}
	}
	if got := percentile(nil, 90); got != 0 {
		t.Errorf("percentile of nothing is %d", got)
	}
}

package archtest

import (
	"fmt"
	"go/ast"
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

// attackTable is the page that names a test for each class of attack.
const attackTable = "docs/security.md"

// runningTests begins the name of each test that attacks the running server.
const runningTests = "`cmd/deckhand."

// attackClasses is how many classes of attack there are: S1 to S29.
const attackClasses = 29

var (
	attackRow = regexp.MustCompile(`^\| S(\d+) \|`)
	// namedTest is a test as the table names it. scripts/attack reads it in the same way.
	namedTest = regexp.MustCompile("`([a-z][a-z0-9/]*)\\.(Test[A-Za-z0-9_]+)`")
)

// attacks finds classes of attack without a row or a test, and names of tests
// that do not exist.
func attacks(t *tree) []finding {
	src, err := fs.ReadFile(t.fsys, attackTable)
	if err != nil {
		return []finding{{attackTable, err.Error(), "the table says what is promised, and make attack runs what it names"}}
	}
	var found []finding
	breach := func(format string, args ...any) {
		found = append(found, finding{attackTable, fmt.Sprintf(format, args...), "a promise without a test rots, and make attack runs what the table names"})
	}
	tests, rows := testsByName(t), map[string]int{}
	for line := range strings.Lines(string(src)) {
		m := attackRow.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		rows[m[1]]++
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) != 5 {
			breach("S%s has %d cells, wanted 5", m[1], len(cells))
			continue
		}
		named := namedTest.FindAllStringSubmatch(cells[3], -1)
		if len(named) == 0 || len(named) != len(strings.Fields(cells[3])) {
			breach("S%s: tests are written as `folder.TestName`, separated by spaces: %s", m[1], cells[3])
		}
		if !strings.Contains(cells[3], runningTests) {
			breach("S%s names no test of cmd/deckhand, which attacks the running server", m[1])
		}
		for _, n := range named {
			if !tests[n[1]+"."+n[2]] {
				breach("S%s names %s.%s, which is not there", m[1], n[1], n[2])
			}
		}
	}
	for i := 1; i <= attackClasses; i++ {
		if n := rows[fmt.Sprint(i)]; n != 1 {
			breach("S%d has %d rows, wanted 1", i, n)
		}
	}
	return found
}

// testsByName are all tests, as folder.TestName.
func testsByName(t *tree) map[string]bool {
	out := map[string]bool{}
	for _, p := range t.pkgs {
		for _, f := range p.files {
			if !strings.HasSuffix(f.path, "_test.go") {
				continue
			}
			for _, d := range f.ast.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
					out[p.dir+"."+fn.Name.Name] = true
				}
			}
		}
	}
	return out
}

func TestAttacks(t *testing.T) { report(t, attacks(repository(t))) }

func TestAttacksCatch(t *testing.T) {
	row := func(i int, tests string) string {
		return fmt.Sprintf("| S%d | Class | Promise | %s | — |\n", i, tests)
	}
	const good = "`cmd/deckhand.TestServe` `internal/live.TestBubble`"
	var table strings.Builder
	for i := 1; i <= attackClasses; i++ {
		table.WriteString(row(i, good))
	}
	check := func(text string) []finding {
		return attacks(planted(t, map[string]string{attackTable: text, "cmd/deckhand/serve_test.go": "package main\n\nfunc TestServe() {}\n"}))
	}
	report(t, check(table.String()))
	for what, text := range map[string]string{
		"S29 has 0 rows":                         strings.Replace(table.String(), row(29, good), "", 1),
		"S3 has 2 rows":                          table.String() + row(3, good),
		"S7 names internal/live.TestGone":        strings.Replace(table.String(), row(7, good), row(7, good+" `internal/live.TestGone`"), 1),
		"S8: tests are written as":               strings.Replace(table.String(), row(8, good), row(8, "TestBubble"), 1),
		"S11 names no test of cmd/deckhand":      strings.Replace(table.String(), row(11, good), row(11, "`internal/live.TestBubble`"), 1),
		"S9 has 4 cells":                         strings.Replace(table.String(), row(9, good), "| S9 | Class | Promise | "+good+" |\n", 1),
		"S10 names internal/session.TestBubble,": strings.Replace(table.String(), row(10, good), row(10, "`internal/session.TestBubble`"), 1),
	} {
		caught(t, check(text), attackTable, what)
	}
	caught(t, attacks(planted(t, nil)), attackTable, "not exist")
}

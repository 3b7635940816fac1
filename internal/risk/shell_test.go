package risk_test

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"testing"

	"deckhand/internal/risk"
)

// lines are those of a file in testdata that say something.
func lines(t testing.TB, name string) []string {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []string
	for s := bufio.NewScanner(f); s.Scan(); {
		if line := s.Text(); line != "" && !strings.HasPrefix(line, "# ") {
			out = append(out, line)
		}
	}
	return out
}

// rated is a command and what it must at least be rated.
type rated struct {
	least   risk.Rating
	command string
}

func dangerous(t testing.TB) []rated {
	t.Helper()
	names := map[string]risk.Rating{"MEDIUM": risk.Medium, "UNKNOWN": risk.Unknown, "HIGH": risk.High}
	var out []rated
	for _, line := range lines(t, "dangerous.txt") {
		name, command, ok := strings.Cut(line, "\t")
		least, known := names[name]
		if !ok || !known {
			t.Fatalf("not a line of this file: %q", line)
		}
		if strings.HasPrefix(command, `"`) {
			if s, err := strconv.Unquote(command); err == nil {
				command = s
			}
		}
		out = append(out, rated{least, command})
	}
	return out
}

func TestHarmless(t *testing.T) {
	all := lines(t, "harmless.txt")
	if len(all) < 40 {
		t.Fatalf("only %d commands", len(all))
	}
	for _, command := range all {
		if got, reason := risk.Shell(command); got != risk.Low {
			t.Errorf("%q is rated %v: %s", command, got, reason)
		}
	}
}

func TestDangerous(t *testing.T) {
	all := dangerous(t)
	if len(all) < 150 {
		t.Fatalf("only %d commands", len(all))
	}
	for _, c := range all {
		got, reason := risk.Shell(c.command)
		if c.least.Worse(got) {
			t.Errorf("%q is rated %v, not at least %v: %s", c.command, got, c.least, reason)
		}
		if !strings.HasSuffix(reason, ".") {
			t.Errorf("%q: no sentence: %q", c.command, reason)
		}
	}
}

// Whatever stands around a dangerous command, it stays as dangerous.
func TestSurroundings(t *testing.T) {
	for _, around := range []string{"ls; %s", "%s\nls", "(%s\n)", "{ %s\n}", "if true; then %s\nfi", "while read x; do %s\ndone", "echo \"$(%s\n)\"", "true && { %s\n}", "f1() { %s\n}", "! { %s\n}", "cat <(%s\n)"} {
		for _, c := range dangerous(t) {
			if _, reason := risk.Shell(c.command); strings.Contains(reason, "not valid bash") {
				continue
			}
			whole := strings.Replace(around, "%s", c.command, 1)
			if got, _ := risk.Shell(whole); c.least.Worse(got) {
				t.Errorf("%q is rated %v, not at least %v", whole, got, c.least)
			}
		}
	}
}

// What is too much to look into ends soon, and is never harmless.
func TestTooMuch(t *testing.T) {
	const n = 20_000
	for _, unit := range []string{"(", "{ ", "$(", "`", "\"$(", "if ", "while ", "! ", "[[ ( ", "((", "${x:-", "a=(", "f() ", "<(", "case x in x) ", "{a,", "eval ", "bash -c '", "\\", "\n", "|ls ", "&&ls ", "<<a ", "time ", "coproc ", "function f ", "else ", "!", "sudo ", "find -exec ", "xargs ", "env ", "eval eval "} {
		command := strings.Repeat(unit, n/len(unit))
		if got, _ := risk.Shell(command); got == risk.Low && strings.TrimSpace(command) != "" {
			t.Errorf("many %q are Low", unit)
		}
	}
	if got, _ := risk.Shell("echo " + strings.Repeat("x", 1<<20)); got != risk.Unknown {
		t.Errorf("a megabyte is %v", got)
	}
	if got, _ := risk.Shell(strings.Repeat("eval ", 50) + "ls"); got == risk.Low {
		t.Error("many evals are Low")
	}
}

func FuzzShell(f *testing.F) {
	for _, c := range dangerous(f) {
		f.Add(c.command)
	}
	for _, c := range lines(f, "harmless.txt") {
		f.Add(c)
	}
	f.Fuzz(func(t *testing.T, command string) {
		got, reason := risk.Shell(command)
		if reason == "" || got < risk.Unknown || got > risk.High {
			t.Fatalf("%q: %v %q", command, got, reason)
		}
		if again, _ := risk.Shell("rm -rf x; " + command); again == risk.Low {
			t.Fatalf("%q hides another command", command)
		}
	})
}

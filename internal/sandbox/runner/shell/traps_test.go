package shell

import (
	"strings"
	"testing"

	"deckhand/internal/sandbox"
	"deckhand/internal/soak"
)

// step is a command and what it gives.
type step struct {
	text, output string
	exit         int
}

// hooked are commands after which a shell does something of its own for each command. It must
// do that for the user's commands alone.
var hooked = []struct {
	name  string
	in    string // the shells, "" for all
	steps []step
}{
	{"DEBUG", "bash zsh", []step{
		{"trap 'echo D' DEBUG", "", 0}, {"echo a; echo b", "D\na\nD\nb\n", 0}, {"false", "D\n", 1}, {"echo $?", "D\n1\n", 0}, {"trap - DEBUG", "D\n", 0}, {"echo c", "c\n", 0},
	}},
	{"DEBUG of the builtin", "bash", []step{
		{"x=1; builtin trap 'echo D' DEBUG", "", 0}, {"echo a; echo b", "D\na\nD\nb\n", 0}, {"false", "D\n", 1}, {"echo $?", "D\n1\n", 0},
		{"trap -p DEBUG", "D\ntrap -- 'echo D' DEBUG\n", 0}, {"builtin trap - DEBUG", "D\n", 0}, {"echo $x", "1\n", 0},
	}},
	{"DEBUG that counts", "bash zsh", []step{{"n=0; trap 'n=$((n+1))' DEBUG", "", 0}, {"echo $n", "1\n", 0}, {"echo $n", "2\n", 0}, {"echo $n; echo $n", "3\n4\n", 0}}},
	{"DEBUG with its command", "bash", []step{
		{"trap 'echo \"$?:$BASH_COMMAND\" # end' DEBUG", "", 0}, {"f() { echo f; }; f", "0:f\nf\n", 0}, {"(exit 3)", "", 3}, {"true", "3:true\n", 0},
		{"trap -p", "0:trap -p\ntrap -- 'echo \"$?:$BASH_COMMAND\" # end' DEBUG\n", 0},
		{"x=$(trap -p DEBUG); trap - DEBUG; eval \"$x\"; echo y", "0:x=$(trap -p DEBUG)\n0:trap - DEBUG\n0:echo y\ny\n", 0},
	}},
	{"DEBUG in functions", "bash", []step{{"f() { echo f; }; set -T; trap 'echo D:$BASH_COMMAND' DEBUG", "", 0}, {"f", "D:f\nD:f\nD:echo f\nf\n", 0}, {"echo a", "D:echo a\na\n", 0}}},
	{"DEBUG set in a function", "bash", []step{{"f() { trap 'echo D' DEBUG; }", "", 0}, {"f", "", 0}, {"echo a", "D\na\n", 0}}},
	{"ERR", "bash zsh", []step{{"trap 'echo E:$?' ERR", "", 0}, {"false", "E:1\n", 1}, {"true", "", 0}, {"(exit 3)", "E:3\n", 3}, {"echo $?", "3\n", 0}, {"cat <<E\nx\nE\nfalse", "x\nE:1\n", 1}, {"! true", "", 1}}},
	{"ERR in functions", "bash", []step{{"f() { false; }; set -E; trap 'echo E' ERR", "", 0}, {"f", "E\nE\n", 1}, {"echo $?", "1\n", 0}}},
	{"RETURN", "bash", []step{
		{"f() { echo f; }; trap 'echo R' RETURN", "", 0}, {"f", "f\n", 0}, {"echo x", "x\n", 0}, {"echo 'echo s' >s; . ./s", "s\nR\n", 0},
		{"set -T; f", "f\nR\n", 0}, {"echo y", "y\n", 0}, {"trap", "trap -- 'echo R' RETURN\n", 0},
	}},
	{"DEBUG that returns", "bash", []step{{"x=1; trap 'return 2' DEBUG", "", 0}, {"echo a", "a\n", 0}, {"trap - DEBUG", "", 0}, {"echo $x", "1\n", 0}}},
	{"DEBUG that skips", "bash", []step{
		{"x=1; trap '[[ $BASH_COMMAND != echo* ]]' DEBUG; shopt -s extdebug", "", 0}, {"printf a", "a", 0}, {"echo a", "\n[" + skippedPart + "]\n", 0},
		{"trap false DEBUG", "", 0}, {"printf a", "\n[" + skippedPart + "]\n", 0}, {"trap - DEBUG", "", 0}, {"echo $x", "1\n", 0},
	}},
	{"no such trap", "dash busybox", []step{{"trap 'echo D' DEBUG 2>/dev/null || true", "", 0}, {"echo a", "a\n", 0}}},
	{"set -x", "dash busybox zsh", []step{{"set -x", "", 0}, {"echo a", "+ echo a\na\n", 0}, {"PS4='> '; set +x; false", "*", 1}, {"set -x", "", 0}, {"echo b", "> echo b\nb\n", 0}, {"set +x; echo c", "> set +x\nc\n", 0}, {"echo d", "d\n", 0}}},
	{"set -x", "bash", []step{{"set -x", "", 0}, {"echo a", "++ echo a\na\n", 0}, {"PS4='> '; false", "++ PS4='> '\n>> false\n", 1}, {"echo b", ">> echo b\nb\n", 0}, {"set +x; echo c", ">> set +x\nc\n", 0}, {"echo d", "d\n", 0}}},
	{"set -x to a file", "bash", []step{{"exec 5>log; BASH_XTRACEFD=5; PS4='> '; set -x", "", 0}, {"echo a", "a\n", 0}, {"false", "", 1}, {"cat log", ">>> echo a\n>>> false\n>>> cat log\n", 0}, {"BASH_XTRACEFD=1", "", 0}, {"echo b", ">>> echo b\nb\n", 0}}},
	{"set -v", "", []step{{"set -v", "", 0}, {"echo a", "echo a\na\n", 0}, {"echo b", "echo b\nb\n", 0}, {"set +v", "set +v\n", 0}, {"echo c", "c\n", 0}}},
	{"line editing", "bash zsh", []step{
		{"f() { set -o vi; }; g() { set -o emacs; }; x=kept", "", 0}, {"f", "", 0}, {"echo a", "a\n", 0}, {"g", "", 0}, {"f; echo b", "b\n", 0}, {"echo $x", "kept\n", 0},
	}},
	{"line editing from a file", "bash zsh", []step{{"printf 'f() { set -o vi; }\n' >rc; . ./rc; x=kept", "", 0}, {"f", "", 0}, {"f; echo b; echo $x", "b\nkept\n", 0}}},
	{"unfinished", "bash", []step{{"trap 'echo D' DEBUG; cat <<E\nx\nE", "D\nx\n", 0}, {"echo a |", "bash: eval: line 2: syntax error: unexpected end of file\n", 2}, {"echo a", "D\na\n", 0}}},
}

func TestHooks(t *testing.T) {
	t.Parallel()
	for _, sh := range []string{"bash", "dash", "busybox", "zsh"} {
		t.Run(sh, func(t *testing.T) {
			t.Parallel()
			var b *box
			if sh == "bash" {
				b = open(t)
			} else {
				soak.NotShort(t, "bash is tried")
				b = plainBox(t, sh)
			}
			for _, c := range hooked {
				if c.in != "" && !strings.Contains(c.in, sh) {
					continue
				}
				for _, s := range c.steps {
					r := b.do(sandbox.Command{Shell: c.name, Text: s.text, Hard: hung}, nil)
					if r.NewShell || r.Wait != "" || r.Exit != s.exit || r.Output != s.output && s.output != "*" {
						t.Errorf("%s: %q gave %d, %q, wanted %d, %q (%+v)", c.name, s.text, r.Exit, r.Output, s.exit, s.output, r)
					}
				}
				b.do(sandbox.Command{Shell: c.name, Text: "exit"}, nil)
			}
		})
	}
}

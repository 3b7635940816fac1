package shell

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"deckhand/internal/sandbox"
)

func TestStateStays(t *testing.T) {
	b := open(t)
	if r := b.gives("mkdir sub && cd sub", 0, ""); r.Dir != b.workspace+"/sub" {
		t.Errorf("after cd the folder is %q", r.Dir)
	}
	b.gives("pwd", 0, b.workspace+"/sub\n")
	b.gives("export A=1; B=2; f() { echo f $B; }; alias hello='echo hi'; declare -A m=([k]=v)", 0, "")
	b.gives("sh -c 'echo $A'; echo $B; f", 0, "1\n2\nf 2\n")
	b.gives("hello; echo ${m[k]}", 0, "hi\nv\n")
	b.gives("set -- x y; shopt -s nullglob; umask 027", 0, "")
	b.gives("echo $# $2 nothing*; umask", 0, "2 y\n0027\n")
	b.gives("(exit 7)", 7, "")
	b.gives("echo $?", 0, "7\n")
	b.gives("echo $?", 0, "0\n")
	b.gives("exec 5>keep; echo kept >&5", 0, "")
	b.gives("echo more >&5; exec 5>&-; cat keep", 0, "kept\nmore\n")
}

func TestExitCodes(t *testing.T) {
	b := open(t)
	b.gives("true", 0, "")
	b.gives("false", 1, "")
	b.gives("(exit 255)", 255, "")
	b.gives("sh -c 'kill -TERM $$'", 143, "Terminated\n")
	b.gives("sh -c 'kill -KILL $$'", 137, "Killed\n")
	b.gives("there-is-no-such-program", 127, "bash: there-is-no-such-program: command not found\n")
	b.gives("/dev/null", 126, "bash: /dev/null: Permission denied\n")
	if r := b.run("if true; then"); r.Exit == 0 || !strings.Contains(r.Output, "syntax error") {
		t.Errorf("half a command gave %+v", r)
	}
	b.gives("echo fine", 0, "fine\n")
}

func TestText(t *testing.T) {
	b := open(t)
	b.gives("cat <<'E'\na $x `y`\n\tb\nE", 0, "a $x `y`\n\tb\n")
	b.gives("for i in 1 2 3; do\n  echo $i\ndone", 0, "1\n2\n3\n")
	b.gives("echo one\necho two\n", 0, "one\ntwo\n")
	b.gives("echo 'it'\"'\"'s' \"a\nb\" \\\n  c", 0, "it's a\nb c\n")
	b.gives("echo '!!' \"!x\" $'\\t|' 'ü€😀' '\x01\x7f'", 0, "!! !x \t| ü€😀 \x01\x7f\n")
	b.gives("# nothing", 0, "")
	b.gives("echo a \\", 0, "a\n")
	b.gives("echo a \\\\", 0, "a \\\n")
	if r := b.run("cat <<E\nends here"); !strings.HasSuffix(r.Output, "\nends here\n") {
		t.Errorf("an unfinished here-document gave %+v", r)
	}
	b.gives("echo \\\\ '\\' '%s'", 0, "\\ \\ %s\n")
	long := strings.Repeat("0123456789", 10_000)
	b.gives("x='"+long+"'; echo ${#x}; echo ${x:99990}", 0, "100000\n0123456789\n")
	lines := strings.Repeat("echo 0123456789 >/dev/null # filler\n", 3000)
	b.gives(lines+"echo end", 0, "end\n")
}

// What sets up a shell for a person changes the prompt; it must not cut us off.
func TestPromptSurvives(t *testing.T) {
	b := open(t)
	b.gives("PS1='$ '; PS2='> '; PROMPT_COMMAND='echo prompt'; PS0='ps0 '", 0, "")
	b.gives("echo 1", 0, "1\n")
	b.gives("PROMPT_COMMAND=('echo a' 'echo b'); unset PS1", 0, "")
	b.gives("echo 2", 0, "2\n")
	b.gives("unset -f __dh_e __dh_b __dh_r 2>/dev/null; echo 3", 0, "3\n")
	b.gives("set -u; set -o pipefail; IFS=0123456789", 0, "")
	b.gives("echo 4; unset IFS", 0, "4\n")
	b.gives("set +u; stty echo onlcr -icanon", 0, "")
	b.gives("echo 5; stty -a | grep -c -- ' -echo '", 0, "5\n1\n")
	b.gives("exec 2>/dev/null", 0, "")
	b.gives("echo 6; false", 1, "6\n")
	b.gives("exec >log 2>&1; echo hidden", 0, "\n["+redirected+"]\n")
	b.gives("echo hidden", 0, "")
	b.gives("exec >/dev/tty 2>&1; cat log", 0, "hidden\nhidden\n")
	b.gives("set -x; echo 1", 0, "++ echo 1\n1\n")
	b.gives("echo 2", 0, "++ echo 2\n2\n")
	b.gives("set +x", 0, "++ set +x\n")
	b.gives("exec 9>nine; echo 1 >&9", 0, "")
	b.gives("echo 2 >&9; exec 9>&-; cat nine", 0, "1\n2\n")
	b.gives("printf() { :; }; echo() { :; }; builtin echo 7", 0, "7\n")
	if r := b.run("set -u; PS1=x; PROMPT_COMMAND=; builtin echo ${no_such_variable}; builtin echo not here"); r.Exit == 0 || strings.Contains(r.Output, "not here") {
		t.Errorf("an error that ends a command gave %+v", r)
	}
	b.gives("set -e", 0, "")
	b.gives("! true", 1, "")
	b.gives("builtin echo $?", 0, "1\n")
	if r := b.run("false; builtin echo not here"); r.Exit != 1 || !r.NewShell || r.Output != "" {
		t.Errorf("with set -e a failure ends the shell, but gave %+v", r)
	}
	b.gives("echo 8", 0, "8\n")
}

func TestExitEndsTheShell(t *testing.T) {
	b := open(t)
	b.gives("x=1; cd /", 0, "")
	r := b.run("echo bye; exit 3")
	if r.Exit != 3 || !r.NewShell || r.Output != "bye\nexit\n" {
		t.Errorf("exit 3 gave %+v", r)
	}
	if r := b.gives("echo ${x-unset}; pwd", 0, "unset\n"+b.workspace+"\n"); r.NewShell {
		t.Error("a new shell that stays is not announced")
	}
	if r := b.run("kill -9 $$"); r.Exit != 137 || !r.NewShell {
		t.Errorf("a killed shell gave %+v", r)
	}
	b.gives("echo again", 0, "again\n")
	if r := b.run("exec sh -c 'echo replaced; exit 4'"); r.Exit != 4 || !r.NewShell || r.Output != "replaced\n" {
		t.Errorf("exec gave %+v", r)
	}
	// It ends while nothing runs: the next command gets a new one without notice.
	b.run("y=1; mkfifo gate; (read line <gate; kill -9 $$) &")
	gate, err := os.OpenFile(b.workspace+"/gate", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	proc, _ := b.inside()
	gate.Close()
	proc.Wait()
	b.gives("echo ${y-unset}", 0, "unset\n")
}

// A shell may end just when it is given a command. It has not begun it, so a new
// one runs it.
func TestShellEndsBeforeTheCommand(t *testing.T) {
	b := open(t)
	for range 20 {
		b.gives(":", 0, "")
		proc, _ := b.inside()
		if err := proc.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if r := b.gives("echo ran", 0, "ran\n"); r.NewShell {
			t.Errorf("the shell is said to have ended: %+v", r)
		}
	}
}

func TestShellsAreSeparate(t *testing.T) {
	b := open(t)
	for _, name := range []string{"", "other"} {
		b.do(sandbox.Command{Shell: name, Text: "me='" + name + "'"}, nil)
	}
	for _, name := range []string{"", "other"} {
		if r := b.do(sandbox.Command{Shell: name, Text: "echo $me"}, nil); r.Output != name+"\n" {
			t.Errorf("shell %q says %q", name, r.Output)
		}
	}
}

// Line editing means nothing to a shell that reads from a pipe, but must do no harm.
func TestLineEditing(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.gives("x=kept; f() { return 3; }; set -o vi; f", 3, "")
	b.gives("echo $? $x; set -- a b; set -o emacs", 0, "3 kept\n")
	b.gives("set -o vi; read -t 0; echo $? $*", 0, "1 a b\n")
	b.begin(sandbox.Command{Text: "echo ready; sleep 1000; echo after"}, "ready")
	if r := b.do(sandbox.Command{Text: "C-c", Input: true, Hard: hung}, nil); r.Exit != 130 || r.NewShell || strings.Contains(r.Output, "after") {
		t.Errorf("C-c gave %+v", r)
	}
	b.gives("echo $x", 0, "kept\n")
}

// A shell that says only that a command ended has not run it, and runs no other.
func TestCommandThatDidNotBegin(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.gives("builtin() { :; }", 0, "")
	if r := b.gives("echo a", 137, "\n["+notBegun+"]\n"); !r.NewShell {
		t.Errorf("the shell goes on: %+v", r)
	}
	b.gives("echo b", 0, "b\n")
}

// What "exec" redirected stays so, but is not silent.
func TestRedirectedShell(t *testing.T) {
	t.Parallel()
	b := open(t)
	told := "\n[" + redirected + "]\n"
	b.gives("exec >&-", 0, "")
	b.gives("exec >file", 0, told)
	b.gives("echo a", 0, "")
	b.gives("exec >/dev/tty; cat file", 0, "a\n")
	b.gives("exec >/dev/null", 0, told)
}

package shell

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/runner/spawn"
)

// plainBox is a box without bash, where sh is another program.
func plainBox(t *testing.T, sh string) *box {
	t.Helper()
	bin := t.TempDir()
	links := map[string]string{"sh": need(t, sh)}
	for _, name := range []string{"cat", "sleep", "tee", "tr", "head", "ls", "stty", "env", "rm", "touch"} {
		links[name] = need(t, name)
	}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	b := open(t, "PATH="+bin, "HOME="+bin, "LANG=C.UTF-8")
	if b.shells.Program() != "sh" {
		t.Fatalf("the shell is %q", b.shells.Program())
	}
	return b
}

func TestPlainShells(t *testing.T) {
	for _, sh := range []string{"dash", "busybox"} {
		t.Run(sh, func(t *testing.T) {
			b := plainBox(t, sh)
			b.gives("echo hello", 0, "hello\n")
			b.gives("(exit 7)", 7, "")
			b.gives("echo $?", 0, "7\n")
			if r := b.gives("mkdir sub 2>/dev/null || command -p mkdir sub; cd sub; export A=1; f() { echo f; }; alias g='echo g'", 0, ""); r.Dir != b.workspace+"/sub" {
				t.Errorf("after cd the folder is %q", r.Dir)
			}
			b.gives("env | { while read l; do case $l in A=*) echo $l;; esac; done; }; f; pwd", 0, "A=1\nf\n"+b.workspace+"/sub\n")
			b.gives("g", 0, "g\n")
			b.gives("cat <<'E'\n$a\nE\nfor i in 1 2; do\necho $i\ndone", 0, "$a\n1\n2\n")
			b.gives("x='"+strings.Repeat("y", 100_000)+"'; echo ${#x}", 0, "100000\n")
			b.gives("PS1='$ '; PS2=x; IFS=/; set -u", 0, "")
			b.gives("echo fine; unset IFS", 0, "fine\n")
			if r := b.run("if true; then"); r.Exit == 0 {
				t.Errorf("half a command gave %+v", r)
			}
			b.gives("echo again", 0, "again\n")
			b.gives("set +u; printf 'a\\377'", 0, "a\uFFFD")
			if r := b.run("set -x; echo a; set +x"); !strings.Contains(r.Output, "+ echo a\na\n") || strings.Contains(r.Output, "__dh") {
				t.Errorf("set -x shows %q", r.Output)
			}
			b.plainFlow(t)
		})
	}
}

func (b *box) plainFlow(t *testing.T) {
	t.Helper()
	input := func(text string) sandbox.Result {
		t.Helper()
		return b.do(sandbox.Command{Text: text, Input: true, Hard: hung}, nil)
	}
	b.begin(sandbox.Command{Text: `echo "name?"; read name; echo "hello $name"`}, "name?")
	if r := input("you"); r.Exit != 0 || r.Output != "hello you\n" {
		t.Errorf("a line of input gave %+v", r)
	}
	for range 3 {
		b.begin(sandbox.Command{Text: "echo ready; sleep 1000; echo after"}, "ready")
		if r := input("C-c"); r.Exit != 130 || strings.Contains(r.Output, "after") {
			t.Errorf("C-c gave %+v", r)
		}
	}
	b.gives("echo $?", 0, "130\n")
	b.begin(sandbox.Command{Text: "echo ready; while :; do :; done"}, "ready")
	if err := b.Interrupt(t.Context(), "", time.Second); err != nil {
		t.Fatal(err)
	}
	// The ash of busybox does not always hear Ctrl-C in a loop of its own words.
	// Then it is killed in the end.
	if r := b.do(sandbox.Command{}, nil); r.Exit != 130 && !r.NewShell || !r.Previous {
		t.Errorf("an interrupted loop gave %+v", r)
	}
	b.run("cd " + b.workspace + "/sub")
	b.begin(sandbox.Command{Text: "sh -c 'trap \"\" INT; echo ready; while :; do sleep 0.01; done'; echo after"}, "ready")
	if err := b.Interrupt(t.Context(), "", short); err != nil {
		t.Fatal(err)
	}
	if r := b.do(sandbox.Command{}, nil); r.Exit == 0 || strings.Contains(r.Output, "after") {
		t.Errorf("a killed program gave %+v", r)
	}
	b.begin(sandbox.Command{Text: "echo ready; sleep 1000"}, "ready")
	if r := input("C-z"); r.Exit < 146 || r.Exit > 148 {
		t.Errorf("C-z gave %+v", r)
	}
	b.run("kill -9 %1")
	// A background process that ends while the shell waits must not end it.
	syscall.Mkfifo(b.workspace+"/sub/gate", 0o600)
	b.run("y=kept")
	for range 5 {
		b.run("{ exec 8>gate; read line <gate; } &")
		gate, err := os.OpenFile(b.workspace+"/sub/gate", os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := gate.WriteString("go\n"); err != nil {
			t.Fatal(err)
		}
		gate.Close()
	}
	// Nor one that ends when the command that began it does.
	for range 200 {
		b.run("sleep 0 & sleep 0 & (sleep 0 &)")
	}
	if r := b.run("echo $y"); !strings.Contains(r.Output, "kept\n") { // beside what it tells of its jobs
		t.Errorf("the shell has changed: %+v", r)
	}
	b.run("exec 2>/dev/null")
	if r := b.run("echo seen"); !strings.HasSuffix(r.Output, "seen\n") {
		t.Errorf("without standard error: %+v", r)
	}
	if r := b.run("exit 3"); r.Exit != 3 || !r.NewShell {
		t.Errorf("exit gave %+v", r)
	}
	b.gives("echo fresh; pwd", 0, "fresh\n"+b.workspace+"\n")
	if files, err := os.ReadDir(b.config.Dir); err != nil || len(files) > 0 {
		t.Errorf("commands were left behind: %v, %v", files, err)
	}
}

// When processes cannot see the runner's folder, commands are read from the
// other one.
func TestPlainConfined(t *testing.T) {
	b := plainBox(t, "dash")
	b.config.Confined = true
	b.config.Dir = filepath.Join(b.config.Output, "not", "made")
	client := connect(t, b.make(b.config))
	r, err := client.Exec(t.Context(), sandbox.Command{ID: "x", Text: "ls " + b.config.Output}, nil)
	if err != nil || !strings.HasPrefix(r.Output, "command-") {
		t.Errorf("gave %+v, %v", r, err)
	}
}

func TestLookIsTheSandboxs(t *testing.T) {
	if _, err := spawn.Look(spawn.Attr{Args: bash.args, Env: []string{"PATH=/nowhere"}}); err == nil {
		t.Error("bash was found in a folder that does not exist")
	}
}

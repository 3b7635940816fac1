package sandboxtest

import (
	"path"
	"strconv"
	"strings"
	"testing"
	"time"

	"deckhand/internal/sandbox"
)

var shellTests = []test[*box]{
	{name: "State", run: shellState},
	{name: "Several", run: severalShells},
	{name: "ExitCodes", run: exitCodes},
	{name: "Syntax", run: syntax},
	{name: "Exit", run: exitShell},
	{name: "Texts", run: texts},
	{name: "Live", run: live},
	{name: "Busy", run: busy},
	{name: "Background", run: inBackground},
	{name: "Result", run: resultFields},
	{name: "Program", run: runProgram},
	{name: "ProgramCancelled", run: runCancelled},
}

// shellState: what one command does to its shell, the next one finds.
func shellState(t *testing.T, b *box) {
	_, dir := b.folder(t)
	b.ok(t, "mkdir -p %s/deep && cd %s/deep", dir, dir)
	same(t, "folder", b.ok(t, "pwd"), dir+"/deep")
	b.ok(t, "plain=1; export EXPORTED='two words'")
	same(t, "variables", b.ok(t, `echo "$plain" && sh -c 'echo "$EXPORTED"'`), "1\ntwo words")
	b.ok(t, "greet() {\n  echo \"hello $1\"\n}")
	same(t, "function", b.ok(t, "greet you"), "hello you")
	b.ok(t, "umask 077; touch made")
	contains(t, "file made under a mask", b.ok(t, "ls -l made"), "-rw-------")
	b.sh(t, "(exit 42)")
	same(t, "the last exit code", b.ok(t, "echo $?"), "42")
	b.ok(t, "sleep 1000 & slept=$!")
	b.ok(t, "kill -0 $slept")
	contains(t, "a job", b.ok(t, "kill $slept; wait $slept; echo code=$?"), "code=143")
}

// severalShells: each name is a shell of its own, and they run at the same time.
func severalShells(t *testing.T, b *box) {
	_, dir := b.folder(t)
	one, two := t.Name()+"-1", t.Name()+"-2"
	b.in(t, one, "cd %s; who=one; export ALSO=one", dir)
	b.in(t, two, "cd /; who=two")
	same(t, "first shell", b.in(t, one, `echo "$who $ALSO $(pwd)"`).Output, "one one "+dir+"\n")
	same(t, "second shell", b.in(t, two, `echo "$who $ALSO $(pwd)"`).Output, "two  /\n")
	b.in(t, one, "mkfifo pipe")
	waiting := b.start(t, sandbox.Command{Shell: one, Text: "cat pipe"})
	b.in(t, two, "echo from two > %s/pipe", dir)
	same(t, "what the second told the first", waiting.wait(t).Output, "from two\n")
}

func exitCodes(t *testing.T, b *box) {
	for text, want := range map[string]int{
		"true": 0, "false": 1, "(exit 77)": 77, "there-is-no-such-program": 127, "sh -c 'kill -9 $$'": 137, "sh -c 'kill -TERM $$'": 143,
		"sh -c 'exit 255'": 255, "/": 126, "false | true": 0, "true && false": 1, "false; true": 0, "! true": 1,
	} {
		r := b.sh(t, "%s", text)
		same(t, "exit code of "+text, r.Exit, want)
		same(t, "a new shell after "+text, r.NewShell, false)
	}
}

// syntax: an invalid command ends at once and does no harm.
func syntax(t *testing.T, b *box) {
	b.ok(t, "kept=yes")
	for _, text := range []string{"echo 'open", `echo "open`, "echo $(", "if true", "for", "fi", "echo `", "(", "case x in", "cat <<EOF\nwithout an end"} {
		r := b.sh(t, "%s", text)
		if r.Wait != "" || r.Exit < 0 {
			t.Fatalf("%q still runs: %+v", text, r)
		}
		// A here-document may end with the text.
		if r.Exit == 0 && !strings.HasPrefix(text, "cat") {
			t.Errorf("%q succeeded: %q", text, r.Output)
		}
		if got := b.sh(t, "echo again"); got.Output != "again\n" || got.Exit != 0 {
			t.Fatalf("after %q the shell is not usable: %+v", text, got)
		}
	}
}

// exitShell: a shell that ends says how, and the next command has a fresh one.
func exitShell(t *testing.T, b *box) {
	for _, end := range []struct {
		text string
		exit int
	}{{"exit 3", 3}, {"echo bye; exit", 0}, {"kill -9 $$", 137}, {"exec sh -c 'exit 5'", 5}, {"set -e; false", 1}} {
		b.ok(t, "cd / && here=1 && export HERE=1")
		r := b.sh(t, "%s", end.text)
		same(t, "exit code of "+end.text, r.Exit, end.exit)
		same(t, "the shell ended with "+end.text, r.NewShell, true)
		same(t, "what is left after "+end.text, b.ok(t, `echo "$here$HERE $(pwd)"`), " "+b.root)
	}
}

// texts: a command is any text.
func texts(t *testing.T, b *box) {
	for text, want := range map[string]string{
		"cat <<'END'\n$no `expansion` here\n\tand a tab\nEND":          "$no `expansion` here\n\tand a tab",
		"for i in 1 2 3; do\n  echo $i\ndone":                          "1\n2\n3",
		"echo one\necho two":                                           "one\ntwo",
		"echo one \\\n  two":                                           "one two",
		`printf '%s\n' "don't" 'say "so"' '\back' '!!' '%d'`:           "don't\nsay \"so\"\n\\back\n!!\n%d",
		"# only a comment":                                             "",
		"echo käse 日本 😀 # not this":                                    "käse 日本 😀",
		"  \n\techo indented\n\n":                                      "indented",
		"echo '" + strings.Repeat("long ", 20_000) + "' | wc -c":       "100001",
		"x='" + strings.Repeat("y", 10_000) + "'; echo ${#x}":          "10000",
		"echo $((6 * 7)); true && echo and || echo or":                 "42\nand",
		"printf 'no newline'":                                          "no newline",
		"(echo out; echo err >&2)":                                     "out\nerr",
		"read -r line <<END\nfrom a document\nEND\necho got \"$line\"": "got from a document",
	} {
		r := b.sh(t, "%s", text)
		if got := strings.TrimLeft(strings.TrimRight(r.Output, "\n"), " "); r.Exit != 0 || got != want {
			t.Errorf("%s\nended with %d and %s, want %s", shorten(text), r.Exit, shorten(got), shorten(want))
		}
	}
}

// live: output comes while the command runs, also to a second caller, who gets
// what he missed.
func live(t *testing.T, b *box) {
	_, dir := b.folder(t)
	b.ok(t, "cd %s && mkfifo pipe", dir)
	c := sandbox.Command{ID: newID(t), Shell: t.Name(), Text: "echo one; read word < pipe; echo two $word"}
	first := b.start(t, c)
	first.shows(t, "one\n")
	second := b.start(t, c)
	second.shows(t, "one\n")
	if strings.Contains(first.output(), "two") {
		t.Fatal("the command did not wait")
	}
	b.in(t, t.Name()+"-other", "echo three > %s/pipe", dir)
	for _, g := range []*background{first, second} {
		same(t, "result", g.wait(t).Output, "one\ntwo three\n")
		same(t, "live output", g.output(), "one\ntwo three\n")
	}
}

// busy: a shell runs one command at a time and says so.
func busy(t *testing.T, b *box) {
	_, dir := b.folder(t)
	b.ok(t, "cd %s && mkfifo pipe", dir)
	running := b.start(t, sandbox.Command{Shell: t.Name(), Text: "echo begun; cat pipe"})
	running.shows(t, "begun")
	r := b.sh(t, "touch %s/must-not-be", dir)
	if r.Refused == "" || r.Exit != -1 {
		t.Errorf("a second command was not refused: %+v", r)
	}
	b.in(t, t.Name()+"-other", "echo more > %s/pipe", dir)
	same(t, "output of the first", running.wait(t).Output, "begun\nmore\n")
	same(t, "what was run", b.ok(t, "ls"), "pipe")
	for _, c := range []sandbox.Command{{Text: ""}, {Text: "hello", Input: true}, {Text: "C-c", Input: true}} {
		c.Shell = t.Name()
		if r := b.exec(t, c, nil); r.Refused == "" {
			t.Errorf("nothing runs, but %+v was not refused: %+v", c, r)
		}
		c.Shell = t.Name() + "-never-used"
		if r := b.exec(t, c, nil); r.Refused == "" {
			t.Errorf("there is no such shell, but %+v was not refused: %+v", c, r)
		}
	}
}

// inBackground: background processes of a command keep running, and no call waits for them.
func inBackground(t *testing.T, b *box) {
	_, dir := b.folder(t)
	h := b.program(t)
	b.ok(t, "cd %s && mkfifo pipe", dir)
	b.ok(t, "%s hold lock > out 2>&1 & read line < pipe & sleep 1000 & (sleep 1000 &)", h)
	b.ok(t, "nohup sleep 1000 > /dev/null 2>&1 &")
	// It is started once: that it stays is what is tested. If it did not come to
	// life, what there is tells why.
	b.ok(t, `i=0
until grep -q held out; do
	i=$((i+1))
	if [ $i = 2000 ]; then break; fi
	sleep 0.02
done
grep -q held out || { cat out; jobs; ps; ls -la; (exit 9); }`)
	if r := b.sh(t, "%s locked lock", h); r.Exit != 1 {
		t.Errorf("what was left running has ended: %q", r.Output)
	}
	same(t, "a command beside jobs", b.ok(t, "echo fine"), "fine")
	b.in(t, t.Name()+"-other", "echo x > %s/pipe", dir)
}

func resultFields(t *testing.T, b *box) {
	_, dir := b.folder(t)
	before := time.Now().Add(-time.Hour)
	r := b.sh(t, "cd %s; echo $$", dir)
	same(t, "Dir", r.Dir, dir)
	same(t, "PID", strconv.Itoa(r.PID), strings.TrimSpace(r.Output))
	same(t, "Bytes", r.Bytes, int64(len(r.Output)))
	if r.Started.Before(before) || r.Ended.Before(r.Started) || r.Wait != "" || r.Whole != "" || r.Previous || r.Refused != "" || r.Lost {
		t.Errorf("a plain command has the result %+v", r)
	}
	info := b.Info()
	if info.Boot == "" || info.Version == "" || info.User == "" || info.Host == "" {
		t.Errorf("the runner says of itself only %+v", info)
	}
	if s := path.Base(info.Shell); s != "bash" && s != "sh" || b.options.Shell != "" && s != b.options.Shell {
		t.Errorf("the shell is %q", info.Shell)
	}
	same(t, "User", info.User, b.ok(t, "id -un 2>/dev/null || id -u"))
}

// runProgram: a program without a shell.
func runProgram(t *testing.T, b *box) {
	_, dir := b.folder(t)
	run := func(p sandbox.Process, in string) sandbox.ProcessResult {
		t.Helper()
		r, err := b.Run(within(t), p, strings.NewReader(in))
		must(t, err)
		return r
	}
	r := run(sandbox.Process{Args: []string{"sh", "-c", `cat; echo "$WORD" >&2; pwd; exit 9`}, Dir: dir, Env: map[string]string{"WORD": "a b"}}, "sent\n")
	same(t, "exit code", r.Exit, 9)
	same(t, "stdout", string(r.Stdout), "sent\n"+dir+"\n")
	same(t, "stderr", string(r.Stderr), "a b\n")
	big := strings.Repeat("0123456789abcde\n", 1<<18)
	r = run(sandbox.Process{Args: []string{"cat"}, Limit: 8 << 20}, big)
	if string(r.Stdout) != big || r.Cut {
		t.Errorf("of %d bytes %d came back, cut: %v", len(big), len(r.Stdout), r.Cut)
	}
	r = run(sandbox.Process{Args: []string{"cat"}, Limit: 100}, big)
	if len(r.Stdout) != 100 || !r.Cut || r.Exit != 0 {
		t.Errorf("with a limit of 100 bytes: %d bytes, cut: %v, exit %d", len(r.Stdout), r.Cut, r.Exit)
	}
	r = run(sandbox.Process{Args: []string{"true"}}, big) // the program does not read it
	same(t, "exit code", r.Exit, 0)
	r = run(sandbox.Process{Args: []string{"sh", "-c", "kill -9 $$"}}, "")
	same(t, "exit code", r.Exit, 137)
	if _, err := b.Run(within(t), sandbox.Process{Args: []string{"there-is-no-such-program"}}, nil); err == nil {
		t.Error("what is not there was run")
	}
	// A process without input gets none: a program that reads must not wait.
	quiet, err := b.Run(within(t), sandbox.Process{Args: []string{"cat"}}, nil)
	must(t, err)
	same(t, "stdout", string(quiet.Stdout), "")
}

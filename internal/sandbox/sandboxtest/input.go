package sandboxtest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"deckhand/internal/sandbox"
)

var inputTests = []test[*box]{
	{name: "Line", run: inputLine},
	{name: "Prompt", run: prompt},
	{name: "Keys", run: keys},
	{name: "Unread", run: unread},
	{name: "Interrupt", run: interrupt},
	{name: "InterruptDeaf", run: interruptDeaf},
	{name: "Soft", run: soft},
	{name: "Hard", run: hard},
}

// quiet is a soft limit that passes soon.
const quiet = 200 * time.Millisecond

// until runs a command and waits, with soft limits, until it has said something.
func (b *box) until(t *testing.T, c sandbox.Command, text string) string {
	t.Helper()
	c.Soft = quiet
	r := b.exec(t, c, nil)
	said := r.Output
	for !strings.Contains(said, text) {
		if r.Wait != sandbox.SoftWait {
			t.Fatalf("%s ended before it said %q: %+v", c.Text, text, r)
		}
		same(t, "exit code of what still runs", r.Exit, -1)
		r = b.exec(t, sandbox.Command{Shell: c.Shell, Soft: quiet}, nil)
		same(t, "the output is of an earlier command", r.Previous, true)
		said += r.Output
	}
	return said
}

// input sends input to what runs and waits for its end.
func (b *box) input(t *testing.T, text string) sandbox.Result {
	t.Helper()
	return b.exec(t, sandbox.Command{Shell: t.Name(), Text: text, Input: true}, nil)
}

func inputLine(t *testing.T, b *box) {
	for _, text := range []string{"hello", "two words", "käse 😀", `quo"ted' \back $x`, ""} {
		b.until(t, sandbox.Command{Shell: t.Name(), Text: `echo ready; IFS= read -r line; echo "got <$line>"`}, "ready")
		r := b.input(t, text)
		contains(t, "output", r.Output, "got <"+text+">")
		if r.Exit != 0 || !r.Previous {
			t.Errorf("the command that got its input has the result %+v", r)
		}
	}
	same(t, "afterwards", b.ok(t, "echo free"), "free")
}

// prompt: a program that asks again and again, until there is no more.
func prompt(t *testing.T, b *box) {
	b.until(t, sandbox.Command{Shell: t.Name(), Text: `sh -c 'while printf ">>> "; read -r x; do echo "= $x"; done; echo; echo bye'`}, ">>> ")
	for _, text := range []string{"one", "two"} {
		contains(t, "answer", b.until(t, sandbox.Command{Shell: t.Name(), Text: text, Input: true}, "= "+text), "= "+text)
	}
	r := b.input(t, "C-d")
	contains(t, "output", r.Output, "bye")
	same(t, "exit code", r.Exit, 0)
}

func keys(t *testing.T, b *box) {
	run := func(text string) { b.until(t, sandbox.Command{Shell: t.Name(), Text: text}, "ready") }
	run("echo ready; sleep 1000")
	same(t, "C-c of a sleep", b.input(t, "C-c").Exit, 130)
	run(`sh -c 'trap "echo caught; exit 9" INT; echo ready; while :; do sleep 1; done'`)
	r := b.input(t, "C-c")
	contains(t, "output", r.Output, "caught")
	same(t, "exit code of who catches it", r.Exit, 9)
	run("echo ready; cat")
	same(t, "C-d of a cat", b.input(t, "C-d").Exit, 0)
	run("echo ready; while :; do :; done")
	same(t, "C-c of a loop", b.input(t, "C-c").Exit, 130)
	run("echo ready; sleep 1000")
	r = b.input(t, "C-z")
	if r.Wait != "" || r.Exit <= 128 {
		t.Errorf("C-z did not stop it: %+v", r)
	}
	contains(t, "jobs", b.ok(t, "jobs"), "sleep 1000")
	b.sh(t, "kill -9 %%1")
	contains(t, "afterwards", b.ok(t, "echo free"), "free")
}

// unread: unread input is not a command.
func unread(t *testing.T, b *box) {
	_, dir := b.folder(t)
	b.ok(t, "cd %s; mkfifo pipe", dir)
	b.until(t, sandbox.Command{Shell: t.Name(), Text: "echo ready; cat pipe"}, "ready")
	b.exec(t, sandbox.Command{Shell: t.Name(), Text: "touch must-not-be", Input: true, Soft: quiet}, nil)
	b.in(t, t.Name()+"-other", "echo > %s/pipe", dir)
	b.exec(t, sandbox.Command{Shell: t.Name()}, nil)
	same(t, "what was run", b.ok(t, "ls"), "pipe")
}

func interrupt(t *testing.T, b *box) {
	must(t, b.Interrupt(within(t), t.Name(), bound)) // there is no such shell
	b.ok(t, "kept=yes")
	must(t, b.Interrupt(within(t), t.Name(), bound)) // nothing runs
	// Who says "ready" is in the foreground by then; a shell that is just starting
	// something may miss the key, and has the grace for it.
	for _, text := range []string{
		"sh -c 'echo ready; exec sleep 1000'", "sh -c 'echo ready; exec cat'", "sleep 1000 | sh -c 'echo ready; exec cat'", "echo ready; while :; do :; done",
	} {
		g := b.start(t, sandbox.Command{Shell: t.Name(), Text: text})
		g.shows(t, "ready")
		must(t, b.Interrupt(within(t), t.Name(), bound))
		if r := g.wait(t); r.Exit != 130 || r.NewShell {
			t.Errorf("the interrupted %q has the result %+v", text, r)
		}
		same(t, "the shell's state", b.ok(t, "echo $kept"), "yes")
	}
}

// interruptDeaf: who does not listen is killed, with all that belongs to it.
func interruptDeaf(t *testing.T, b *box) {
	_, dir := b.folder(t)
	h := b.program(t)
	b.ok(t, "cd %s; kept=yes", dir)
	g := b.start(t, sandbox.Command{Shell: t.Name(), Text: `sh -c 'trap "" INT TERM HUP; ` + h + ` hold lock & echo ready; while :; do sleep 1000; done'`})
	g.shows(t, "ready")
	g.shows(t, "held")
	must(t, b.Interrupt(within(t), t.Name(), quiet))
	// A plain shell may take the interrupt for itself, and tell of that.
	if r := g.wait(t); r.Exit != 137 && !(b.Info().Shell == "sh" && r.Exit == 130) || r.NewShell {
		t.Errorf("a deaf command has the result %+v", r)
	}
	same(t, "its child", b.freed(t, "lock"), "free")
	same(t, "the shell's state", b.ok(t, "echo $kept"), "yes")
	// When the shell itself is deaf it has to go.
	g = b.start(t, sandbox.Command{Shell: t.Name(), Text: "trap '' INT; echo ready; while :; do :; done"})
	g.shows(t, "ready")
	must(t, b.Interrupt(within(t), t.Name(), quiet))
	if r := g.wait(t); r.Exit != 137 || !r.NewShell {
		t.Errorf("a deaf shell has the result %+v", r)
	}
	same(t, "a fresh shell", b.ok(t, "echo ${kept:-fresh}"), "fresh")
}

// soft: who is silent for long is not waited for, and goes on.
func soft(t *testing.T, b *box) {
	_, dir := b.folder(t)
	b.ok(t, "cd %s; mkfifo pipe", dir)
	c := sandbox.Command{ID: newID(t), Shell: t.Name(), Text: "echo one; cat pipe; echo two; (exit 6)", Soft: quiet}
	r := b.exec(t, c, nil)
	if r.Wait != sandbox.SoftWait || r.Exit != -1 || r.Previous || r.PID == 0 {
		t.Fatalf("a silent command has the result %+v", r)
	}
	again := b.exec(t, c, nil)
	same(t, "the result asked for again", again.Output, r.Output)
	said := r.Output
	b.in(t, t.Name()+"-other", "echo in between > %s/pipe", dir)
	for r.Wait != "" {
		r = b.exec(t, sandbox.Command{Shell: t.Name(), Soft: quiet}, nil)
		same(t, "the output is of an earlier command", r.Previous, true)
		said += r.Output
	}
	same(t, "exit code", r.Exit, 6)
	same(t, "all output, each piece once", said, "one\nin between\ntwo\n")
}

// hard: also who is not silent is not waited for any longer.
func hard(t *testing.T, b *box) {
	_, dir := b.folder(t)
	b.ok(t, "cd %s", dir)
	r := b.exec(t, sandbox.Command{
		Shell: t.Name(), Text: "while [ ! -e stop ]; do echo tick; sleep 0.02; done; echo over", Soft: bound, Hard: 500 * time.Millisecond,
	}, nil)
	if r.Wait != sandbox.HardWait || r.Exit != -1 {
		t.Fatalf("after its time the command has the result %+v", r)
	}
	b.in(t, t.Name()+"-other", "touch %s/stop", dir)
	r = b.exec(t, sandbox.Command{Shell: t.Name()}, nil)
	if r.Exit != 0 || !r.Previous || !strings.HasSuffix(r.Output, "over\n") {
		t.Errorf("the rest is %+v", r)
	}
}

// runCancelled: a cancelled program is killed with its children.
func runCancelled(t *testing.T, b *box) {
	_, dir := b.folder(t)
	h := b.program(t)
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := b.Run(ctx, sandbox.Process{Args: []string{"sh", "-c", h + " hold lock > out & sleep 1000"}, Dir: dir}, nil)
		ended <- err
	}()
	b.ok(t, "cd %s; until grep -q held out 2>/dev/null; do :; done", dir)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled run ends with %v", err)
	}
	b.ok(t, "until %s locked lock; do sleep 0.02; done", h)
}

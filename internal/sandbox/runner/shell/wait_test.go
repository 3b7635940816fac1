package shell

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"deckhand/internal/sandbox"
)

const short = 10 * time.Millisecond

func TestSoftAndHard(t *testing.T) {
	b := open(t)
	syscall.Mkfifo(b.workspace+"/gate", 0o600)
	r := b.do(sandbox.Command{ID: "one", Text: "echo first; read line <gate; echo second; (exit 5)", Soft: short}, nil)
	if r.Exit != -1 || r.Wait != sandbox.SoftWait || r.Previous || r.NewShell {
		t.Fatalf("a silent command gave %+v", r)
	}
	out := r.Output
	r = b.do(sandbox.Command{Hard: short}, nil)
	if r.Exit != -1 || r.Wait != sandbox.HardWait || !r.Previous {
		t.Fatalf("waiting on gave %+v", r)
	}
	out += r.Output
	for ends := time.Now().Add(hung); out != "first\n" && time.Now().Before(ends); {
		out += b.do(sandbox.Command{Hard: short}, nil).Output
	}
	if out != "first\n" {
		t.Errorf("so far there was %q", out)
	}
	if got := b.shells.Current(); got != "one" {
		t.Errorf("the command that runs is %q", got)
	}
	r = b.do(sandbox.Command{Text: "echo not this", Soft: short}, nil)
	if r.Refused == "" || r.Exit != -1 || r.Output != "" || r.Wait != "" {
		t.Errorf("a second command gave %+v", r)
	}
	if err := os.WriteFile(b.workspace+"/gate", []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	r = b.do(sandbox.Command{Hard: hung}, nil)
	if r.Exit != 5 || r.Output != "second\n" || !r.Previous || r.Wait != "" {
		t.Errorf("the end gave %+v", r)
	}
	if got := b.shells.Current(); got != "" {
		t.Errorf("nothing runs, but %q", got)
	}
	if r := b.do(sandbox.Command{}, nil); r.Refused == "" {
		t.Errorf("waiting for nothing gave %+v", r)
	}
	if r := b.do(sandbox.Command{Text: "x", Input: true}, nil); r.Refused == "" {
		t.Errorf("input for nothing gave %+v", r)
	}
	if r := b.do(sandbox.Command{Shell: "none", Text: " \n "}, nil); r.Refused == "" || r.Dir != b.workspace {
		t.Errorf("waiting in a shell that never was gave %+v", r)
	}
}

// Output moves the soft limit on, but not the hard one.
func TestOutputMovesSoft(t *testing.T) {
	b := open(t)
	r := b.do(sandbox.Command{Text: "while :; do echo x; done", Soft: 10 * time.Second, Hard: 100 * time.Millisecond}, nil)
	if r.Wait != sandbox.HardWait {
		t.Errorf("endless output gave %+v", r.Wait)
	}
	if err := b.Interrupt(t.Context(), "", hung); err != nil {
		t.Fatal(err)
	}
	if r := b.do(sandbox.Command{}, nil); r.Exit != 130 || !r.Previous {
		t.Errorf("its end gave %d", r.Exit)
	}
	b.gives("echo free", 0, "free\n")
}

// A command that ends without a waiting call is reported by the next call.
func TestEndWhileNobodyWaits(t *testing.T) {
	b := open(t)
	end := func(text string) {
		t.Helper()
		syscall.Mkfifo(b.workspace+"/gate", 0o600)
		b.begin(sandbox.Command{Text: "echo begun; read line <gate; " + text}, "begun")
		_, job := b.inside()
		if err := os.WriteFile(b.workspace+"/gate", []byte("go\n"), 0); err != nil {
			t.Fatal(err)
		}
		<-job.done
	}
	end("echo late; (exit 3)")
	if r := b.do(sandbox.Command{}, nil); r.Exit != 3 || r.Output != "late\n" || !r.Previous {
		t.Errorf("waiting after the end gave %+v", r)
	}
	end("echo late; (exit 4)")
	b.gives("echo new", 0, "late\n[The previous command has ended with exit code 4.]\nnew\n")
	end("echo late; (exit 5)")
	if r := b.do(sandbox.Command{Input: true, Text: "y"}, nil); r.Exit != 5 || r.Output != "late\n" || r.Refused == "" {
		t.Errorf("input after the end gave %+v", r)
	}
	end("exit 6")
	if r := b.do(sandbox.Command{}, nil); r.Exit != 6 || !r.NewShell || !r.Previous {
		t.Errorf("waiting after the end of the shell gave %+v", r)
	}
	b.gives("echo fresh", 0, "fresh\n")
}

func TestInput(t *testing.T) {
	b := open(t)
	// The program itself says that it is ready: a signal that comes while the shell
	// starts a program goes to the shell, as at any terminal.
	const sleeps = "sh -c 'echo ready; exec sleep 1000'"
	input := func(text string) sandbox.Result {
		t.Helper()
		return b.do(sandbox.Command{Text: text, Input: true, Hard: hung}, nil)
	}
	b.begin(sandbox.Command{Text: `read -p "name? " name; echo "hello $name"`}, "name? ")
	if r := input("the  world"); r.Exit != 0 || r.Output != "hello the  world\n" || !r.Previous {
		t.Errorf("a line of input gave %+v", r)
	}
	b.begin(sandbox.Command{Text: "echo ready; cat; echo end"}, "ready")
	b.do(sandbox.Command{Text: "one", Input: true, Soft: short}, nil)
	if r := input("C-d"); r.Exit != 0 || !strings.HasSuffix(r.Output, "end\n") {
		t.Errorf("C-d gave %+v", r)
	}
	b.begin(sandbox.Command{Text: sleeps + "; echo after"}, "ready")
	if r := input("C-c"); r.Exit != 130 || strings.Contains(r.Output, "after") {
		t.Errorf("C-c gave %+v", r)
	}
	b.begin(sandbox.Command{Text: sleeps}, "ready")
	if r := input("C-z"); r.Exit != 148 || !strings.Contains(r.Output, "Stopped") {
		t.Errorf("C-z gave %+v", r)
	}
	if r := b.run("jobs; kill -9 %1"); r.Exit != 0 || !strings.Contains(r.Output, "Stopped") {
		t.Errorf("the stopped job gave %+v", r)
	}
	b.begin(sandbox.Command{Text: "ulimit -c 0; " + sleeps}, "ready")
	if r := input(` C-\ `); r.Exit != 131 {
		t.Errorf("C-\\ gave %+v", r)
	}
}

// What a command was sent and did not read is not a command, nor the next one's input.
func TestUnreadInputIsLost(t *testing.T) {
	b := open(t)
	syscall.Mkfifo(b.workspace+"/gate", 0o600)
	b.begin(sandbox.Command{Text: "echo ready; read line <gate"}, "ready")
	b.do(sandbox.Command{Text: "touch oops", Input: true, Soft: short}, nil)
	if err := os.WriteFile(b.workspace+"/gate", []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	b.do(sandbox.Command{Hard: hung}, nil)
	b.gives("read -t 0.01 line || echo nothing; ls", 0, "nothing\ngate\n")
}

func TestLongInput(t *testing.T) {
	b := open(t)
	b.begin(sandbox.Command{Text: "echo ready; head -n 2 | wc -c"}, "ready")
	long := strings.Repeat("x", 4094)
	if r := b.do(sandbox.Command{Text: long + "y", Input: true}, nil); r.Refused == "" || r.Exit != -1 {
		t.Errorf("a line that is too long gave %+v", r)
	}
	if r := b.do(sandbox.Command{Text: long + "\nshort", Input: true, Hard: hung}, nil); r.Exit != 0 || r.Output != "4101\n" {
		t.Errorf("the longest line gave %+v", r)
	}
}

func TestInputForAPython(t *testing.T) {
	need(t, "python3")
	b := open(t, os.Environ()...)
	b.begin(sandbox.Command{Text: "python3 -q"}, ">>> ")
	r := b.begin(sandbox.Command{Text: "print(6*7)", Input: true}, "42")
	if proc, _ := b.inside(); r.Wait != sandbox.SoftWait || r.PID == proc.PID {
		t.Errorf("a prompt inside gave %+v", r)
	}
	if r := b.do(sandbox.Command{Text: "exit(9)", Input: true, Hard: hung}, nil); r.Exit != 9 {
		t.Errorf("its end gave %+v", r)
	}
}

func TestInterrupt(t *testing.T) {
	b := open(t)
	if err := os.WriteFile(b.workspace+"/begun", []byte("begun\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text  string
		grace time.Duration
		exit  int
		fresh bool
	}{
		"a program":            {"echo begun; sleep 1000", hung, 130, false},
		"a list":               {"echo begun; sleep 1000; echo after", hung, 130, false},
		"the shell itself":     {"echo begun; while :; do :; done", hung, 130, false},
		"a loop of programs":   {"echo begun; while :; do sleep 1000; done", hung, 130, false},
		"one to ask twice":     {"sh -c 'trap \"trap - INT\" INT; echo begun; while :; do sleep 0.01; done'", time.Second, 130, false},
		"a pipeline":           {"cat begun - | cat", hung, 130, false},
		"raw mode":             {"echo begun; stty raw; sleep 1000", hung, 130, false},
		"one that ignores it":  {"sh -c 'trap \"\" INT; echo begun; while :; do sleep 0.01; done'", short, 137, false},
		"without grace":        {"echo begun; sleep 1000; echo after", 0, 137, false},
		"a shell that is deaf": {"trap '' INT; echo begun; while :; do :; done", short, 137, true},
		"a replaced shell":     {"exec cat begun -", hung, 130, true},
	} {
		t.Run(name, func(t *testing.T) {
			shell := strings.ReplaceAll(name, " ", "-")
			done := make(chan sandbox.Result, 1)
			began := make(chan struct{})
			go func() {
				var out []byte
				r, err := b.Exec(t.Context(), sandbox.Command{ID: shell, Shell: shell, Text: c.text}, func(p []byte) {
					if out = append(out, p...); string(out) == "begun\n" {
						close(began)
					}
				})
				if err != nil {
					t.Error(err)
				}
				done <- r
			}()
			<-began
			if err := b.Interrupt(t.Context(), shell, c.grace); err != nil {
				t.Fatal(err)
			}
			r := <-done
			if c.grace == 0 && r.Exit == 130 { // both are sent, and the first may win
				r.Exit = 137
			}
			if r.Exit != c.exit || r.NewShell != c.fresh || strings.Contains(r.Output, "after") {
				t.Errorf("gave %+v", r)
			}
			if r := b.do(sandbox.Command{ID: "after " + name, Shell: shell, Text: "echo fine", Hard: hung}, nil); r.Exit != 0 || !strings.HasSuffix(r.Output, "fine\n") {
				t.Errorf("afterwards: %+v", r)
			}
		})
	}
	for _, shell := range []string{"", "none"} {
		if err := b.Interrupt(t.Context(), shell, 0); err != nil {
			t.Errorf("interrupting nothing in %q: %v", shell, err)
		}
	}
}

// An interrupt that comes right after the command must not be lost, nor tear the
// command apart while the shell reads it.
func TestInterruptAtOnce(t *testing.T) {
	b := open(t)
	filler := strings.Repeat("# "+strings.Repeat("x", 98)+"\n", 2000)
	for i := range 10 {
		text := "sleep 1000\ntouch oops"
		if i%2 == 1 {
			text = filler + text + "\n" + filler
		}
		done := make(chan sandbox.Result, 1)
		go func() { done <- b.do(sandbox.Command{Text: text}, nil) }()
		var r sandbox.Result
		for r.ID == "" {
			if err := b.Interrupt(t.Context(), "", hung); err != nil {
				t.Fatal(err)
			}
			select {
			case r = <-done:
			default:
			}
		}
		// 130, or what was before if it met the shell before the first command.
		if r.Exit == 0 || r.Exit == 137 || r.NewShell {
			t.Errorf("gave %+v", r)
		}
	}
	b.gives("ls", 0, "")
}

func TestBackground(t *testing.T) {
	b := open(t)
	syscall.Mkfifo(b.workspace+"/gate", 0o600)
	r := b.run("(read line <gate; echo from behind) & echo $! >pid")
	if r.Exit != 0 || !strings.HasPrefix(r.Output, "[1] ") {
		t.Errorf("starting in the background gave %+v", r)
	}
	if err := os.WriteFile(b.workspace+"/gate", []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	if r := b.run("wait; echo here"); !strings.HasPrefix(r.Output, "from behind\n") || !strings.Contains(r.Output, "here\n") {
		t.Errorf("its output is in %+v", r)
	}
	// The end of the shell is not held up by what holds its terminal open.
	b.run("nohup setsid sleep 1000 >/dev/null 2>&1 & echo $! >pid")
	b.run("sh -c 'trap \"\" HUP; sleep 1000' &")
	if r := b.run("exit 0"); r.Exit != 0 || !r.NewShell {
		t.Errorf("exit gave %+v", r)
	}
	if err := b.KillAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := b.shells.victims(true); len(left) > 0 {
		t.Errorf("%v were left", left)
	}
}

func TestKillAll(t *testing.T) {
	b := open(t)
	b.run("sleep 1000 & sh -c 'trap \"\" HUP TERM; sleep 1000' &")
	done := make(chan sandbox.Result, 1)
	began := make(chan struct{})
	go func() {
		done <- b.do(sandbox.Command{Text: "echo begun; sleep 1000"}, func(p []byte) {
			if strings.Contains(string(p), "begun") {
				close(began)
			}
		})
	}()
	<-began
	if err := b.KillAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := <-done; r.Exit != 137 || !r.NewShell {
		t.Errorf("a killed command gave %+v", r)
	}
	if left := b.shells.victims(true); len(left) > 0 {
		t.Errorf("%v were left", left)
	}
	b.gives("echo anew", 0, "anew\n")
}

func TestTooManyShells(t *testing.T) {
	b := open(t)
	for i := range maxShells {
		b.do(sandbox.Command{Shell: fmt.Sprint(i), Text: ":"}, nil)
	}
	_, err := b.Exec(t.Context(), sandbox.Command{ID: "one more", Shell: "one more", Text: ":"}, nil)
	if err == nil || !strings.Contains(err.Error(), "busy") {
		t.Errorf("one more gave %v", err)
	}
	b.do(sandbox.Command{Shell: "3", Text: "exit"}, nil)
	if r := b.do(sandbox.Command{ID: "one more", Shell: "one more", Text: "echo now"}, nil); r.Output != "now\n" {
		t.Errorf("when there is room: %+v", r)
	}
}

// The caller may go away; the command and its result do not.
func TestCallerGoesAway(t *testing.T) {
	b := open(t)
	syscall.Mkfifo(b.workspace+"/gate", 0o600)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := b.Exec(ctx, sandbox.Command{ID: "x", Text: "echo begun; read line <gate; echo end"}, func([]byte) { cancel() })
	if err == nil {
		t.Fatal("a cancelled call gave no error")
	}
	if err := os.WriteFile(b.workspace+"/gate", []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	var live strings.Builder
	r := b.do(sandbox.Command{ID: "x", Text: "echo not again", Again: true}, func(p []byte) { live.Write(p) })
	if r.Exit != 0 || r.Output != "begun\nend\n" || live.String() != r.Output {
		t.Errorf("attaching gave %+v and live %q", r, live.String())
	}
}

// A shell that heeds no Ctrl-C is ended by the third, and the next command gets a fresh one.
func TestThirdInterruptEndsTheShell(t *testing.T) {
	for _, stuck := range []string{"while :; do kill -STOP $$; done", "(trap '' INT; read -r x < /dev/zero)"} {
		b := open(t)
		r := b.do(sandbox.Command{Text: "trap '' INT; echo begun; " + stuck, Hard: short}, nil)
		for seen := r.Output; !strings.Contains(seen, "begun"); seen += r.Output { // an interrupt before the trap would end it
			r = b.do(sandbox.Command{Hard: short}, nil)
		}
		c := sandbox.Command{Text: "C-c", Input: true, Hard: short}
		for range 2 {
			if r = b.do(c, nil); r.Wait != sandbox.HardWait {
				t.Fatalf("%s: %+v", stuck, r)
			}
		}
		c.Hard = hung
		if r = b.do(c, nil); r.Wait != "" || !r.NewShell {
			t.Errorf("%s: %+v", stuck, r)
		}
		b.gives("echo fine", 0, "fine\n")
	}
}

// A shell that stopped itself would answer neither a key nor the next command.
func TestStoppedShellIsContinued(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.run("x=kept; sleep 1000 & kill -STOP $!")
	// Its prompt may say what became of the job.
	if r := b.run("kill -STOP $$; echo on"); r.Exit != 0 || r.NewShell || !strings.Contains(r.Output, stoppedShell) || !strings.Contains(r.Output, "\non\n") {
		t.Errorf("a shell that stopped itself gave %+v", r)
	}
	if r := b.run("jobs; echo $x"); !strings.Contains(r.Output, "Stopped") || !strings.HasSuffix(r.Output, "kept\n") {
		t.Errorf("a job that was stopped goes on, or the shell is another: %+v", r)
	}
	b.run("kill -KILL %1")
}

// The disk guard stops everything before it calls EndAll: the rest of the command must not run.
// EndAll ends every child of this process, so no other test may run at the same time.
func TestShellThatIsEndedIsNotContinued(t *testing.T) {
	b := open(t)
	b.begin(sandbox.Command{Text: "echo up; sleep 1000; echo went on"}, "up")
	p, j := b.inside()
	for p.tty.foreground() == p.PID {
		runtime.Gosched()
	}
	for _, pid := range []int{p.PID, p.tty.foreground()} {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	seen := func() bool {
		sh := b.shells.shells[""]
		sh.mu.Lock()
		defer sh.mu.Unlock()
		return j.continued || !j.stopped.IsZero()
	}
	for !seen() {
		runtime.Gosched()
	}
	if err := b.EndAll(t.Context(), "the disk is full"); err != nil {
		t.Fatal(err)
	}
	if r := b.do(sandbox.Command{}, nil); r.Output != "\n[the disk is full]\n" || r.Exit == 0 || !r.NewShell {
		t.Errorf("a command that was stopped and ended gave %+v", r)
	}
}

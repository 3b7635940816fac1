package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"deckhand/internal/cli"
	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
)

// screen is a terminal with the program in it.
type screen struct {
	t    *testing.T
	cmd  *exec.Cmd
	f    *os.File
	seen int           // what was expected so far ends here
	read chan struct{} // closed when all that it printed is in text

	mu      sync.Mutex
	text    strings.Builder
	changed chan struct{}
	closed  bool
}

// bound turns what would wait for ever into a failure.
const bound = 5 * time.Minute

// sit starts the program in a terminal.
func (d *desk) sit(args ...string) *screen {
	d.t.Helper()
	return onScreen(d.t, d.command(d.args(args...)...))
}

func onScreen(t *testing.T, cmd *exec.Cmd) *screen {
	t.Helper()
	return onScreenOf(t, cmd, 90, 40)
}

func onScreenOf(t *testing.T, cmd *exec.Cmd, columns, rows int) *screen {
	t.Helper()
	s := &screen{t: t, cmd: cmd, changed: make(chan struct{})}
	var err error
	if s.f, err = pty.StartWithSize(s.cmd, &pty.Winsize{Rows: uint16(rows), Cols: uint16(columns)}); err != nil {
		t.Fatal(err)
	}
	s.read = make(chan struct{})
	go func() {
		defer close(s.read)
		b := make([]byte, 4096)
		for {
			n, err := s.f.Read(b)
			s.mu.Lock()
			s.text.Write(b[:n])
			s.closed = err != nil
			close(s.changed)
			s.changed = make(chan struct{})
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { _ = s.cmd.Process.Kill(); _ = s.cmd.Wait(); s.f.Close(); <-s.read })
	return s
}

// expect waits until the text comes, after what was expected before.
func (s *screen) expect(want string) {
	s.t.Helper()
	limit := time.After(bound)
	for {
		s.mu.Lock()
		text, changed, closed := s.text.String(), s.changed, s.closed
		s.mu.Unlock()
		if at := strings.Index(text[s.seen:], want); at >= 0 {
			s.seen += at + len(want)
			return
		}
		if closed {
			s.t.Fatalf("%q does not come; the screen shows:\n%s", want, text)
		}
		select {
		case <-changed:
		case <-limit:
			s.t.Fatalf("%q does not come in time; the screen shows:\n%s", want, text)
		}
	}
}

func (s *screen) enter(text string) { s.press(text + "\n") }

func (s *screen) press(keys string) {
	s.t.Helper()
	if _, err := s.f.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

const ctrlC, ctrlD = "\x03", "\x04"

// ends waits for the end of the program.
func (s *screen) ends(code int) string {
	s.t.Helper()
	_ = s.cmd.Wait()
	select {
	case <-s.read: // the last of what it printed has come
	case <-time.After(bound):
		s.t.Error("something keeps the terminal open")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := s.cmd.ProcessState.ExitCode(); got != code {
		s.t.Errorf("exit code %d, want %d; the screen showed:\n%s", got, code, s.text.String())
	}
	return s.text.String()
}

// lastTold is what the model was told last.
func (d *desk) lastTold() string {
	asked := d.server.Asked()
	m := asked[len(asked)-1].Messages
	return m[len(m)-1].Text
}

func (d *desk) exists(name string) bool {
	_, err := os.Stat(filepath.Join(d.dir, name))
	return err == nil
}

func TestApprovals(t *testing.T) {
	t.Parallel()
	const question = "Approve? (risk unknown)"
	t.Run("yes and no", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, llmtest.Script(sh("touch first"), sh("touch second"), done("All right.")))
		s := d.sit("run", "go", "--confirm")
		s.expect("$ touch first")
		s.expect(question)
		s.enter("perhaps") // is asked again
		s.expect(question)
		s.enter("y")
		s.expect("$ touch second")
		s.expect(question)
		s.enter("n")
		s.expect("Reason for the agent")
		s.enter("it is not needed")
		s.expect("All right.")
		s.ends(cli.ExitDone)
		if !d.exists("first") || d.exists("second") {
			t.Error("what was allowed is not what was done")
		}
		holds(t, d.lastTold(), "it is not needed")
	})
	t.Run("no without a word", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, llmtest.Script(sh("touch made"), done("no")))
		s := d.sit("run", "go", "--confirm", "--analyzer", "rules")
		s.expect("Approve? (")
		s.enter("n")
		s.expect("Reason for the agent")
		s.enter("")
		s.expect("— rejected")
		s.ends(cli.ExitRejected)
	})
	t.Run("no with a word", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, llmtest.Script(sh("touch made"), done("All right.")))
		s := d.sit("run", "go", "--confirm")
		s.expect(question)
		s.enter("yes please") // is no answer
		s.expect("one of the letters")
		s.expect(question)
		s.enter("n it is not needed")
		s.expect("All right.")
		s.ends(cli.ExitDone)
		if d.exists("made") {
			t.Error("it was done all the same")
		}
		holds(t, d.lastTold(), "it is not needed")
	})
	t.Run("always", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, llmtest.Script(sh("mkdir -p a"), sh("mkdir -p a"), sh("touch c"), done("All right.")))
		s := d.sit("run", "go", "--confirm")
		s.expect(question + " [y]es, [n]o, [e]dit, [a]lways execute_bash:mkdir")
		s.enter("a")
		s.expect("$ touch c") // the second one was not asked about
		s.expect(question)
		s.press(ctrlD)
		s.expect("— rejected")
		out := s.ends(cli.ExitRejected)
		if !d.exists("a") || d.exists("c") || strings.Count(out, question) != 2 {
			t.Errorf("%s", out)
		}
	})
	t.Run("edit in a line", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, llmtest.Script(sh("touch wrong"), done("All right.")))
		s := d.sit("run", "go", "--confirm")
		s.expect(question)
		s.enter("e")
		s.expect("New command:")
		s.enter("touch right")
		s.expect("approved with changes:")
		s.expect("$ touch right")
		s.expect("— finished")
		s.ends(cli.ExitDone)
		if d.exists("wrong") || !d.exists("right") {
			t.Error("what was written is not what was done")
		}
	})
	t.Run("edit in an editor", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, llmtest.Script(sh("touch wrong"), done("All right.")))
		d.env = append(d.env, "EDITOR=sed -i s/wrong/right/")
		s := d.sit("run", "go", "--confirm")
		s.expect(question)
		s.enter("e")
		s.expect("— finished")
		s.ends(cli.ExitDone)
		if d.exists("wrong") || !d.exists("right") {
			t.Error("what was written is not what was done")
		}
	})
	t.Run("nothing is hidden", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, llmtest.Script(sh(strings.Repeat("true\n", 30)+"touch made"), done("no")))
		s := d.sit("run", "go", "--confirm")
		s.expect("  touch made")
		s.expect(question)
		s.press(ctrlD)
		s.ends(cli.ExitRejected)
	})
}

// Ctrl-C pauses after the step, and interrupts it when pressed again; a message
// sends the agent on; another Ctrl-C ends.
func TestInterrupting(t *testing.T) {
	t.Parallel()
	d := newDesk(t, llmtest.Script(sh("echo begun; while :; do read -t 1 x <> /dev/zero; done"), llmtest.Reply{Text: "words that go on", Break: llmtest.Hang}))
	s := d.sit("run", "go")
	s.expect("  begun")
	twice := func() {
		s.press(ctrlC)
		s.expect("Ctrl-C again to interrupt")
		s.press(ctrlC)
	}
	twice()
	s.expect("paused")
	s.expect("Ctrl-C to quit:")
	s.enter("do something else")
	s.expect("words")
	holds(t, d.lastTold(), "do something else")
	twice()
	s.expect("Ctrl-C to quit:")
	s.enter("") // as before
	s.expect("words")
	twice()
	s.expect("Ctrl-C to quit:")
	s.press(ctrlC)
	s.expect("— interrupted")
	s.ends(cli.ExitInterrupted)
	d.clean()
}

// What the agent asks is answered at the prompt.
func TestAnswering(t *testing.T) {
	t.Parallel()
	d := newDesk(t, llmtest.Script(llmtest.Reply{Text: "Which colour?"}, llmtest.Reply{Text: "Blue it is."}))
	s := d.sit("run", "paint it")
	s.expect("Which colour?")
	s.expect("Reply (Enter to finish):")
	s.enter("blue")
	s.expect("Blue it is.")
	holds(t, d.lastTold(), "blue")
	s.expect("Reply (Enter to finish):")
	s.enter("")
	s.expect("— done")
	s.ends(cli.ExitDone)
}

// Whatever a model or a program says, the terminal is only told what we tell it.
func TestTheTerminalIsNotTouched(t *testing.T) {
	t.Parallel()
	evil := "\x1b]0;pwned\x07\x1b[2J\u202egnp.exe\u009b31m"
	script := func() func(llmtest.Asked) llmtest.Reply {
		first := sh(`printf '\033]0;pwned\007\033[2Jfrom a program\n'`)
		first.Text, first.Fragment = "say "+evil, 3
		return llmtest.Script(first, llmtest.Reply{Calls: []llm.Call{{ID: "x", Name: "tool" + evil, Args: []byte(`{}`)}}}, done("done "+evil))
	}
	for name, env := range map[string]string{"colours": "NO_COLOR=", "no colours": "NO_COLOR=1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, script())
			d.env = append(d.env, env)
			s := d.sit("run", "go "+evil)
			s.expect("— finished")
			out := s.ends(cli.ExitDone)
			holds(t, out, "␛]0;pwned␇␛[2Jfrom a program")
			rest := out
			for _, ours := range []string{"\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m", "\r\x1b[K"} {
				rest = strings.ReplaceAll(rest, ours, "")
			}
			if strings.ContainsAny(rest, "\x1b\a\u202e\u009b") {
				t.Errorf("%q", rest)
			}
			if coloured := strings.Contains(out, "\x1b["); coloured != (env == "NO_COLOR=") {
				t.Errorf("coloured: %v\n%q", coloured, out)
			}
		})
	}
}

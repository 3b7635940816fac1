package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"deckhand/internal/cli"
	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
)

// A session from the first task to the next day: streaming, a change that is approved, the task list, the
// status line, the list of sessions, and its continuation.
func TestSession(t *testing.T) {
	t.Parallel()
	plan := calling("task_tracker", map[string]any{"command": "plan", "task_list": []map[string]any{{"id": "1", "title": "Write the file", "status": "in_progress"}, {"id": "2", "title": "Read it", "status": "todo"}}})
	plan.Text = "I will **write** the file first."
	replies := make(chan llmtest.Reply, 8)
	d := newDesk(t, func(llmtest.Asked) llmtest.Reply { return <-replies })
	edit := calling("str_replace_editor", map[string]any{"command": "create", "path": filepath.Join(d.dir, "made.txt"), "file_text": "one\ntwo\n"})
	for _, r := range []llmtest.Reply{plan, edit, done("The file is written.")} {
		replies <- r
	}
	s := d.session(80, 24, "--confirm")
	s.shows("Type a task", "> Describe a task", "openai/gpt-4o · $0.00 · always asks")
	s.enter("write made.txt")
	s.expect("> write made.txt")
	s.shows("\n\nI will write the file first.\n• tasks\n  [>] Write the file")
	s.shows("made.txt", "+one", "+two", "Approve? (risk unknown) [y]es, [n]o, [e]dit")
	s.enter("perhaps")
	s.shows("type one of the letters")
	s.enter("/status")
	s.shows("approvals: ", "Approve?")
	s.enter("yes")
	s.expect("The file is written.")
	fits(t, s.shows("> Describe a task", "openai/gpt-4o", "context"), 80)
	if !d.exists("made.txt") {
		t.Error("the change was not made")
	}
	s.press(ctrlD)
	s.expect("Continue with: deckhand -c")
	s.ends(cli.ExitDone)
	if !s.cooked() {
		t.Error("the terminal is not as it was")
	}

	_, listed, _ := d.finish(d.command("list", "--data-dir", d.data))
	holds(t, listed, "write made.txt", "("+cli.Short(d.dir)+")")

	replies <- done("I remember.")
	s = d.session(80, 24, "-c")
	s.expect("> write made.txt")
	s.expect("The file is written.")
	s.shows("> Describe a task")
	s.press("\x1b[A") // the prompt from before
	s.shows("> write made.txt")
	s.press(ctrlC)
	s.enter("do you remember?")
	s.expect("I remember.")
	holds(t, string(d.server.Asked()[len(d.server.Asked())-1].Body), "write made.txt", "do you remember?")
	s.enter("/quit")
	s.ends(cli.ExitDone)
}

// One key never approves a call with high risk, and what was being typed is never taken for the answer.
func TestSessionAsksAboutRisk(t *testing.T) {
	t.Parallel()
	proceed := make(chan struct{})
	d := newDesk(t, nil)
	script := llmtest.Script(sh("echo looking"), sh("rm -rf kept"), done("Gone."))
	d.server = llmtest.New(t, func(a llmtest.Asked) llmtest.Reply {
		if len(d.server.Asked()) == 2 {
			<-proceed
		}
		return script(a)
	})
	if err := os.WriteFile(filepath.Join(d.dir, "kept"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s := d.session(80, 24)
	s.shows("asks when risky")
	s.enter("delete it")
	s.expect("$ echo looking") // low risk is not asked about
	s.press("y")               // a message that was begun
	s.shows("> y")
	close(proceed)
	s.shows("$ rm -rf kept", "Approve? (HIGH RISK) yes, [n]o, [e]dit")
	s.press("\r")
	s.shows("type the whole word yes")
	s.enter("y")
	s.shows("type the whole word yes")
	if !d.exists("kept") {
		t.Fatal("one key approved a call with high risk")
	}
	s.enter("yes")
	s.expect("Gone.")
	s.shows("> y") // the message is still there
	if d.exists("kept") {
		t.Error("the approved call was not made")
	}
	s.press(ctrlC + ctrlD)
	s.ends(cli.ExitDone)
}

// The program is killed in the middle of a command. The session goes on where it was: nothing is lost, and
// nothing is done twice.
func TestSessionContinuesAfterKill(t *testing.T) {
	t.Parallel()
	for _, driver := range []string{"host", "local"} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			if driver == "local" {
				needLocal(t)
			}
			d := newDesk(t, llmtest.Script(calling("execute_bash", map[string]any{"timeout": 300,
				"command": "echo begun >> marks; until test -e go; do read -t 0.1 x <> <(:); done; echo ended >> marks; echo the output"}), done("All done.")))
			marks := func() string {
				text, _ := os.ReadFile(filepath.Join(d.dir, "marks"))
				return string(text)
			}
			s := d.session(80, 24, "--sandbox", driver, "--yes")
			s.shows("Describe a task")
			s.enter("run the long command")
			until(t, "the command runs", func() bool { return marks() == "begun\n" })
			if err := s.cmd.Process.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			s.ends(-1)
			s = d.session(80, 24, "--sandbox", driver, "--yes", "-c")
			s.expect("> run the long command")
			s.shows("Esc interrupts")
			if err := os.WriteFile(filepath.Join(d.dir, "go"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			s.expect("the output")
			s.expect("All done.")
			s.shows("Describe a task")
			s.press(ctrlD)
			out := s.ends(cli.ExitDone)
			if marks() != "begun\nended\n" || len(d.server.Asked()) != 2 || strings.Count(out, "> run the long command") != 1 {
				t.Errorf("marks %q, %d model calls:\n%s", marks(), len(d.server.Asked()), out)
			}
		})
	}
}

// Ctrl-C pauses, interrupts and quits; Esc interrupts. A message lets the agent continue.
func TestSessionIsInterrupted(t *testing.T) {
	t.Parallel()
	endless := func() llmtest.Reply { // also on a busy machine: without a timeout, the tool reports after ten silent seconds
		return calling("execute_bash", map[string]any{"command": "echo begun; while :; do read -t 1 x <> /dev/zero; done", "timeout": 600})
	}
	d := newDesk(t, llmtest.Script(endless(), endless(), done("Something else.")))
	s := d.session(80, 24, "--yes")
	s.shows("Describe a task")
	s.enter("go")
	s.expect("  begun")
	s.press(ctrlC)
	s.shows("Ctrl-C again to interrupt", "pausing after this step")
	s.press(ctrlC)
	s.shows("Paused. Enter continues")
	s.press("\r")
	s.expect("$ echo begun")
	s.expect("  begun")
	s.shows("Esc interrupts")
	s.press("\x1b")
	s.shows("Paused. Enter continues")
	s.enter("do something else")
	s.expect("Something else.")
	holds(t, string(d.server.Asked()[2].Body), "do something else")
	s.shows("Describe a task")
	s.press(ctrlC)
	s.shows("Ctrl-C again to quit")
	s.press(ctrlC)
	s.ends(cli.ExitDone)
}

// A signal restores the terminal, and the session is kept.
func TestSessionIsTerminated(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]os.Signal{"terminated": syscall.SIGTERM, "hung up": syscall.SIGHUP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, llmtest.Script(llmtest.Reply{Text: "words that go on", Break: llmtest.Hang}))
			s := d.session(80, 24)
			s.shows("Describe a task")
			s.enter("go")
			s.shows("words")
			if s.cooked() {
				t.Error("the terminal is not drawn on")
			}
			if err := s.cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			out := s.ends(cli.ExitDone)
			if !s.cooked() || !strings.Contains(out, "\x1b[?2004l") {
				t.Errorf("the terminal is not as it was: %q", out)
			}
			_, listed, _ := d.finish(d.command("list", "--data-dir", d.data))
			holds(t, listed, "go (")
		})
	}
}

// Prompts have several lines, commands and files are completed, and the screen follows its size.
func TestSessionPrompt(t *testing.T) {
	t.Parallel()
	d := newDesk(t, llmtest.Script(llmtest.Reply{Text: "Seen."}, llmtest.Reply{Text: "Again."}))
	for _, name := range []string{"wheel.py", "other.txt", "secret.env", ".gitignore", "my notes.md"} {
		if err := os.WriteFile(filepath.Join(d.dir, name), []byte("*.env\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := d.session(40, 16)
	fits(t, s.shows("> Type a task", "openai/gpt-4o"), 40)
	s.press("first\x1b\rsecond") // Alt-Enter
	s.shows("> first", "  second")
	s.press("\\\rlook at @whe")
	s.shows("❯ @wheel.py")
	s.press("\t")
	s.shows("look at @wheel.py")
	s.press("\x1b[200~ and\r\n\tthis\x1b[201~") // pasted lines are not sent, and tabs are kept
	s.shows("      this")
	s.press(" @my")
	s.shows(`❯ @"my notes.md"`)
	s.press("\t")
	s.shows(`this @"my notes.md"`)
	s.resize(100, 30)
	s.shows("look at @wheel.py  and", cli.Short(d.dir))
	s.press("\r")
	s.expect("Seen.")
	holds(t, string(d.server.Asked()[0].Body), `first\nsecond\nlook at @wheel.py  and\n\tthis @\"my notes.md\"`)
	s.press("/mo")
	s.shows("❯ /model")
	s.press("\t")
	s.enter("")
	s.shows("model: openai/gpt-4o; change it with")
	s.enter("/modle x")
	s.shows("unknown command /modle; did you mean /model?")
	s.enter("/model nope")
	s.shows(`"nope" is not a model: use provider/model`)
	s.enter("/etc/hosts is a path")
	s.expect("Again.")
	s.enter("/diff")
	s.enter("/new")
	s.shows("new session")
	s.enter("/resume")
	s.shows("Choose a session", "first")
	s.press("\r")
	s.shows("session ", "Again.")
	s.press(ctrlD)
	s.ends(cli.ExitDone)
}

// The same session on another server, and in a terminal that cannot be drawn on.
func TestSessionElsewhere(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	d := newDesk(t, nil)
	d.env = append(d.env, "DECKHAND_KEY="+b.key)
	b.demo("scripted/demo")
	s := d.tui(80, 24, d.command("--server", b.base, "--data-dir", d.data))
	s.shows("Type a task", "scripted/demo")
	s.enter("hello")
	s.expect(`You said: "hello"`)
	s.press(ctrlD)
	s.expect("stays on the server")
	s.ends(cli.ExitDone)

	d.env = append(d.env, "TERM=dumb")
	plain := onScreen(t, d.command("--server", b.base, "--data-dir", d.data, "-c"))
	plain.expect("> ")
	plain.enter("again")
	plain.expect(`You said: "again"`)
	plain.press(ctrlD)
	if out := plain.ends(cli.ExitDone); strings.Contains(out, "\x1b") {
		t.Errorf("%q", out)
	}
}

// Without a terminal, each line is a message; what needs approval is rejected.
func TestSessionInLines(t *testing.T) {
	t.Parallel()
	d := newDesk(t, llmtest.Script(llmtest.Reply{Text: "First."}, sh("touch made"), llmtest.Reply{Text: "Third."}))
	cmd := d.command(d.args("session", "--confirm")...)
	cmd.Stdin = strings.NewReader("one\ntwo \\\nlines\n/status\n")
	code, out, errs := d.finish(cmd)
	if code != cli.ExitRejected || d.exists("made") { // that of the last turn
		t.Errorf("%d %s", code, errs)
	}
	holds(t, out, "First.", "$ touch made", "there is no terminal to ask on", "approvals: always asks")
	holds(t, string(d.server.Asked()[1].Body), `two \nlines`)
	d.leavesNothing()
}

// Without a terminal, the exit code is that of the last turn.
func TestSessionInLinesFails(t *testing.T) {
	t.Parallel()
	d := newDesk(t, llmtest.Script(llmtest.Reply{Text: "First."}, llmtest.Reply{Status: 401, Code: "invalid_api_key", Message: "bad key"}))
	cmd := d.command(d.args("session")...)
	cmd.Stdin = strings.NewReader("one\ntwo\n/quit\n")
	if code, out, errs := d.finish(cmd); code != cli.ExitError || !strings.Contains(out, "First.") {
		t.Errorf("%d %s%s", code, out, errs)
	}
	d.leavesNothing()
}

// Without a model, one screen says what to do, and offers the demo.
func TestSessionWithoutModel(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	d.env = []string{"TERM=xterm", "NO_COLOR=1"}
	d.env = append(d.env, "LLM_API_KEY=", "DECKHAND_LLM_API_KEY=", "ANTHROPIC_API_KEY=", "OPENAI_API_KEY=", "GEMINI_API_KEY=")
	args := append([]string{"--data-dir", d.data}, plainSandbox(t, nil)...)
	code, _, errs := d.finish(d.command(args...))
	if code != cli.ExitUsage {
		t.Errorf("%d", code)
	}
	holds(t, errs, "export ANTHROPIC_API_KEY", "deckhand --model scripted/demo")
	if n := strings.Count(errs, "\n"); n > 23 {
		t.Errorf("%d lines are more than a screen", n)
	}
	s := d.tui(80, 24, d.command(args...))
	s.shows("Start the demo now? [y/N]")
	s.enter("y")
	s.shows("Describe a task")
	s.enter("hello")
	s.expect(`You said: "hello"`)
	s.press(ctrlD)
	if out := s.ends(cli.ExitDone); regexp.MustCompile(`\x1b\[[0-9]*m`).MatchString(out) {
		t.Errorf("there are colours: %q", out)
	}
}

// Plan mode, custom commands, undo and redo of a turn with its files, and /compact.
func TestSessionCommands(t *testing.T) {
	t.Parallel()
	needLocal(t)
	d := newDesk(t, nil)
	if err := os.MkdirAll(filepath.Join(d.dir, ".deckhand", "commands"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"greet": "---\ndescription: Greet someone\n---\nGreet $1 warmly.", "review": "Our review."} {
		if err := os.WriteFile(filepath.Join(d.dir, ".deckhand", "commands", name+".md"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d.server = llmtest.New(t, func(a llmtest.Asked) llmtest.Reply {
		last := a.Messages[len(a.Messages)-1]
		switch {
		case strings.Contains(a.System, "memory of a software agent"):
			return llmtest.Reply{Text: "THE SUMMARY"}
		case last.Role == llm.ToolResult:
			return llmtest.Reply{Text: "Carried out."}
		case strings.Contains(last.Text, "plan is approved"):
			return sh("echo " + map[bool]string{true: "edited", false: "as it was"}[strings.Contains(last.Text, "two steps")] + " > made.txt")
		case strings.Contains(last.Text, "Greet"):
			return llmtest.Reply{Text: "Hello " + last.Text}
		}
		return llmtest.Reply{Text: "1. Write made.txt"}
	})
	s := d.session(80, 30, "--sandbox", "local", "--yes")
	s.shows("Describe a task")
	s.enter("/undo")
	s.shows("/undo needs a session")
	s.press("/gr")
	s.shows("❯ /greet", "Greet someone")
	s.press("\t")
	s.enter("Ada")
	s.expect("Hello Greet Ada warmly.")
	s.enter("/commands")
	s.shows("/repo:review", "/review [focus]")
	s.enter("/plan")
	s.shows("plan mode on", "openai/gpt-4o", "· plan mode")
	s.enter("/plan write a file")
	s.shows("1. Write made.txt", "/plan approve to carry out the plan")
	if d.exists("made.txt") || !strings.Contains(string(d.server.Asked()[len(d.server.Asked())-1].Body), "plan") {
		t.Error("plan mode was not on")
	}
	s.enter("/plan edit")
	s.shows("Edit the plan", "> 1. Write made.txt")
	s.enter(" in two steps")
	s.expect("Carried out.")
	s.shows("never asks", "> Describe a task")
	made := func() string {
		text, _ := os.ReadFile(filepath.Join(d.dir, "made.txt"))
		return string(text)
	}
	if made() != "edited\n" {
		t.Errorf("the edited plan was not carried out: %q", made())
	}
	s.enter("/undo")
	s.shows("restored", "─\n> The plan is approved with changes") // in the prompt, not only in the history
	if d.exists("made.txt") {
		t.Error("the file was not restored")
	}
	s.press(ctrlC)
	s.enter("/redo")
	s.shows("undid the restore")
	if made() != "edited\n" {
		t.Errorf("after /redo: %q", made())
	}
	s.enter("/redo")
	s.shows("nothing to redo")
	s.enter("/compact keep the file names")
	s.shows("compacting the history", "replaced with a summary")
	s.enter("/compact")
	s.shows("nothing to compact yet")
	s.press(ctrlD)
	s.ends(cli.ExitDone)
}

// In a terminal that cannot be drawn on, the reason of an approval comes before the question. A session is continued with its own
// model, also by run.
func TestSessionKeepsItsModel(t *testing.T) {
	t.Parallel()
	d := newDesk(t, llmtest.Script(sh("rm -rf kept"), llmtest.Reply{Text: "Fine."}, llmtest.Reply{Text: "Continued."}))
	d.env = append(d.env, "TERM=dumb")
	plain := onScreen(t, d.command(d.args("session")...))
	plain.expect("> ")
	plain.enter("/plan")
	plain.expect("plan mode on")
	plain.enter("/plan off")
	plain.expect("plan mode off")
	plain.enter("clean up")
	plain.expect("$ rm -rf kept")
	plain.expect("? It deletes files")
	plain.expect("HIGH RISK")
	plain.enter("n keep it")
	plain.expect("Fine.")
	plain.press(ctrlD)
	plain.ends(cli.ExitDone)
	code, out, errs := d.finish(d.command(append([]string{"run", "--continue", "and now?", "--data-dir", d.data}, plainSandbox(t, nil)...)...))
	if code != 0 || !strings.Contains(out, "Continued.") {
		t.Errorf("%d %s %s", code, out, errs)
	}
	d.leavesNothing()
}

// In a dumb terminal, the first Ctrl-C pauses the agent, and a second one soon after it quits.
func TestSessionIsInterruptedInLines(t *testing.T) {
	t.Parallel()
	d := newDesk(t, llmtest.Script(sh("echo begun; until test -e go; do read -t 0.1 x <> <(:); done; echo ended"), done("All done.")))
	d.env = append(d.env, "TERM=dumb")
	t.Cleanup(d.leavesNothing)
	s := onScreen(t, d.command(d.args("session", "--yes")...))
	s.expect("> ")
	s.enter("go")
	s.expect("  begun")
	s.press(ctrlC)
	s.expect("Ctrl-C again to quit")
	if err := os.WriteFile(filepath.Join(d.dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s.expect("Paused. Enter continues")
	s.enter("")
	s.expect("All done.")
	s.expect("> ")
	s.press(ctrlC)
	s.expect("Ctrl-C again to quit")
	s.press(ctrlC)
	s.expect("Continue with: deckhand -c")
	if out := s.ends(cli.ExitDone); strings.Contains(out, "context canceled") || strings.Contains(out, "http://") {
		t.Errorf("%q", out)
	}
}

// A call that the user edited is shown as it ran, also when the session is continued.
func TestSessionShowsEditedCalls(t *testing.T) {
	t.Parallel()
	d := newDesk(t, llmtest.Script(sh("echo wrong > made"), done("All right.")))
	s := d.session(80, 24, "--confirm")
	s.shows("Describe a task")
	s.enter("write it")
	s.shows("$ echo wrong > made", "Approve?")
	s.enter("e")
	s.shows("Edit the call")
	s.press("\x15echo right > made\r")
	s.expect("approved with changes:")
	s.shows("$ echo right > made", "All right.", "Describe a task")
	s.press(ctrlD)
	s.ends(cli.ExitDone)
	s = d.session(80, 24, "-c")
	s.expect("approved with changes:")
	s.shows("$ echo right > made", "All right.", "Describe a task")
	s.press(ctrlD)
	s.ends(cli.ExitDone)
}

// Messages that are sent during a turn are queued: they can be edited, deleted and sent now.
func TestSessionQueue(t *testing.T) {
	t.Parallel()
	endless := "echo begun; while :; do read -t 1 x <> /dev/zero; done"
	d := newDesk(t, llmtest.Script(sh(endless), done("Read.")))
	s := d.session(80, 24, "--yes")
	s.shows("Describe a task")
	s.enter("go")
	s.expect("  begun")
	s.enter("first message")
	s.shows("Queued (", "1  first message")
	s.enter("second message")
	s.shows("2  second message")
	s.press("\x1b[A") // the last one, to edit it
	s.shows("Edit the queued message", "> second message")
	s.press(" edited\r")
	s.shows("2  second message edited", "> Message the agent")
	s.enter("third message")
	s.shows("3  third message")
	s.enter("/queue delete 1")
	s.shows("1  second message edited", "2  third message")
	s.enter("/queue send")
	s.shows("use /queue edit N")
	s.enter("/queue send 2")
	s.expect("Read.")
	now := s.shows("> third message", "> second message edited", "> Describe a task")
	if strings.Contains(now, "Queued (") || strings.Contains(now, "first message") && !strings.Contains(now, "/queue") {
		t.Errorf("still queued:\n%s", now)
	}
	body := string(d.server.Asked()[1].Body)
	holds(t, body, "third message", "second message edited")
	if strings.Contains(body, "first message") || strings.Index(body, "third message") > strings.Index(body, "second message edited") {
		t.Errorf("the model was told %s", body)
	}
	s.press(ctrlD)
	s.ends(cli.ExitDone)
}

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/cli"
	"deckhand/internal/llm/llmtest"
)

// The final answer is JSON that matches a schema, alone on standard output; the agent is asked again a few
// times, and another exit code says that it never matched.
func TestRunWithOutputSchema(t *testing.T) {
	t.Parallel()
	schema := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(schema, []byte(`{"type":"object","required":["passed"],"properties":{"passed":{"type":"boolean"}},"additionalProperties":false}`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("at the second attempt", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, llmtest.Script(llmtest.Reply{Text: "It passed."}, done("```json\n{\"passed\": true}\n```")))
		code, out, errs := d.run("run", "test it", "--output-schema", schema)
		if code != cli.ExitDone || out != "{\"passed\":true}\n" {
			t.Errorf("%d %q %s", code, out, errs)
		}
		holds(t, string(d.server.Asked()[0].Body), "A program reads your final answer", "additionalProperties")
		holds(t, string(d.server.Asked()[1].Body), "Your final answer was not accepted: it is not JSON")
		holds(t, errs, "It passed.", "— finished")
	})
	t.Run("in JSON", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, llmtest.Script(llmtest.Reply{Text: `{"passed": false}`}))
		code, out, _ := d.run("run", "test it", "--output-schema", schema, "--json")
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if code != cli.ExitDone || !strings.Contains(lines[len(lines)-1], `"output":{"passed":false}`) {
			t.Errorf("%d %s", code, lines[len(lines)-1])
		}
	})
	t.Run("never", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, func(llmtest.Asked) llmtest.Reply { return llmtest.Reply{Text: `{"passed": "yes"}`} })
		code, out, errs := d.run("run", "test it", "--output-schema", schema)
		if code != cli.ExitSchema || out != "" || len(d.server.Asked()) != 3 {
			t.Errorf("%d %q after %d calls", code, out, len(d.server.Asked()))
		}
		holds(t, errs, "does not match the schema", "— invalid answer")
	})
	t.Run("not a schema", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t, nil)
		wrong := filepath.Join(d.dir, "wrong.json")
		if err := os.WriteFile(wrong, []byte(`{"type": 5}`), 0o600); err != nil {
			t.Fatal(err)
		}
		code, _, errs := d.run("run", "test it", "--output-schema", wrong)
		if code != cli.ExitUsage || !strings.Contains(errs, "is not a JSON schema") {
			t.Errorf("%d %s", code, errs)
		}
	})
}

// A task without an argument comes from a pipe.
func TestRunReadsThePipe(t *testing.T) {
	t.Parallel()
	d := newDesk(t, llmtest.Script(done("Done.")))
	cmd := d.command(d.args("run")...)
	cmd.Stdin = strings.NewReader("the task from the pipe\n")
	if code, _, errs := d.finish(cmd); code != 0 {
		t.Fatalf("%d %s", code, errs)
	}
	holds(t, string(d.server.Asked()[0].Body), "the task from the pipe")
	cmd = d.command(d.args("run")...)
	if code, _, errs := d.finish(cmd); code != cli.ExitUsage || !strings.Contains(errs, "task missing") { // nothing is in it
		t.Errorf("%d %s", code, errs)
	}
}

// What is piped is appended to a task that is an argument. A pipe that stays open and empty is not waited for.
func TestRunAppendsThePipe(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(llmtest.Asked) llmtest.Reply { return done("Done.") })
	last := func() string { return string(d.server.Asked()[len(d.server.Asked())-1].Body) }
	cmd := d.command(d.args("run", "review this")...)
	cmd.Stdin = strings.NewReader("+ added line\n")
	if code, _, errs := d.finish(cmd); code != 0 {
		t.Fatalf("%d %s", code, errs)
	}
	holds(t, last(), `review this\n\n+ added line`)

	cmd = d.command(d.args("run", "review this")...)
	cmd.Stdin = strings.NewReader(strings.Repeat("x", 1<<20))
	if code, _, errs := d.finish(cmd); code != cli.ExitUsage || !strings.Contains(errs, "longer than 1 MiB") {
		t.Errorf("%d %s", code, errs)
	}

	name := filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(name, []byte("a task\nof a loop\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Seek(7, io.SeekStart); err != nil { // as a shell loop does
		t.Fatal(err)
	}
	cmd = d.command(d.args("run", "fix one")...)
	cmd.Stdin = file
	if code, _, errs := d.finish(cmd); code != 0 || strings.Contains(last(), "of a loop") {
		t.Errorf("%d %s", code, errs)
	}

	empty, open, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	defer empty.Close()
	cmd = d.command(d.args("run", "alone")...)
	cmd.Stdin = empty
	code, _, errs := d.finish(cmd)
	if code != 0 || !strings.Contains(errs, "continuing without it") {
		t.Errorf("%d %s", code, errs)
	}
	holds(t, last(), "alone")
}

// A kept run is a session of its folder: another run and a person can continue it.
func TestRunContinues(t *testing.T) {
	t.Parallel()
	d := newDesk(t, llmtest.Script(done("First."), done("Second."), done("Third."), done("Beside."), done(`{"n": 5}`)))
	if code, _, errs := d.run("run", "again", "--continue"); code != cli.ExitUsage || !strings.Contains(errs, "no session in this folder") {
		t.Errorf("%d %s", code, errs)
	}
	code, out, errs := d.run("run", "begin", "--keep")
	if code != 0 || !strings.Contains(out, "continue it with deckhand -c") {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	code, out, errs = d.run("run", "go on", "--continue")
	if code != 0 || strings.Contains(out, "First.") || !strings.Contains(out, "Second.") {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	holds(t, string(d.server.Asked()[1].Body), "begin", "First.", "go on")
	s := d.session(80, 24, "-c")
	s.expect("Second.")
	s.shows("Describe a task")
	s.enter("and now")
	s.expect("Third.")
	holds(t, string(d.server.Asked()[2].Body), "begin", "go on", "and now")
	s.shows("Describe a task")
	code, out, errs = d.run("run", "at the same time", "--continue") // on the server of that session
	if code != 0 || strings.Contains(out, "Third.") || !strings.Contains(out, "Beside.") {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	s.expect("Beside.") // the session is the same one
	holds(t, string(d.server.Asked()[3].Body), "and now", "at the same time")
	schema := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(schema, []byte(`{"type":"object","required":["n"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs = d.run("run", "a new one", "--keep", "--json", "--output-schema", schema)
	if lines := strings.Split(strings.TrimSpace(out), "\n"); code != 0 || !strings.Contains(lines[len(lines)-1], `"output":{"n":5}`) {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	if strings.Contains(string(d.server.Asked()[4].Body), "at the same time") {
		t.Error("the new conversation continues the old one")
	}
	if code, _, errs = d.run("run", "again", "--keep", "--max-iterations", "3"); code != cli.ExitUsage || !strings.Contains(errs, "--max-iterations cannot be used while another terminal") {
		t.Errorf("%d %s", code, errs)
	}
	s.press(ctrlD)
	s.ends(cli.ExitDone)
}

// Beside an open session, a call that needs approval is rejected without a terminal, and approved with --yes.
func TestRunBesideASessionAsks(t *testing.T) {
	t.Parallel()
	d := newDesk(t, llmtest.Script(sh("touch one"), sh("touch two"), done("Done.")))
	s := d.session(80, 24, "--confirm")
	s.shows("Describe a task")
	if code, out, errs := d.run("run", "go", "--keep"); code != cli.ExitRejected || d.exists("one") {
		t.Errorf("%d %s%s", code, out, errs)
	}
	if code, out, errs := d.run("run", "go", "--keep", "--yes"); code != cli.ExitDone || !d.exists("two") {
		t.Errorf("%d %s%s", code, out, errs)
	}
	s.press(ctrlD)
	s.ends(cli.ExitDone)
}

// A second terminal in the same folder uses the server of the first, and continues when the first is closed.
func TestSessionsShareAFolder(t *testing.T) {
	t.Parallel()
	d := newDesk(t, llmtest.Script(llmtest.Reply{Text: "One."}, llmtest.Reply{Text: "Two."}, llmtest.Reply{Text: "Three."}))
	first := d.session(80, 24)
	first.shows("Describe a task")
	first.enter("from the first")
	first.expect("One.")
	second := d.session(80, 24)
	second.shows("runs in another terminal", "Describe a task")
	second.enter("from the second")
	second.expect("Two.")
	_, listed, _ := d.finish(d.command("list", "--data-dir", d.data))
	holds(t, listed, "from the first", "from the second")
	first.press(ctrlD)
	first.ends(cli.ExitDone)
	second.enter("and on")
	second.expect("Three.")
	second.press(ctrlD)
	second.ends(cli.ExitDone)
}

// The flags of each terminal apply to its own sessions, whichever of them runs the server, and stay in force when the other
// one is closed.
func TestSessionsInAFolderHaveTheirOwnFlags(t *testing.T) {
	t.Parallel()
	d := newDesk(t, llmtest.Script(sh("rm -f one"), done("First done."), sh("echo looking"), done("Second done."), sh("echo again"), done("Third done."), sh("rm -f two"), done("Fourth done.")))
	first := d.session(80, 24, "--yes")
	first.shows("never asks")
	first.enter("from the first")
	first.expect("First done.")
	second := d.session(80, 24, "--confirm", "--budget", "3")
	second.shows("runs in another terminal", "always asks")
	second.enter("from the second")
	second.shows("$ echo looking", "Approve?")
	second.enter("yes")
	second.expect("Second done.")
	first.press(ctrlD)
	first.ends(cli.ExitDone)
	second.enter("and on")
	second.shows("$ echo again", "Approve?", "always asks")
	second.enter("yes")
	second.expect("Third done.")
	second.press(ctrlD)
	second.ends(cli.ExitDone)

	third := d.session(80, 24, "-c") // not what the flags of another terminal said
	third.shows("asks when risky")
	third.enter("and now")
	third.shows("$ rm -f two", "Approve?")
	fourth := d.session(80, 24, "--agent", "ReadOnlyAgent")
	fourth.expect("--agent cannot be used while another terminal has a session in this folder")
	fourth.ends(cli.ExitUsage)
	third.enter("yes")
	third.expect("Fourth done.")
	third.press(ctrlD)
	third.ends(cli.ExitDone)
}

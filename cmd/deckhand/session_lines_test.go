package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/cli"
	"deckhand/internal/llm/llmtest"
)

// A base URL needs a model, because the server there has models of its own: it never gets the default one of a provider.
func TestRunWithABaseURLNeedsAModel(t *testing.T) {
	t.Parallel()
	d := newDesk(t, llmtest.Script(llmtest.Reply{Text: "Hello."}))
	d.env = append(d.env, "LLM_API_KEY=", "OPENAI_API_KEY=sk-openai-key-123456")
	args := append([]string{"run", "go", "--data-dir", d.data, "--base-url", d.server.URL + "/v1"}, plainSandbox(t, nil)...)
	code, out, errs := d.finish(d.command(args...))
	if code != cli.ExitUsage || !strings.Contains(errs, "--base-url needs --model") || len(d.server.Asked()) > 0 {
		t.Errorf("%d %s%s, %d calls", code, out, errs, len(d.server.Asked()))
	}
	if code, out, errs := d.finish(d.command(append(args, "--model", "openai/x")...)); code != cli.ExitDone {
		t.Errorf("%d %s%s", code, out, errs)
	}
}

// A session cannot be continued in a new clone, so nothing is cloned.
func TestRunContinuesInNoClone(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	source := filepath.Join(t.TempDir(), "tool")
	if err := os.Mkdir(source, 0o755); err != nil {
		t.Fatal(err)
	}
	code, _, errs := d.run("run", "go", "--continue", "--repo", source)
	if code != cli.ExitUsage || !strings.Contains(errs, "--continue cannot be used with --repo") || d.exists("tool") {
		t.Errorf("%d %s", code, errs)
	}
}

// A run whose output cannot be written fails, beside an open session too.
func TestRunToAFullDisk(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(llmtest.Asked) llmtest.Reply { return done("Done.") })
	full := func(args ...string) {
		t.Helper()
		out, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Skip(err)
		}
		defer out.Close()
		var errs strings.Builder
		cmd := d.command(d.args(append([]string{"run", "go"}, args...)...)...)
		cmd.Stdout, cmd.Stderr = out, &errs
		_ = cmd.Run() // the exit code says it
		if code := cmd.ProcessState.ExitCode(); code != cli.ExitError || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%v: %d %s", args, code, errs.String())
		}
	}
	full()
	full("--json")
	d.clean()
	s := d.session(80, 24)
	s.shows("Describe a task")
	full("--keep")
	s.press(ctrlD)
	s.ends(cli.ExitDone)
}

// Without a terminal, there are no prompts. A continued session begins with its past, and with the user's messages in it.
func TestSessionInAPipe(t *testing.T) {
	t.Parallel()
	d := newDesk(t, llmtest.Script(llmtest.Reply{Text: "First."}, llmtest.Reply{Text: "Second."}))
	talk := func(input string, args ...string) string {
		t.Helper()
		cmd := d.command(d.args(append([]string{"session"}, args...)...)...)
		cmd.Stdin = strings.NewReader(input)
		code, out, errs := d.finish(cmd)
		if code != cli.ExitDone {
			t.Errorf("%d %s%s", code, out, errs)
		}
		return out
	}
	if out := talk("one\n"); strings.Contains(out, ">") || !strings.Contains(out, "First.") {
		t.Errorf("%q", out)
	}
	out := talk("two\n", "-c")
	holds(t, out, "> one", "First.", "Second.")
	if strings.Contains(out, "> two") {
		t.Errorf("%q", out)
	}
	d.leavesNothing()
}

// In a terminal that cannot be drawn on, commands report what they did, and /diff says why there is nothing to show.
func TestSessionCommandsInLines(t *testing.T) {
	t.Parallel()
	d := newDesk(t, llmtest.Script(llmtest.Reply{Text: "Ready."}, sh("echo more > made"), llmtest.Reply{Text: "Written."}))
	d.env = append(d.env, "TERM=dumb")
	t.Cleanup(d.leavesNothing)
	s := onScreen(t, d.command(d.args("session", "--sandbox", "local", "--yes")...))
	s.expect("> ")
	s.enter("hello")
	s.expect("Ready.")
	s.enter("/diff")
	s.expect("no changes yet")
	s.enter("write it")
	s.expect("Written.")
	s.enter("/diff")
	s.expect("changes appear once the workspace is a git repository")
	s.enter("/undo")
	s.expect("restored 1 file and the conversation")
	s.enter("/redo")
	s.expect("undid the restore of 1 file")
	s.enter("/resume zzz")
	s.expect("session zzz not found; list sessions with /resume")
	s.enter("/model openai/other")
	s.expect("model: openai/other")
	s.press(ctrlD)
	s.ends(cli.ExitDone)
	again := onScreen(t, d.command(d.args("session", "-c", "--sandbox", "local", "--yes")...))
	again.expect("> write it")
	again.expect("Written.")
	again.press(ctrlD)
	again.ends(cli.ExitDone)
}

// A failed run names the variable or flag to change.
func TestRunNamesWhatToChange(t *testing.T) {
	t.Parallel()
	d := newDesk(t, llmtest.Script(llmtest.Reply{Status: 401, Code: "invalid_api_key", Message: "bad key"}, sh("echo 1"), sh("echo 2")))
	code, out, _ := d.run("run", "go")
	if code != cli.ExitError || !strings.Contains(out, "Set LLM_API_KEY to a valid key and run the command again.") {
		t.Errorf("%d %s", code, out)
	}
	code, out, _ = d.run("run", "go", "--max-iterations", "1")
	if code != cli.ExitLimit || !strings.Contains(out, "Use a higher --max-iterations") {
		t.Errorf("%d %s", code, out)
	}
	d.clean()
}

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"deckhand/api"
	"deckhand/internal/cli"
	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/soak"
)

// sh is a model's call of the shell, calling one of another tool.
func sh(command string) llmtest.Reply {
	return calling("execute_bash", map[string]any{"command": command})
}

func calling(name string, args map[string]any) llmtest.Reply {
	raw, _ := json.Marshal(args)
	return llmtest.Reply{Calls: []llm.Call{{ID: fmt.Sprintf("call_%s_%d", name, callNumber.next()), Name: name, Args: raw}}}
}

// numbers counts.
type numbers chan int

func (n numbers) next() int {
	v := <-n
	n <- v + 1
	return v
}

var callNumber = func() numbers { n := make(numbers, 1); n <- 1; return n }()

func done(message string) llmtest.Reply { return calling("finish", map[string]any{"message": message}) }

// desk is where a person sits: a folder, and a model to ask.
type desk struct {
	t      *testing.T
	dir    string
	data   string
	server *llmtest.Server
	env    []string
}

func newDesk(t *testing.T, answer func(llmtest.Asked) llmtest.Reply) *desk {
	t.Helper()
	soak.NotShort(t, "runs an agent in a process of its own")
	data := filepath.Join(t.TempDir(), "data")
	return &desk{t: t, dir: t.TempDir(), data: data, server: llmtest.New(t, answer), env: []string{"LLM_API_KEY=sk-test-key-1234567890", "EDITOR=", "VISUAL=", "TERM=xterm", "NO_COLOR="}}
}

// args are those of every run at this desk.
func (d *desk) args(args ...string) []string {
	all := append([]string{args[0], "--data-dir", d.data, "--model", "openai/gpt-4o", "--base-url", d.server.URL + "/v1"}, plainSandbox(d.t, args[1:])...)
	return all
}

func (d *desk) command(args ...string) *exec.Cmd {
	cmd := process(args...)
	cmd.Dir = d.dir
	cmd.Env = append(cmd.Env, d.env...)
	return cmd
}

// run runs the program to its end, without a terminal.
func (d *desk) run(args ...string) (code int, stdout, stderr string) {
	d.t.Helper()
	return d.finish(d.command(d.args(args...)...))
}

func (d *desk) finish(cmd *exec.Cmd) (code int, stdout, stderr string) {
	d.t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		d.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// clean checks that a run left nothing behind but its folder.
func (d *desk) clean() {
	d.t.Helper()
	left, err := os.ReadDir(filepath.Join(d.data, "run"))
	if err != nil || len(left) > 0 {
		d.t.Errorf("left behind: %v, %v", left, err)
	}
}

func holds(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
}

// A task is done in the folder, by commands and edits; the files are the caller's.
func TestRunWorksInTheFolder(t *testing.T) {
	t.Parallel()
	for _, driver := range []string{"host", "local"} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			root := "/workspace"
			replies := make(chan llmtest.Reply, 8)
			d := newDesk(t, func(llmtest.Asked) llmtest.Reply { return <-replies })
			if driver == "host" {
				root = d.dir
			}
			if err := os.WriteFile(filepath.Join(d.dir, "notes.txt"), []byte("one\ntwo\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			first := sh("cat notes.txt; mkdir made; echo new > made/file; seq 40; exit 3")
			first.Text = "I look first."
			replies <- first
			replies <- calling("str_replace_editor", map[string]any{"command": "str_replace", "path": root + "/notes.txt", "old_str": "two", "new_str": "three"})
			replies <- calling("task_tracker", map[string]any{"command": "plan", "task_list": []any{map[string]any{"id": "1", "title": "Look", "status": "done"}}})
			replies <- done("It is done.")
			code, out, errs := d.run("run", "change the notes", "--sandbox", driver, "--runner-path", withSandbox(t, driver)[3])
			if code != 0 {
				t.Fatalf("%d\n%s%s", code, out, errs)
			}
			holds(t, out, "I look first.", "$ cat notes.txt; mkdir made", "  one\n  two\n", "lines not shown", "  40\n", "exit code 3", "• edit "+root+"/notes.txt", "  -two\n", "  +three\n",
				"  [x] Look\n", "It is done.\n", "— finished · 4 model calls · ")
			if strings.Contains(out, "\x1b") || strings.Contains(out, "\r") {
				t.Errorf("escape sequences without a terminal: %q", out)
			}
			for name, want := range map[string]string{"notes.txt": "one\nthree\n", "made/file": "new\n"} {
				got, err := os.ReadFile(filepath.Join(d.dir, name))
				if err != nil || string(got) != want {
					t.Errorf("%s: %q, %v", name, got, err)
				}
			}
			info, err := os.Stat(filepath.Join(d.dir, "made", "file"))
			if err != nil || int(info.Sys().(*syscall.Stat_t).Uid) != os.Getuid() {
				t.Errorf("%+v, %v", info, err)
			}
			d.clean()
		})
	}
}

// With --json every line is an event, and the last one is the result.
func TestRunJSON(t *testing.T) {
	t.Parallel()
	d := newDesk(t, llmtest.Script(sh("echo hi"), done("Done.")))
	code, out, errs := d.run("run", "say hi", "--json")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var last struct {
		Result         string `json:"result"`
		ExitCode       *int   `json:"exit_code"`
		ConversationID string `json:"conversation_id"`
	}
	for i, line := range lines {
		var event map[string]any
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("line %d: %v: %s", i, err, line)
		}
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || code != 0 || last.Result != "finished" || *last.ExitCode != 0 || len(last.ConversationID) != 32 {
		t.Errorf("%d %+v %v %s", code, last, err, errs)
	}
	holds(t, out, `"kind":"tool_called"`, `"kind":"tool_returned"`, `"name":"finish"`, `"state":"finished"`)
}

func TestRunExitCodes(t *testing.T) {
	t.Parallel()
	forever := func(llmtest.Asked) llmtest.Reply { return sh(fmt.Sprintf("echo %d", callNumber.next())) }
	limited := func(llmtest.Asked) llmtest.Reply {
		return llmtest.Reply{Status: 429, Message: "slow down", RetryAfter: "0.01"}
	}
	for name, c := range map[string]struct {
		answer func(llmtest.Asked) llmtest.Reply
		args   []string
		code   int
		says   string
	}{
		"an answer":         {llmtest.Script(llmtest.Reply{Text: "It is blue."}), []string{"what colour?"}, cli.ExitDone, "It is blue.\n— done"},
		"a wrong key":       {llmtest.Script(llmtest.Reply{Status: 401, Code: "invalid_api_key", Message: "bad key"}), []string{"go"}, cli.ExitError, "— error"},
		"a rate limit":      {limited, []string{"go"}, cli.ExitError, "Rate limited by the provider: slow down. Run the command again.\n— error"},
		"iterations":        {forever, []string{"go", "--max-iterations", "2"}, cli.ExitLimit, "The limit of 2 model calls"},
		"money":             {forever, []string{"go", "--budget", "0.000001"}, cli.ExitLimit, "— limit reached"},
		"time":              {llmtest.Script(llmtest.Reply{Text: "some words are said and then", Break: llmtest.Hang}), []string{"go", "--timeout", "500ms"}, cli.ExitLimit, "time limit reached"},
		"a reason: time":    {llmtest.Script(llmtest.Reply{Text: "some words are said and then", Break: llmtest.Hang}), []string{"go", "--timeout", "500ms", "--json"}, cli.ExitLimit, `"reason":"time limit reached"`},
		"a reason: no":      {llmtest.Script(sh("echo hi > made"), done("no")), []string{"go", "--confirm", "--json"}, cli.ExitRejected, `"reason":"a tool call was rejected`},
		"needs approval":    {llmtest.Script(sh("echo hi > made"), done("no")), []string{"go", "--confirm"}, cli.ExitRejected, "needs approval"},
		"yes to all":        {llmtest.Script(sh("echo hi"), done("Yes.")), []string{"go", "--yes"}, cli.ExitDone, "— finished"},
		"stuck":             {func(llmtest.Asked) llmtest.Reply { return sh("false") }, []string{"go"}, cli.ExitStuck, "stuck in a loop"},
		"too little memory": {nil, []string{"go", "--sandbox-memory", "5"}, cli.ExitUsage, "at least 32M"},
		"no task":           {nil, []string{" "}, cli.ExitUsage, "task missing"},
		"no such folder":    {nil, []string{"go", "--dir", "none"}, cli.ExitUsage, "--dir"},
		"the data's folder": {nil, []string{"go", "--sandbox", "local", "--dir", "/"}, cli.ExitUsage, "change to the folder of a project"},
		"a branch alone":    {nil, []string{"go", "--branch", "b"}, cli.ExitUsage, "--repo"},
		"no such agent":     {nil, []string{"go", "--agent", "Nobody"}, cli.ExitUsage, "--agent"},
		"no calls at all":   {nil, []string{"go", "--max-iterations", "0"}, cli.ExitUsage, "from 1 to"},
		"an unknown flag":   {nil, []string{"go", "--fly"}, cli.ExitUsage, "--fly"},
		"not an image":      {nil, []string{"go", "--image", os.Args[0]}, cli.ExitUsage, "is not an image"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, c.answer)
			code, out, errs := d.run(append([]string{"run"}, c.args...)...)
			if code != c.code || !strings.Contains(out+errs, c.says) {
				t.Errorf("%d, want %d and %q:\n%s%s", code, c.code, c.says, out, errs)
			}
			if strings.Contains(out+errs, "sk-test-key") {
				t.Errorf("the key is shown:\n%s%s", out, errs)
			}
			if code != cli.ExitUsage {
				d.clean()
			}
		})
	}
	if help := flat(must(t, "run", "--help")); !strings.Contains(help, "130 interrupted") {
		t.Errorf("the exit codes are not explained: %s", help)
	}
}

// Without a terminal, a signal ends it at once.
func TestRunIsInterrupted(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 1)
	d := newDesk(t, func(llmtest.Asked) llmtest.Reply {
		asked <- struct{}{}
		return llmtest.Reply{Text: "some words are said and then", Break: llmtest.Hang}
	})
	cmd := d.command(d.args("run", "go")...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != cli.ExitInterrupted || !strings.Contains(out.String(), "— interrupted") {
		t.Errorf("%d %s", code, out.String())
	}
	d.clean()
}

// Who reads the output may go away. What was begun is ended all the same, and nothing left behind.
func TestRunLosesItsReader(t *testing.T) {
	t.Parallel()
	for name, more := range map[string][]string{"plain": nil, "json": {"--json"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, llmtest.Script(sh("while :; do echo more; sleep 0.1; done")))
			cmd := d.command(d.args(append([]string{"run", "go"}, more...)...)...)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			var errs bytes.Buffer
			cmd.Stderr = &errs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			out.Close()
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != cli.ExitInterrupted || strings.Count(errs.String(), "\n") > strings.Count(errs.String(), "· model ") {
				t.Errorf("%d %s", code, &errs)
			}
			d.clean()
		})
	}
}

// Without a key nothing is begun, and the demo needs none.
func TestRunWithoutAKey(t *testing.T) {
	t.Parallel()
	d := newDesk(t, nil)
	d.env = append(d.env, "LLM_API_KEY=", "DECKHAND_LLM_API_KEY=")
	flags := append([]string{"--data-dir", d.data}, withSandbox(t, "host")...)
	code, _, errs := d.finish(d.command(append([]string{"run", "go"}, flags...)...))
	if code != cli.ExitUsage || !strings.Contains(errs, "no model is chosen") {
		t.Errorf("%d %s", code, errs)
	}
	code, out, errs := d.finish(d.command(append([]string{"run", "hello there", "--model", "scripted/demo"}, flags...)...))
	if code != 0 || !strings.Contains(out, "[scripted demo model]") || !strings.Contains(errs, "model scripted/demo, from --model\n") {
		t.Errorf("%d %s%s", code, out, errs)
	}
}

// The stored settings are used beside the server that holds them, but their key
// goes to no other host.
func TestRunUsesStoredSettings(t *testing.T) {
	t.Parallel()
	other := llmtest.New(t, llmtest.Script(llmtest.Reply{Text: "From elsewhere."}))
	d := newDesk(t, llmtest.Script(llmtest.Reply{Text: "From the stored model."}))
	b := serve(t, d.data)
	if _, err := b.client.StoreSettings(t.Context(), api.SettingsInput{LLMModel: api.Some("openai/gpt-4o"), LLMAPIKey: api.Some("sk-stored-key-123"), LLMBaseURL: api.Some(d.server.URL + "/v1")}); err != nil {
		t.Fatal(err)
	}
	d.env = append(d.env, "LLM_API_KEY=")
	args := append([]string{"run", "go", "--data-dir", d.data}, withSandbox(t, "host")...)
	code, out, errs := d.finish(d.command(args...))
	if code != 0 || !strings.Contains(out, "From the stored model.") {
		t.Errorf("%d %s%s", code, out, errs)
	}
	if asked := d.server.Asked(); len(asked) != 1 || asked[0].Header.Get("Authorization") != "Bearer sk-stored-key-123" {
		t.Errorf("%d calls", len(asked))
	}
	_, _, _ = d.finish(d.command(append(args, "--base-url", other.URL+"/v1")...))
	for _, a := range other.Asked() {
		if strings.Contains(a.Header.Get("Authorization"), "stored") {
			t.Error("the stored key went to another host")
		}
	}
}

// A repository is cloned below the folder and worked in; instructions and
// images reach the model.
func TestRunInAClone(t *testing.T) {
	t.Parallel()
	d := newDesk(t, llmtest.Script(sh("cat README; git branch --show-current"), done("Read.")))
	source := filepath.Join(t.TempDir(), "tool.git")
	for _, args := range [][]string{{"init", "-q", "-b", "main", source}, {"-C", source, "commit", "-q", "--allow-empty", "-m", "x"}, {"-C", source, "checkout", "-q", "-b", "next"}} {
		git := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
		if text, err := git.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	pixel := filepath.Join(t.TempDir(), "pixel.gif")
	if err := os.WriteFile(pixel, []byte("GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff!\xf9\x04\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := d.run("run", "read it", "--repo", source, "--branch", "next", "--instructions", "Be brief, please.", "--image", pixel)
	if code != 0 || !strings.Contains(out, "next") {
		t.Errorf("%d %s%s", code, out, errs)
	}
	if _, err := os.Stat(filepath.Join(d.dir, "tool", ".git")); err != nil {
		t.Error(err)
	}
	if asked := d.server.Asked(); len(asked) == 0 || !strings.Contains(string(asked[0].Body), "Be brief, please.") || !strings.Contains(string(asked[0].Body), "data:image/gif;base64,") {
		t.Errorf("%d calls; the instructions or the image are missing", len(asked))
	}
	if code, _, errs := d.run("run", "again", "--repo", source); code != cli.ExitError || !strings.Contains(errs, "cannot clone") {
		t.Errorf("over a clone: %d %s", code, errs)
	}
}

// What a killed run leaves behind is removed by the next one, its sandbox too.
func TestRunAfterAKilledOne(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 8)
	answer := llmtest.Script(sh("echo up"), llmtest.Reply{Text: "words that go on", Break: llmtest.Hang}, llmtest.Reply{Text: "Well."})
	d := newDesk(t, func(a llmtest.Asked) llmtest.Reply { asked <- struct{}{}; return answer(a) })
	cmd := d.command(d.args("run", "go")...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	<-asked
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	found, err := filepath.Glob(filepath.Join(d.data, "run", "*", "boxes", "*", "process.json"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	var runner struct{ PID int }
	b, err := os.ReadFile(found[0])
	if err == nil {
		err = json.Unmarshal(b, &runner)
	}
	if err != nil || syscall.Kill(runner.PID, 0) != nil {
		t.Fatalf("the runner does not run: %v %s", err, b)
	}
	if code, out, errs := d.run("run", "again"); code != 0 || !strings.Contains(out, "Well.") {
		t.Errorf("%d %s%s", code, out, errs)
	}
	d.clean()
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", runner.PID)); err == nil && !strings.Contains(string(stat), ") Z ") {
		t.Errorf("the runner still runs: %s", stat)
	}
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/llm"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/sandbox/docker/dockertest"
	"deckhand/internal/soak"
	"deckhand/web"
)

// needPage leaves a test out where the page is not built, or says so where it has to be.
func needPage(t *testing.T) {
	t.Helper()
	if _, err := fs.Stat(web.Files(), "index.html"); err != nil {
		dockertest.Missing(t, "the web page is not built; make web builds it")
	}
}

// see waits until a script in the page gives want.
func (b *tab) see(script, want string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 5*time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	got := ""
	for {
		if got, _ = try[string](b, script); got == want {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			b.t.Fatalf("%s is %q, want %q; errors: %q", script, got, want, b.wrong())
		}
	}
}

// theatre is a server for the plays in web/e2e: scripts that do in a real browser what
// people do, and tell how it went.
type theatre struct {
	*lab
	address string
	people  map[string]*client.Client
	keys    map[string]string
}

func newTheatre(t *testing.T, names ...string) *theatre {
	t.Helper()
	return newTheatreWith(t, nil, names...)
}

// newTheatreWith is newTheatre with more arguments for the server.
func newTheatreWith(t *testing.T, args []string, names ...string) *theatre {
	t.Helper()
	h := &theatre{address: freeAddress(t), people: map[string]*client.Client{}, keys: map[string]string{}}
	h.lab = newLab(t, "", append([]string{"--addr", h.address}, args...)...)
	h.join(t, names...)
	return h
}

// join makes people with keys, beside the administrator.
func (h *theatre) join(t *testing.T, names ...string) {
	t.Helper()
	h.people["admin"], h.keys["admin"] = h.client, h.key
	for _, name := range names {
		made, err := h.client.CreateKey(t.Context(), api.CreateKey{User: api.Some(name)})
		if err != nil {
			t.Fatal(err)
		}
		h.people[name], h.keys[name] = client.New(h.base, made.Secret), made.Secret
	}
}

// strike removes what the plays left, for sandboxes would outlive the test.
func (h *theatre) strike() {
	for _, c := range h.people {
		b := *h.box
		b.client = c
		(&person{box: &b}).dropAll()
	}
}

// play runs a script, each part of which is a test.
func (h *theatre) play(t *testing.T, script string) {
	t.Helper()
	program := findChromium(t)
	needPage(t)
	defer h.strike()
	act(t, script, map[string]any{"base": h.base, "link": h.link, "keys": h.keys, "chromium": program, "model": h.model.URL + "/v1",
		"pictures": os.Getenv("DECKHAND_PICTURES"), "judge": os.Getenv("DECKHAND_JUDGE") != "", "soak": soak.On()}, h.obey)
}

// act runs a script in web/e2e, told what there is by job, and does for it by obey what it
// cannot do from where it is.
func act(t *testing.T, script string, job map[string]any, obey func(t *testing.T, what string)) {
	t.Helper()
	if _, err := os.Stat("../../web/node_modules/playwright-core"); err != nil {
		dockertest.Missing(t, "the page's tools are not installed; make web does it")
	}
	told, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", filepath.Join("e2e", script), os.Getenv("DECKHAND_PLAY_ONLY"))
	said := &syncBuffer{}
	cmd.Dir, cmd.Env, cmd.Stderr = "../../web", append(os.Environ(), "DECKHAND_PLAY="+string(told), "TMPDIR="+browserTemp(t)), said
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	parts := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var line struct {
			Part, Failure, Ask, Figure string
			Took                       int
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		if line.Ask != "" {
			obey(t, line.Ask)
			if _, err := in.Write([]byte("done\n")); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if line.Figure != "" {
			t.Log(line.Figure)
			continue
		}
		parts++
		t.Run(line.Part, func(t *testing.T) {
			t.Logf("it took %d ms", line.Took)
			if line.Failure != "" {
				t.Error(line.Failure)
			}
		})
	}
	if err := cmd.Wait(); err != nil || parts == 0 {
		t.Fatalf("%s played %d parts: %v: %s", script, parts, errors.Join(err, ctx.Err()), said)
	}
}

// obey does what a script cannot do from where it is.
func (h *theatre) obey(t *testing.T, what string) {
	t.Helper()
	switch what {
	case "stop":
		h.stop()
	case "start":
		again := serve(t, h.dir, append(withSandbox(t, h.driver), "--addr", h.address)...)
		h.stop = again.stop
	default:
		t.Fatalf("nobody knows how to %q", what)
	}
}

// The ten ways through Deckhand that people go most, in a real browser.
func TestFlowsInABrowser(t *testing.T) {
	t.Parallel()
	findChromium(t)
	h := newTheatre(t, "ada", "bob", "cleo", "dora", "emil", "finn", "gwen", "hugo", "ida", "jane")
	h.play(t, "flows.mjs")
}

// The frame around the conversations, as people handle it who mistype, use the keyboard alone
// or have the page open twice.
func TestFrameInABrowser(t *testing.T) {
	t.Parallel()
	findChromium(t)
	h := newTheatre(t, "ada", "bob", "cleo", "dora", "emil", "finn", "gwen", "hugo")
	h.play(t, "frame.mjs")
}

// Every page, in both themes and two widths: it says nothing wrong to the console, asks
// nobody but us, and everybody can use it.
func TestPagesInABrowser(t *testing.T) {
	t.Parallel()
	findChromium(t)
	h := newTheatre(t, "kim", "lea", "mia")
	h.demo("scripted/demo")
	h.lab.mind("mate", mate)
	h.play(t, "pages.mjs")
}

// The main screens in every language: nothing is cut off or left in English.
func TestLanguagesInABrowser(t *testing.T) {
	t.Parallel()
	findChromium(t)
	h := newTheatre(t, "de", "en", "es", "fr", "ja", "pt", "zh-cn")
	h.play(t, "languages.mjs")
}

// Every empty and every failed screen says what it is about and what to do.
func TestStatesInABrowser(t *testing.T) {
	t.Parallel()
	findChromium(t)
	h := newTheatre(t, "kim", "lea", "mia")
	h.play(t, "states.mjs")
}

// What people do in the workspace, and with what the agent shows.
func TestDeskInABrowser(t *testing.T) {
	t.Parallel()
	findChromium(t)
	h := newTheatre(t, "olaf", "pia")
	h.lab.mind("mate", mate)
	// Its answer stops in the middle, until it is interrupted.
	h.lab.mind("talker", func(llmtest.Asked) llmtest.Reply {
		return llmtest.Reply{Text: "These words come at once, and then there is silence: the second half of this answer is never written.", Break: llmtest.Hang}
	})
	h.play(t, "desk.mjs")
}

// What people do all day in a conversation: mentions, commands, plans, the queue, the sidebar.
func TestComposerInABrowser(t *testing.T) {
	t.Parallel()
	findChromium(t)
	h := newTheatre(t, "rosa", "sven")
	h.lab.mind("planner", planner)
	h.lab.mind("talker", func(llmtest.Asked) llmtest.Reply {
		return llmtest.Reply{Text: "These words come at once, and then there is silence: the second half of this answer is never written.", Break: llmtest.Hang}
	})
	h.lab.mind("writer", func(llmtest.Asked) llmtest.Reply { return llmtest.Reply{Text: drawings} })
	h.lab.mind("locked", func(llmtest.Asked) llmtest.Reply {
		return llmtest.Reply{Status: 401, Message: "Incorrect API key provided."}
	})
	var limits atomic.Int32
	h.lab.mind("limited", func(llmtest.Asked) llmtest.Reply {
		if limits.Add(1) <= 2 {
			return llmtest.Reply{Status: 429, Message: "Slow down."}
		}
		return llmtest.Reply{Text: "The wind is back."}
	})
	h.play(t, "composer.mjs")
}

// planner writes a file whenever it can, and has a plan otherwise.
func planner(a llmtest.Asked) llmtest.Reply {
	last := a.Messages[len(a.Messages)-1]
	switch {
	case last.Role == llm.ToolResult && !strings.Contains(last.Text, "no tool named"):
		return llmtest.Reply{Text: "It is carried out."}
	case last.Role == llm.ToolResult:
		return llmtest.Reply{Text: "1. Grease wheel.py"}
	case strings.Contains(last.Text, "approved"):
		return calls(a, shell("echo so > done.txt"))
	}
	return calls(a, shell("echo so > early.txt"))
}

// drawings are formulas and diagrams, one of which means harm.
const drawings = "The area is $\\pi r^2$ and costs $5 or $6.\n\n$$\\int_0^1 x^2\\,dx = \\frac{1}{3}$$\n\n" +
	"```mermaid\ngraph LR\n  A[Wheel] --> B{Squeaks?}\n  B -->|yes| C[Grease]\n  B -->|no| D[Turn]\n```\n\n" +
	"```mermaid\n%%{init: {\"securityLevel\": \"loose\", \"htmlLabels\": true}}%%\ngraph TD\n  X[\"<img src=x onerror=globalThis.pwned=1>\"] --> Y\n  click Y call alert(1)\n  click X href \"javascript:globalThis.pwned=1\"\n```\n"

// What the page costs to load, to open a conversation with, and to look through one of ten
// thousand events. Times are judged by make page-bench, on a machine with nothing else to do.
func TestPageIsLight(t *testing.T) {
	findChromium(t)
	needPage(t)
	h := newTheatre(t, "ada")
	from := t.TempDir()
	pages := filepath.Join(from, "sessions", "many", "event_cache")
	if err := os.MkdirAll(pages, 0o755); err != nil {
		t.Fatal(err)
	}
	const events, each = 10_000, 1000
	for first := 0; first < events; first += each {
		var list []string
		for i := first; i < first+each; i += 2 {
			list = append(list, fmt.Sprintf(`{"id":%d,"timestamp":"2025-01-01T10:00:00.%06d","source":"agent","message":"","action":"run","args":{"command":"echo %d","thought":""}}`, i, i, i),
				fmt.Sprintf(`{"id":%d,"timestamp":"2025-01-01T10:00:00.%06d","source":"agent","cause":%d,"observation":"run","content":"%s","extras":{"command":"echo %d","metadata":{"exit_code":0}}}`,
					i+1, i+1, i, strings.Repeat(fmt.Sprintf(`line %d\n`, i), i%20), i))
		}
		if err := os.WriteFile(filepath.Join(pages, fmt.Sprintf("%d-%d.json", first, first+each)), []byte("["+strings.Join(list, ",")+"]"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(from, "sessions", "many", "metadata.json"), []byte(`{"title":"A long voyage"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	must(t, "import", "--from", from, "--data-dir", h.dir)
	h.play(t, "long.mjs")
}

const (
	wheel       = "def turn(wheel, by):\n    \"\"\"Turn the wheel.\"\"\"\n    wheel.angle += by\n    squeak()\n    return wheel\n"
	wheelReport = "The wheel turned without **grease**: `squeak()` was called on every turn.\n\n- `wheel.py` greases it first\n- the test passes now\n\n```python\nwheel.grease()\nwheel.angle += by\n```\n\n| Turns | Squeaks |\n| --- | --- |\n| 100 | 0 |\n"
)

// mate is a model that does a little of everything, for pages to be looked at.
func mate(a llmtest.Asked) llmtest.Reply {
	file := func(args map[string]any) llm.Call {
		args["path"] = "/workspace/wheel.py"
		return use("str_replace_editor", args)
	}
	script := []llm.Call{
		use("task_tracker", map[string]any{"command": "plan", "task_list": []map[string]string{
			{"id": "1", "title": "Find out what squeaks", "status": "done"}, {"id": "2", "title": "Grease the wheel", "status": "in_progress"}, {"id": "3", "title": "Try it out", "status": "todo"}}}),
		shell("git init -q . && git config user.name mate && git config user.email mate@example.org && printf '%s' '" + wheel + "' > wheel.py && git add . && git commit -qm 'The wheel' && git log --oneline --stat --color=always"),
		file(map[string]any{"command": "view"}),
		file(map[string]any{"command": "str_replace", "old_str": "    squeak()\n", "new_str": "    wheel.grease()\n"}),
		use("think", map[string]any{"thought": "The wheel has no method grease yet. It is added beside turn, so that callers need not know."}),
		shell("python3 -m http.server 8123 >/dev/null 2>&1 & printf '\\033[32mok\\033[0m  test_turn\\n\\033[32mok\\033[0m  test_grease\\n\\033[1m2 passed\\033[0m in 0.01s\\n'"),
	}
	n := 0
	for _, m := range a.Messages {
		if m.Role == llm.ToolResult {
			n++
		}
	}
	if n < len(script) {
		return calls(a, script[n])
	}
	return llmtest.Reply{Text: wheelReport}
}

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"deckhand/internal/cli"
	"deckhand/internal/llm/llmtest"
)

var keptLine = regexp.MustCompile(`kept as conversation (\S+); .* --data-dir (\S+)`)

// record runs something, keeps it, and exports it as the server does.
func record(t *testing.T) (file string) {
	t.Helper()
	d := newDesk(t, llmtest.Script(sh("echo recorded > made; cat made"), llmtest.Reply{Text: "It is made."}))
	code, out, errs := d.run("run", "make it", "--keep")
	kept := keptLine.FindStringSubmatch(out)
	if code != 0 || kept == nil {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	b := serve(t, kept[2])
	status, text, _ := b.raw("GET", "/api/conversations/"+kept[1]+"/trajectory", "")
	if status != 200 || !strings.Contains(text, "echo recorded") {
		t.Fatalf("%d %s", status, text)
	}
	file = filepath.Join(t.TempDir(), "recording.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A recording is run again in a fresh sandbox, without a model.
func TestReplay(t *testing.T) {
	t.Parallel()
	file := record(t)
	d := newDesk(t, llmtest.Script(llmtest.Reply{Text: "I go on from there."}))
	code, out, errs := d.run("replay", file)
	if code != 0 || len(d.server.Asked()) != 0 {
		t.Errorf("%d, %d model calls: %s%s", code, len(d.server.Asked()), out, errs)
	}
	holds(t, out, "> make it\n", "$ echo recorded > made; cat made\n  recorded\n", "It is made.\n", "— done · 0 model calls")
	if left, _ := os.ReadDir(d.dir); len(left) > 0 {
		t.Errorf("it was done here: %v", left)
	}
	d.clean()

	code, out, errs = d.run("replay", file, "--message", "go on")
	if code != 0 || len(d.server.Asked()) != 1 || !strings.Contains(out, "I go on from there.") {
		t.Errorf("%d, %d model calls: %s%s", code, len(d.server.Asked()), out, errs)
	}
	holds(t, string(d.server.Asked()[0].Body), "recorded", "It is made.", "go on")

	cmd := d.command(d.args("replay", "-", "--json")...)
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	cmd.Stdin = in
	code, out, errs = d.finish(cmd)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != 0 || !json.Valid([]byte(lines[0])) || !strings.Contains(lines[len(lines)-1], `"result":"done"`) {
		t.Errorf("%d %s%s", code, out, errs)
	}
}

// A recording that ends in the middle is not gone on with, unless that is asked for.
func TestReplayOfAHalf(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "half.json")
	half := `[{"id":1,"source":"user","action":"message","args":{"content":"$ echo no"}},
		{"id":2,"source":"agent","action":"run","args":{"command":"echo half"}}]`
	if err := os.WriteFile(file, []byte(half), 0o600); err != nil {
		t.Fatal(err)
	}
	d := newDesk(t, llmtest.Script(done("The other half.")))
	code, out, errs := d.run("replay", file)
	if code != 0 || len(d.server.Asked()) != 0 || !strings.Contains(out, "  half\n— done") {
		t.Errorf("%d, %d model calls: %s%s", code, len(d.server.Asked()), out, errs)
	}
	code, out, errs = d.run("replay", file, "--continue")
	if code != 0 || len(d.server.Asked()) != 1 || !strings.Contains(out, "The other half.\n— finished") {
		t.Errorf("%d, %d model calls: %s%s", code, len(d.server.Asked()), out, errs)
	}
}

func TestReplayOfWhatIsNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "no JSON", `{"a":1}`, `[{"action":"fly"}]`} {
		refuses(t, []string{"replay", write(t, text), "--data-dir", t.TempDir()}, "cannot read")
	}
	if code, _, _ := command(t, "replay", filepath.Join(t.TempDir(), "none")); code != cli.ExitUsage {
		t.Errorf("%d", code)
	}
}

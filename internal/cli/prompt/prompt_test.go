package prompt

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestCommandsAndPaths(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{"/help": "help", "/model  openai/x ": "model|openai/x", "/etc/hosts is odd": "", "/": "", "hello /help": "", "/new\nline": "new|line", "/db:dump": "db:dump", "/9lives": "9lives"} {
		name, arguments, ok := IsCommand(line)
		if got := strings.TrimSuffix(name+"|"+arguments, "|"); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q %v", line, got, ok)
		}
	}
	if c, ok := Find("exit"); !ok || c.Name != "quit" {
		t.Errorf("%+v", c)
	}
	if text := Unknown("modle"); !strings.Contains(text, "/model?") {
		t.Error(text)
	}
	if text := Unknown("zzzzzz"); text != "unknown command /zzzzzz; type /help for all commands" {
		t.Error(text)
	}
	for _, c := range Commands {
		if !strings.Contains(Help(80), "/"+c.Name) {
			t.Errorf("the help does not have /%s", c.Name)
		}
	}
	for line := range strings.SplitSeq(Help(80), "\n") {
		if len(line) > 76 {
			t.Errorf("does not fit into 80 columns: %q", line)
		}
	}
}

// On a narrow terminal, the action is below its command.
func TestNarrowHelp(t *testing.T) {
	t.Parallel()
	if text := Help(40); !strings.Contains(text, "\n/model [NAME]\n    show or change") || !strings.Contains(text, "\nCtrl-D\n    quit\n") {
		t.Error(text)
	}
}

func TestMentions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": -1, "@": 0, "see @a": 4, "see @a ": -1, "a@b": -1, "(@x": 1, "@a and @b/c": 7, "one\n@two": 4, `see @"my fi`: 4, `see @"my file"`: -1, `see @"my file" `: -1} {
		if got := MentionAt(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestMentionOfASpace(t *testing.T) {
	t.Parallel()
	if got := Mention("docs/my file.md"); got != `@"docs/my file.md"` {
		t.Error(got)
	}
	if got := Mentioned(`see @"docs/my f`, 4); got != "docs/my f" {
		t.Error(got)
	}
}

// A tab stays a tab, unless the user deletes a part of it.
func TestTabs(t *testing.T) {
	t.Parallel()
	in := New(false)
	in.SetWidth(40)
	in.SetValue(Shown("a\n\t\tb c"))
	if got := Typed(in.Value()); got != "a\n\t\tb c" {
		t.Errorf("%q", got)
	}
	if got := Typed(strings.TrimSuffix(Shown("\t\t"), "\u2007")); got != "\t   " {
		t.Errorf("%q", got)
	}
}

func TestQueueArguments(t *testing.T) {
	t.Parallel()
	for arguments, want := range map[string]string{"": "|0", "edit 2": "edit|1", "delete": "", "send 3": "", "send 0": "", "fly 1": "", "send x": "", "send 1 2": ""} {
		action, at, err := Queue(arguments, 2)
		if got := fmt.Sprintf("%s|%d", action, at); (err != nil) != (want == "") || err == nil && got != want {
			t.Errorf("%q: %q %v", arguments, got, err)
		}
	}
	if action, at, err := Queue("send", 1); action != "send" || at != 0 || err != nil {
		t.Error(action, at, err)
	}
}

func TestPlanArguments(t *testing.T) {
	t.Parallel()
	for _, arguments := range []string{"approve", "edit"} {
		if _, err := Plan(arguments, true, false); err == nil {
			t.Errorf("%s without a plan", arguments)
		}
	}
	if step, err := Plan("", true, true); step != PlanOff || err != nil {
		t.Error(step, err)
	}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := OpenHistory(dir)
	for _, entry := range []string{"one", "two\nlines", "two\nlines", "", "three"} {
		h.Add(entry)
	}
	h = OpenHistory(dir)
	var got []string
	for text, ok := h.Older("draft"); ok; text, ok = h.Older("") {
		got = append(got, text)
	}
	if !slices.Equal(got, []string{"three", "two\nlines", "one"}) {
		t.Errorf("%q", got)
	}
	for range 2 {
		h.Newer()
	}
	if text, ok := h.Newer(); !ok || text != "draft" {
		t.Errorf("%q %v", text, ok)
	}
	if info, err := os.Stat(h.file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	for range 2*maxEntries + 1 {
		h.Add("a")
		h.Add("b")
	}
	if h = OpenHistory(dir); len(h.entries) != maxEntries {
		t.Errorf("%d entries", len(h.entries))
	}
	text, err := os.ReadFile(h.file)
	if n := strings.Count(string(text), "\n"); err != nil || n != maxEntries {
		t.Errorf("the file has %d lines, %v", n, err)
	}
}

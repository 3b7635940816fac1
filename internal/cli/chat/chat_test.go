package chat

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"deckhand/api"
)

func TestCommandsAndPaths(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{"/help": "help", "/model  openai/x ": "model|openai/x", "/etc/hosts is odd": "", "/": "", "hello /help": "", "/new\nline": "new|line", "/db:dump": "db:dump", "/9lives": "9lives"} {
		name, arguments, ok := isCommand(line)
		if got := strings.TrimSuffix(name+"|"+arguments, "|"); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q %v", line, got, ok)
		}
	}
	if c, ok := findCommand("exit"); !ok || c.name != "quit" {
		t.Errorf("%+v", c)
	}
	if text := unknown("modle"); !strings.Contains(text, "/model?") {
		t.Error(text)
	}
	for _, c := range commands {
		if !strings.Contains(helpText(), "/"+c.name) {
			t.Errorf("the help does not have /%s", c.name)
		}
	}
	for line := range strings.SplitSeq(helpText(), "\n") {
		if len(line) > 76 {
			t.Errorf("does not fit into 80 columns: %q", line)
		}
	}
}

func TestMentions(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": -1, "@": 0, "see @a": 4, "see @a ": -1, "a@b": -1, "(@x": 1, "@a and @b/c": 7, "one\n@two": 4} {
		if got := mentionAt(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := openHistory(dir)
	for _, entry := range []string{"one", "two\nlines", "two\nlines", "", "three"} {
		h.add(entry)
	}
	h = openHistory(dir)
	var got []string
	for text, ok := h.older("draft"); ok; text, ok = h.older("") {
		got = append(got, text)
	}
	if !slices.Equal(got, []string{"three", "two\nlines", "one"}) {
		t.Errorf("%q", got)
	}
	for range 2 {
		h.newer()
	}
	if text, ok := h.newer(); !ok || text != "draft" {
		t.Errorf("%q %v", text, ok)
	}
	if info, err := os.Stat(h.file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	for range 2*maxEntries + 1 {
		h.add("a")
		h.add("b")
	}
	if h = openHistory(dir); len(h.entries) != maxEntries {
		t.Errorf("%d entries", len(h.entries))
	}
	text, err := os.ReadFile(h.file)
	if n := strings.Count(string(text), "\n"); err != nil || n != maxEntries {
		t.Errorf("the file has %d lines, %v", n, err)
	}
}

// A panic gives the terminal back as it was.
func TestPanicRestoresTheTerminal(t *testing.T) {
	t.Parallel()
	screen, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	defer tty.Close()
	if err := pty.Setsize(tty, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	before, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, screen)
	s := &conversation{Options: Options{DataDir: t.TempDir()}} // without a client, the first request panics
	if err := s.draw(t.Context(), tty, tty); !errors.Is(err, tea.ErrProgramPanic) {
		t.Errorf("it ended with %v", err)
	}
	after, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil || after.Lflag != before.Lflag {
		t.Errorf("the terminal has the mode %x, and had %x; %v", after.Lflag, before.Lflag, err)
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	yes, no, rules := true, false, "rules"
	for want, s := range map[string]api.Settings{"never asks": {ConfirmationMode: &no, SecurityAnalyzer: &rules}, "always asks": {ConfirmationMode: &yes}, "asks when risky": {ConfirmationMode: &yes, SecurityAnalyzer: &rules}} {
		if got := modes[s.Asks()]; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"
	"golang.org/x/sys/unix"
)

// tui is a session in a terminal, with a screen on which it can be seen.
type tui struct {
	*screen
	term vt10x.Terminal
	fed  int
}

// session starts deckhand without a command.
func (d *desk) session(columns, rows int, args ...string) *tui {
	d.t.Helper()
	return d.tui(columns, rows, d.command(d.args(append([]string{""}, args...)...)[1:]...))
}

func (d *desk) tui(columns, rows int, cmd *exec.Cmd) *tui {
	d.t.Helper()
	d.t.Cleanup(d.leavesNothing) // after the program has ended
	return &tui{screen: onScreenOf(d.t, cmd, columns, rows), term: vt10x.New(vt10x.WithSize(columns, rows))}
}

// leavesNothing checks that no sandbox outlives the sessions of the desk.
func (d *desk) leavesNothing() {
	homes, _ := filepath.Glob(filepath.Join(d.data, "folders", "*")) // the pattern is good
	for _, dir := range homes {
		b := &box{t: d.t, dir: dir}
		if d.t.Failed() { // it did not come to that itself
			b.endSandboxes()
		}
		b.leavesNothing()
	}
}

// endSandboxes kills the sandboxes of a test that failed.
func (b *box) endSandboxes() {
	started, _ := filepath.Glob(filepath.Join(b.dir, "boxes", "*", "process.json")) // the pattern is good
	for _, name := range started {
		var runner struct{ PID int }
		if text, err := os.ReadFile(name); err == nil && json.Unmarshal(text, &runner) == nil && runner.PID > 0 {
			_ = syscall.Kill(runner.PID, syscall.SIGKILL)
		}
	}
}

// picture is what the screen shows now.
func (s *tui) picture() string {
	text := s.text.String()
	_, _ = s.term.Write([]byte(text[s.fed:])) // a screen takes everything
	s.fed = len(text)
	lines := strings.Split(s.term.String(), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// shows waits until all texts are on the screen at the same time, and returns the screen.
func (s *tui) shows(wants ...string) string {
	s.t.Helper()
	limit := time.After(bound)
	for {
		s.mu.Lock()
		now, changed, closed := s.picture(), s.changed, s.closed
		s.mu.Unlock()
		missing := ""
		for _, want := range wants {
			if !strings.Contains(now, want) {
				missing = want
			}
		}
		if missing == "" {
			return now
		}
		if closed {
			s.t.Fatalf("%q does not come; the screen shows:\n%s", missing, now)
		}
		select {
		case <-changed:
		case <-limit:
			s.t.Fatalf("%q does not come in time; the screen shows:\n%s", missing, now)
		}
	}
}

// enter types a line.
func (s *tui) enter(text string) { s.press(text + "\r") }

// cooked reports whether the terminal is as a shell expects it.
func (s *tui) cooked() bool {
	t, err := unix.IoctlGetTermios(int(s.f.Fd()), unix.TCGETS)
	return err == nil && t.Lflag&(unix.ECHO|unix.ICANON) == unix.ECHO|unix.ICANON
}

func (s *tui) resize(columns, rows int) {
	s.t.Helper()
	if err := pty.Setsize(s.f, &pty.Winsize{Rows: uint16(rows), Cols: uint16(columns)}); err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	s.picture()
	s.term.Resize(columns, rows)
	s.mu.Unlock()
}

// fits checks that a picture is not wider than the screen.
func fits(t *testing.T, picture string, columns int) {
	t.Helper()
	for line := range strings.SplitSeq(picture, "\n") {
		if n := len([]rune(line)); n > columns {
			t.Errorf("%d columns: %q", n, line)
		}
	}
}

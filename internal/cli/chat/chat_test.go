package chat

import (
	"errors"
	"io"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// A panic gives the terminal back as it was.
func TestPanicRestoresTheTerminal(t *testing.T) {
	t.Parallel()
	screen, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	// They are not closed: after a panic, goroutines of the drawing library may still use them.
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

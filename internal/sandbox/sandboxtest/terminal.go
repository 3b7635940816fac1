package sandboxtest

import (
	"context"
	"strings"
	"testing"

	"deckhand/internal/sandbox"
)

// terminal: one for a person, which is found again.
func terminal(t *testing.T, o Options) {
	b := open(t, o, sandbox.Spec{}, nil)
	must(t, b.SetEnv(within(t), map[string]string{"HOME": b.root})) // without a user's .bashrc
	visit := func() (*sandbox.Terminal, *strings.Builder) {
		t.Helper()
		term, err := b.Terminal(within(t), sandbox.TerminalParams{Name: t.Name(), Rows: 24, Cols: 80})
		must(t, err)
		t.Cleanup(func() { _ = term.Close() })
		return term, &strings.Builder{}
	}
	until := func(term *sandbox.Terminal, seen *strings.Builder, text string) {
		t.Helper()
		stop := context.AfterFunc(within(t), func() { _ = term.Close() })
		defer stop()
		buf := make([]byte, 1024)
		for !strings.Contains(seen.String(), text) {
			n, err := term.Read(buf)
			seen.Write(buf[:n])
			if err != nil && !strings.Contains(seen.String(), text) {
				t.Fatalf("the terminal ended with %v and showed no %q, only %q", err, text, seen)
			}
		}
	}
	write := func(term *sandbox.Terminal, text string) {
		t.Helper()
		_, err := term.Write([]byte(text))
		must(t, err)
	}
	term, seen := visit()
	write(term, "kept=$((40 + 2)); echo is-$kept-it\n")
	until(term, seen, "is-42-it")
	must(t, term.Resize(within(t), 33, 111))
	write(term, "stty size\n")
	until(term, seen, "33 111")
	must(t, term.Close())
	term, seen = visit()
	until(term, seen, "is-42-it") // what was on the screen
	write(term, "echo still-$kept-here\n")
	until(term, seen, "still-42-here")
	write(term, "exit\n")
	stop := context.AfterFunc(within(t), func() { _ = term.Close() })
	defer stop()
	for buf := make([]byte, 1024); ; {
		if _, err := term.Read(buf); err != nil {
			break
		}
	}
	must(t, within(t).Err())
}

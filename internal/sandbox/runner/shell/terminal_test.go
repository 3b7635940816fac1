package shell

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
)

// until reads until the text was seen, and gives all that was read.
func until(t *testing.T, r io.Reader, text string) string {
	t.Helper()
	var all []byte
	buf := make([]byte, 32<<10)
	for seen := 0; !bytes.Contains(all[seen:], []byte(text)); {
		seen = max(0, len(all)-len(text))
		n, err := r.Read(buf)
		all = append(all, buf[:n]...)
		if err != nil {
			t.Fatalf("%v, after %q", err, all)
		}
	}
	return string(all)
}

func (b *box) terminal(name string, rows, cols uint16) *sandbox.Terminal {
	b.t.Helper()
	term, err := b.Terminal(b.t.Context(), sandbox.TerminalParams{Name: name, Rows: rows, Cols: cols})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { term.Close() })
	return term
}

func typed(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}

func TestTerminal(t *testing.T) {
	b := open(t)
	one := b.terminal("x", 30, 100)
	typed(t, one, "stty size; echo $TERM; x=kept\n")
	until(t, one, "30 100")
	until(t, one, "xterm-256color")
	if err := one.Resize(t.Context(), 40, 120); err != nil {
		t.Fatal(err)
	}
	typed(t, one, "stty size\n")
	until(t, one, "40 120")
	one.Close()

	// It is the same one afterwards, and shows what was there.
	two := b.terminal("x", 20, 50)
	until(t, two, "40 120")
	typed(t, two, "stty size; echo $x-x\n")
	until(t, two, "20 50")
	until(t, two, "kept-x")

	// Two viewers see the same.
	three := b.terminal("x", 0, 0)
	until(t, three, "kept-x")
	typed(t, three, "echo $((1000+234))\n")
	until(t, two, "1234")
	until(t, three, "1234")

	// Ctrl-C works, and the end of the shell is the end of reading.
	typed(t, three, "sleep 1000\n")
	until(t, three, "sleep 1000")
	typed(t, three, "\x03")
	typed(t, three, "exit\n")
	for _, term := range []io.Reader{two, three} {
		if _, err := io.Copy(io.Discard, term); err != nil {
			t.Error(err)
		}
	}
	if err := two.Resize(t.Context(), 1, 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("resizing what has ended: %v", err)
	}
	four := b.terminal("x", 0, 0)
	typed(t, four, "echo ${x-fresh}; stty size\n")
	until(t, four, "24 80")
}

// The past is bounded, and a viewer that does not read is not waited for: it
// misses something.
func TestTerminalSlowViewer(t *testing.T) {
	b := open(t)
	slow := b.terminal("x", 24, 80)
	fast := b.terminal("x", 24, 80)
	typed(t, fast, "yes 0123456789 | head -c 3000000; echo e''nd\n")
	until(t, fast, "end")
	if got := until(t, slow, "end"); len(got) > 1_000_000 || !strings.Contains(got, missed) {
		t.Errorf("a viewer that did not read got %d bytes", len(got))
	}
	late := b.terminal("x", 24, 80)
	if got := until(t, late, "end"); len(got) > scrollback {
		t.Errorf("the past has %d bytes", len(got))
	}
}

func TestTooManyTerminals(t *testing.T) {
	b := open(t)
	for i := range maxTerminals {
		b.terminal(fmt.Sprint(i), 24, 80)
	}
	if _, err := b.Terminal(t.Context(), sandbox.TerminalParams{Name: "more"}); !errors.Is(err, rpc.ErrBusy) {
		t.Errorf("one more gave %v", err)
	}
	if _, err := b.Terminal(t.Context(), sandbox.TerminalParams{Name: strings.Repeat("x", 1000)}); !errors.Is(err, rpc.ErrInvalid) {
		t.Errorf("a long name gave %v", err)
	}
}

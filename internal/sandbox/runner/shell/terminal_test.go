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

// viewer is a terminal as its user sees it.
type viewer struct {
	*sandbox.Terminal
	t    *testing.T
	read []byte // and not looked at yet
}

// until reads until the text was seen, and gives what was there up to it.
func (v *viewer) until(text string) string {
	v.t.Helper()
	buf := make([]byte, 32<<10)
	for from := 0; ; {
		if i := bytes.Index(v.read[from:], []byte(text)); i >= 0 {
			seen := v.read[:from+i+len(text)]
			v.read = v.read[len(seen):]
			return string(seen)
		}
		from = max(0, len(v.read)-len(text))
		n, err := v.Read(buf)
		v.read = append(v.read, buf[:n]...)
		if err != nil {
			v.t.Fatalf("%v, after %q", err, v.read)
		}
	}
}

func (b *box) terminal(t *testing.T, name string, rows, cols uint16) *viewer {
	t.Helper()
	term, err := b.Terminal(t.Context(), sandbox.TerminalParams{Name: name, Rows: rows, Cols: cols})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { term.Close() })
	return &viewer{Terminal: term, t: t}
}

func typed(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}

func TestTerminal(t *testing.T) {
	b := open(t)
	one := b.terminal(t, "x", 30, 100)
	typed(t, one, "stty size; echo $TERM; x=kept\n")
	one.until("30 100")
	one.until("xterm-256color")
	if err := one.Resize(t.Context(), 40, 120); err != nil {
		t.Fatal(err)
	}
	typed(t, one, "stty size\n")
	one.until("40 120")
	one.Close()

	// It is the same one afterwards, and shows what was there.
	two := b.terminal(t, "x", 20, 50)
	two.until("40 120")
	typed(t, two, "stty size; echo $x-x\n")
	two.until("20 50")
	two.until("kept-x")

	// Two viewers see the same.
	three := b.terminal(t, "x", 0, 0)
	three.until("kept-x")
	typed(t, three, "echo $((1000+234))\n")
	two.until("1234")
	three.until("1234")

	// Ctrl-C works, and the end of the shell is the end of reading.
	typed(t, three, "PS1='ne''xt> '; sh -c 'echo wai''ting; exec cat'\n")
	three.until("waiting")
	typed(t, three, "\x03")
	three.until("next> ")
	typed(t, three, "exit\n")
	for _, term := range []io.Reader{two, three} {
		if _, err := io.Copy(io.Discard, term); err != nil {
			t.Error(err)
		}
	}
	if err := two.Resize(t.Context(), 1, 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("resizing what has ended: %v", err)
	}
	four := b.terminal(t, "x", 0, 0)
	typed(t, four, "echo ${x-fresh}; stty size\n")
	four.until("24 80")
}

// The past is bounded, and a viewer that does not read is not waited for: it
// misses something.
func TestTerminalSlowViewer(t *testing.T) {
	b := open(t)
	slow := b.terminal(t, "x", 24, 80)
	fast := b.terminal(t, "x", 24, 80)
	typed(t, fast, "yes 0123456789 | head -c 3000000; echo e''nd\n")
	fast.until("end")
	if got := slow.until("end"); len(got) > 1_000_000 || !strings.Contains(got, missed) {
		t.Errorf("a viewer that did not read got %d bytes", len(got))
	}
	late := b.terminal(t, "x", 24, 80)
	if got := late.until("end"); len(got) > scrollback {
		t.Errorf("the past has %d bytes", len(got))
	}
}

func TestTooManyTerminals(t *testing.T) {
	b := open(t)
	for i := range maxTerminals {
		b.terminal(t, fmt.Sprint(i), 24, 80)
	}
	if _, err := b.Terminal(t.Context(), sandbox.TerminalParams{Name: "more"}); !errors.Is(err, rpc.ErrBusy) {
		t.Errorf("one more gave %v", err)
	}
	if _, err := b.Terminal(t.Context(), sandbox.TerminalParams{Name: strings.Repeat("x", 1000)}); !errors.Is(err, rpc.ErrInvalid) {
		t.Errorf("a long name gave %v", err)
	}
}

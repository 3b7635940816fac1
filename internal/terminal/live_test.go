package terminal_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"deckhand/internal/session"
	"deckhand/internal/terminal"
)

// glass is a terminal that understands what a Display tells it, and nothing else.
type glass struct {
	t        *testing.T
	width    int
	rows     [][]rune
	row, col int
}

var order = regexp.MustCompile(`^\x1b\[([0-9]*)([ACJKm])`)

func (g *glass) Write(p []byte) (int, error) {
	g.t.Helper()
	for s := string(p); s != ""; {
		if m := order.FindStringSubmatch(s); m != nil {
			s = s[len(m[0]):]
			n, _ := strconv.Atoi(m[1])
			switch m[2] {
			case "A":
				if g.row -= n; g.row < 0 {
					g.t.Fatalf("the cursor leaves the screen:\n%s", g.text())
				}
			case "C":
				g.col += n
			case "J", "K":
				g.rows[g.row] = g.rows[g.row][:min(g.col, len(g.rows[g.row]))]
				if m[2] == "J" {
					g.rows = g.rows[:g.row+1]
				}
			}
			continue
		}
		r, n := utf8.DecodeRuneInString(s)
		s = s[n:]
		g.put(r)
	}
	return len(p), nil
}

func (g *glass) put(r rune) {
	if len(g.rows) == 0 {
		g.rows = [][]rune{nil}
	}
	switch r {
	case '\x1b':
		g.t.Fatal("an unknown order")
	case '\r':
		g.col = 0
	case '\n':
		g.down()
	default:
		if g.col == g.width {
			g.down()
		}
		for len(g.rows[g.row]) <= g.col {
			g.rows[g.row] = append(g.rows[g.row], ' ')
		}
		g.rows[g.row][g.col] = r
		g.col++
	}
}

func (g *glass) down() {
	g.row, g.col = g.row+1, 0
	if g.row == len(g.rows) {
		g.rows = append(g.rows, nil)
	}
}

func (g *glass) text() string {
	var b strings.Builder
	for _, r := range g.rows {
		b.WriteString(strings.TrimRight(string(r), " ") + "\n")
	}
	return b.String()
}

func (g *glass) shows(want string) {
	g.t.Helper()
	if got := g.text(); got != want {
		g.t.Errorf("the screen shows\n%s\nnot\n%s", got, want)
	}
}

// live is a display with a line to type into, on a glass.
func live(t *testing.T, width int) (*glass, *terminal.Display, *terminal.Input) {
	g, in := &glass{t: t, width: width}, &terminal.Input{}
	d := terminal.New(terminal.Options{Out: g, Color: true, Width: func() int { return width }, Messages: true})
	d.Type(in)
	return g, d, in
}

// What is typed stays below what is written, whichever is faster.
func TestTypingBelow(t *testing.T) {
	g, d, in := live(t, 30)
	d.SetFoot(terminal.Foot{State: "your turn", Prompt: ">", Busy: false})
	g.shows("your turn\n>\n")
	in.Feed([]byte("go on"))
	d.Draw()
	g.shows("your turn\n> go on\n")
	d.SetFoot(terminal.Foot{State: "working", Prompt: ">", Busy: true})
	d.Delta("m1", "Some words that ")
	g.shows("Some words that\n⠋ working\n> go on\n")
	d.Tick()
	d.Delta("m1", "go on for more than a line.\nAnd then mo") // which may become a longer word
	g.shows("Some words that go on for\nmore than a line.\nAnd then\n⠙ working\n> go on\n")
	if g.row != 4 || g.col != len("> go on") {
		t.Errorf("the cursor is at %d, %d", g.row, g.col)
	}
	d.Event(session.Event{Payload: session.ModelAnswered{Call: "m1", Text: "Some words that go on for more than a line.\nAnd then more."}})
	d.Status("waiting for the model")
	g.shows("Some words that go on for\nmore than a line.\nAnd then more.\n⠙ waiting for the model\n> go on\n")
	in.Feed([]byte("\x1b[D\x1b[D!"))
	d.Notice("a notice")
	g.shows("Some words that go on for\nmore than a line.\nAnd then more.\n· a notice\n⠙ working\n> go !on\n")
	d.Leave()
	d.Notice("left")
	g.shows("Some words that go on for\nmore than a line.\nAnd then more.\n· a notice\n· left\n\n")
}

// However the events come and whatever is typed, the screen has what was said
// in order, and then the foot.
func TestScreenStaysInOrder(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		g, d, in := live(t, 20+r.IntN(60))
		d.SetFoot(terminal.Foot{State: "state", Prompt: ">", Busy: true})
		var said []string
		for i := range 40 {
			switch r.IntN(5) {
			case 0:
				d.Notice(fmt.Sprintf("notice-%d", i))
				said = append(said, fmt.Sprintf("notice-%d", i))
			case 1:
				d.Delta(fmt.Sprintf("m%d", i/10), fmt.Sprintf("word-%d ", i))
				said = append(said, fmt.Sprintf("word-%d", i))
			case 2:
				in.Feed([]byte("x"))
				d.Draw()
			case 3:
				d.Tick()
			case 4:
				d.Status("doing something of which a long story could be told")
			}
		}
		if got := regexp.MustCompile(`(notice|word)-\d+`).FindAllString(g.text(), -1); strings.Join(got, " ") != strings.Join(said, " ") {
			t.Fatalf("seed %d: %v, not %v:\n%s", seed, got, said, g.text())
		}
		last := strings.Split(strings.TrimSpace(g.text()), "\n")
		if end := last[len(last)-1]; !strings.HasPrefix(end, ">") || strings.Count(g.text(), "\n>") != 1 {
			t.Fatalf("seed %d: the foot is not at the end:\n%s", seed, g.text())
		}
	}
}

func TestKeys(t *testing.T) {
	for keys, want := range map[string]string{
		"abc\r":                          "abc",
		"ac\x1b[Db\n":                    "abc",
		"xabc\x01\x04\r":                 "abc",
		"abcx\x7f\r":                     "abc",
		"one two\x17three\r":             "one three",
		"abc\x15def\r":                   "def",
		"abcd\x1b[D\x0b\r":               "abc",
		"b\x1bOHa\x1bOFc\r":              "abc",
		"ä漢🎉\x1b[D\x1b[3~\r":             "ä漢",
		"\x1b[200~a\rb\n\x1b[201~c\r":    "a\nb\nc",
		"a\x1b\rb\r":                     "a\nb",
		"a\x1b[31mb\x1b[?25lc\r":         "abc", // what no key sends
		"a\x00\x07b\u202ec\u200b\r":      "abc",
		"one two\x1bb\x1bb\x1bfx\r":      "onex two",
		"\x1b[1;5Da\x1b[1;5Cb\x02\x06\r": "ab",
	} {
		in := &terminal.Input{}
		var got []terminal.Typed
		for _, b := range []byte(keys) { // as they come over a slow line
			got = append(got, in.Feed([]byte{b})...)
		}
		if len(got) != 1 || got[0].Line != want || got[0].End {
			t.Errorf("%q: %+v, want %q", keys, got, want)
		}
	}
	in := &terminal.Input{}
	got := in.Feed([]byte("first\rsecond\rdraft\x1b[A\x1b[A\x1b[A\x1b[B\x1b[B!\r\x04"))
	if len(got) != 4 || got[2].Line != "draft!" || !got[3].End {
		t.Errorf("%+v", got)
	}
	in.Feed([]byte("\x10\x10\x10"))
	if in.Text() != "first" {
		t.Errorf("%q", in.Text())
	}
}

// Long and wide lines are shown around the cursor.
func TestLongLine(t *testing.T) {
	g, d, in := live(t, 20)
	in.Set(strings.Repeat("0123456789", 4))
	d.Draw()
	g.shows("> 4567890123456789\n")
	in.Feed([]byte("\x01"))
	d.Draw()
	g.shows("> 0123456789012345\n")
	in.Set("a\nb")
	d.Draw()
	g.shows("> a↵b\n")
}

func FuzzKeys(f *testing.F) {
	f.Add([]byte("abc\x1b[Dx\r"), uint8(30))
	f.Add([]byte("\x1b[200~\x1b[201~\x1b[\xff\xc3"), uint8(3))
	f.Fuzz(func(t *testing.T, keys []byte, width uint8) {
		g, d, in := live(t, max(int(width), 20))
		in.Feed(keys)
		d.Draw()
		if strings.Count(g.text(), "\n") != 1 {
			t.Errorf("%q is shown as\n%s", keys, g.text())
		}
		for _, typed := range in.Feed([]byte("\x1b[201~\r")) {
			if terminal.Clean(typed.Line) != typed.Line {
				t.Errorf("%q became %q", keys, typed.Line)
			}
		}
	})
}

func TestTable(t *testing.T) {
	for _, c := range []struct {
		table terminal.Table
		want  string
	}{
		{terminal.Table{}, "ID   STATE    TITLE\nab   working  Fix the flaky test \x1b of the day\nabc  漢字     b\n"},
		{terminal.Table{Width: 30, Color: true}, "\x1b[1mID\x1b[0m   \x1b[1mSTATE\x1b[0m    \x1b[1mTITLE\x1b[0m\nab   \x1b[36mworking\x1b[0m  Fix the flaky …\nabc  漢字     b\n"},
	} {
		c.table.Row(terminal.Cell{Text: "ID"}, terminal.Cell{Text: "STATE"}, terminal.Cell{Text: "TITLE"})
		c.table.Row(terminal.Cell{Text: "ab"}, terminal.Cell{Text: "working", Look: terminal.Busy}, terminal.Cell{Text: "Fix the flaky\ntest \x1b of the day"})
		c.table.Row(terminal.Cell{Text: "abc"}, terminal.Cell{Text: "漢字"}, terminal.Cell{Text: "b"})
		var b strings.Builder
		if err := c.table.Write(&b); err != nil || b.String() != strings.ReplaceAll(c.want, "test \x1b", "test ␛") {
			t.Errorf("%q, %v, want %q", b.String(), err, c.want)
		}
	}
}

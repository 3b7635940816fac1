package terminal_test

import (
	"strings"
	"testing"

	"deckhand/internal/session"
	"deckhand/internal/terminal"
)

// What a model says is broken between words, and its marks become looks.
func TestProse(t *testing.T) {
	const b, c, d, off = "\x1b[1m", "\x1b[36m", "\x1b[2m", "\x1b[0m"
	for text, want := range map[string]string{
		"one two three four five six seven":                  "one two three four\nfive six seven\n",
		"- a point that is broken below\n  - and one in it":  "- a point that is\n  broken below\n  - and one in it\n",
		"12. twelve is a number of two":                      "12. twelve is a\n    number of two\n",
		"## A **head**\n\nand `code here`.":                  b + "A" + off + " " + b + "head" + off + "\n\nand " + c + "code" + off + " " + c + "here" + off + ".\n",
		"> said before":                                      d + ">" + off + " " + d + "said" + off + " " + d + "before" + off + "\n",
		"2 ** 3 and 2 * 3 are\n**open":                       "2 ** 3 and 2 * 3\nare\n" + b + "open" + off + "\n",
		"so:\n```go\nif  a {\n\tb()\n\n}\n```\ndone **now**": "so:\n  if  a {\n      b()\n\n  }\ndone " + b + "now" + off + "\n",
		"| a | b that is rather wide |\n|---|---|":           "| a | b that is rather wide |\n|---|---|\n",
		"see https://example.org/a/long/address now":         "see\nhttps://example.org/a/long/address\nnow\n",
		"漢字漢字漢字 漢字漢字漢字 x":                                    "漢字漢字漢字\n漢字漢字漢字 x\n",
		"\n\nnot empty\n\n":                                  "not empty\n\n",
	} {
		o := terminal.Options{Color: true, Width: func() int { return 20 }}
		whole := show(o, session.ModelAnswered{Call: "m1", Text: text})
		if whole != want {
			t.Errorf("%q: %q, want %q", text, whole, want)
		}
		var steps []any
		for _, r := range text {
			steps = append(steps, "m1:"+string(r))
		}
		if got := show(o, append(steps, session.ModelAnswered{Call: "m1", Text: text})...); got != whole {
			t.Errorf("%q as it comes: %q, want %q", text, got, whole)
		}
		if got := show(terminal.Options{}, session.ModelAnswered{Call: "m1", Text: text}); got != strings.TrimSuffix(text, "\n")+"\n" && got != text {
			t.Errorf("%q in a pipe: %q", text, got)
		}
	}
}

// Above a line to type into nothing is wider than the screen, whose rows are counted.
func TestProseAboveALine(t *testing.T) {
	g, d, _ := live(t, 20)
	d.Delta("m1", "see **"+strings.Repeat("0123456789", 3)+"** now, and then some")
	d.SetFoot(terminal.Foot{State: "your turn", Prompt: ">"})
	g.shows("see\n0123456789012345678\n90123456789 now,\nand then\nyour turn\n>\n")
	d.Leave()
	g.shows("see\n0123456789012345678\n90123456789 now,\nand then some\n\n")
}

// Whatever a model writes and however it comes, no word is lost.
func FuzzProse(f *testing.F) {
	f.Add("# a\n- `b c` **d**\n```\ne\n", uint8(30), uint8(3))
	f.Add("**\n`|", uint8(0), uint8(1))
	f.Fuzz(func(t *testing.T, text string, width, step uint8) {
		g, d, _ := live(t, max(int(width), 20))
		d.SetFoot(terminal.Foot{State: "your turn", Prompt: ">"})
		text = terminal.Clean(text)
		for rest := []rune(text); len(rest) > 0; {
			n := min(len(rest), int(step)+1)
			d.Delta("m1", string(rest[:n]))
			rest = rest[n:]
		}
		d.Leave()
		for _, r := range text {
			if r > 'a' && r < 'z' && !strings.Contains(text, "```") && !strings.ContainsRune(g.text(), r) {
				t.Fatalf("%q lost %q:\n%s", text, r, g.text())
			}
		}
		if strings.Contains(g.text(), "your turn") != strings.Contains(text, "your turn") {
			t.Fatalf("%q: the foot stays:\n%s", text, g.text())
		}
	})
}

package main

import (
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"deckhand/internal/cli"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/soak"
)

// A task from its beginning to its end, as somebody at a terminal sees it. The
// picture of it in the documentation is made here.
func TestTerminalFromBeginningToEnd(t *testing.T) {
	t.Parallel()
	soak.NotShort(t, "types at a terminal")
	needLocal(t)
	edit := calling("str_replace_editor", map[string]any{"command": "str_replace", "path": "/workspace/wheel.py", "old_str": "    squeak()\n", "new_str": "    wheel.grease()\n"})
	edit.Text = "The wheel turns without grease: `squeak()` is called on **every** turn."
	try := sh("python3 -B -c 'import wheel' && echo 'ok  wheel.py'")
	try.Text = "Now let me try it out."
	d := newDesk(t, llmtest.Script(sh("cat wheel.py"), edit, try, done("The wheel is greased on every turn, and does not squeak any more:\n\n- `wheel.py` calls `wheel.grease()`\n- it compiles")))
	if err := os.WriteFile(filepath.Join(d.dir, "wheel.py"), []byte(wheel), 0o644); err != nil {
		t.Fatal(err)
	}
	const task = "The wheel squeaks. Find out why and mend it."
	s := d.sit("run", task, "--confirm", "--sandbox", "local")
	for _, shown := range []string{"$ cat wheel.py", "wheel.grease()", "$ python3"} {
		s.expect(shown)
		s.expect("Approve? (risk unknown)")
		s.enter("y")
	}
	lines := leftOnScreen(s.ends(cli.ExitDone))
	plain := anyLook.ReplaceAllString(strings.Join(lines, "\n"), "")
	holds(t, plain, "  -    squeak()\n  +    wheel.grease()\n", "every turn.", "  done, as shown", "  ok  wheel.py", "- wheel.py calls wheel.grease()", "wheel.grease()\n- it compiles\n\n— finished · 4 model calls")
	if folder := os.Getenv("DECKHAND_PICTURES"); folder != "" {
		lines = append([]string{"\x1b[32m$\x1b[0m deckhand run \"" + task + "\" --confirm"}, lines...)
		if err := os.WriteFile(filepath.Join(folder, "terminal.svg"), []byte(drawn(lines)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

var anyLook = regexp.MustCompile(`\x1b\[([0-9]*)m`)

// leftOnScreen are the lines that are there in the end, without those that were written over.
func leftOnScreen(text string) (lines []string) {
	for line := range strings.SplitSeq(strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")), "\n") {
		lines = append(lines, line[strings.LastIndex(line, "\r\x1b[K")+1:])
	}
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "\x1b[K")
	}
	return lines
}

// drawn are lines as a terminal shows them, as a picture. With times, it moves: each line appears at
// its time, and after a while all begins again. Where pictures do not move, all lines are there.
func drawn(lines []string, times ...time.Duration) string {
	const across, down, edge = 8.43, 19, 20 // of a character, of a line, and around all
	colours := map[string]string{"2": "#8b9bab", "31": "#ff8f85", "32": "#7bd6a0", "33": "#f0c674", "36": "#5cc4e0"}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 %[1]d" width="800" height="%[1]d" font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" font-size="14">`+"\n", len(lines)*down+2*edge)
	b.WriteString(`<rect x=".5" y=".5" width="799" height="99.8%" rx="10" fill="#0f161d" stroke="#3a4a59"/>` + "\n")
	for n, line := range lines {
		look, column := "", 0
		if times != nil {
			whole := times[len(times)-1] + 4*time.Second
			fmt.Fprintf(&b, `<g><animate attributeName="opacity" calcMode="discrete" values="0;1" keyTimes="0;%.3f" dur="%.1fs" repeatCount="indefinite"/>`+"\n", times[n].Seconds()/whole.Seconds(), whole.Seconds())
		}
		for line != "" {
			at := anyLook.FindStringSubmatchIndex(line)
			if at == nil {
				at = []int{len(line), len(line), len(line), len(line)}
			}
			if text := line[:at[0]]; strings.TrimSpace(text) != "" {
				colour, weight := "#e4ebf2", "400"
				if c := colours[look]; c != "" {
					colour = c
				} else if look == "1" {
					weight = "700"
				}
				fmt.Fprintf(&b, `<text x="%.1f" y="%d" fill="%s" font-weight="%s" textLength="%.1f" lengthAdjust="spacingAndGlyphs" xml:space="preserve">`,
					edge+float64(column)*across, edge+n*down+14, colour, weight, float64(utf8.RuneCountInString(text))*across)
				_ = xml.EscapeText(&b, []byte(text)) // a Builder takes everything
				b.WriteString("</text>\n")
			}
			column += utf8.RuneCountInString(line[:at[0]])
			look, line = line[at[2]:at[3]], line[at[1]:]
		}
		if times != nil {
			b.WriteString("</g>\n")
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

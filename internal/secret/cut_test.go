package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"deckhand/internal/clip"
)

// cutters are the ways in which text is cut before it is masked. n is how much is kept.
var cutters = map[string]func(s string, n int) string{
	"start":   func(s string, n int) string { return clip.Bytes(s, n) },
	"runes":   func(s string, n int) string { return clip.Runes(s, n) },
	"middle":  clip.Middle,
	"note":    clip.MiddleRunes,
	"end":     func(s string, n int) string { return "…" + clip.End(s, n) },
	"lines":   func(s string, n int) string { return "…\n" + clip.End(s, n) },
	"excerpt": func(s string, n int) string { return "…" + clip.End(clip.Start(s, len(s)-n/2), n/2) + "…" },
	"editor": func(s string, n int) string {
		return clip.Start(s, n) + "\n" + clip.Clipped + "<NOTE>Only the first part is shown.</NOTE>\n"
	},
	"sandbox": func(s string, n int) string {
		return clip.Start(s, n/2) + "\n[... Observation truncated due to length ...]\n" + clip.End(s, n/2)
	},
	"with note": func(s string, n int) string {
		return clip.Start(s, n/2) + "\n[... Observation truncated due to length ...]\n[... a note ...]\n" + clip.End(s, n/2)
	},
	"stream": func(s string, n int) string {
		return clip.Start(s, n/2) + "\n[... more output than could be shown here ...]\n" + clip.End(s, n/2)
	},
}

// shows returns a run of characters of a secret that a text shows.
func shows(text, hidden string) string {
	const most = 7
	for i := range len(hidden) - most {
		if part := hidden[i : i+most+1]; strings.Contains(text, part) {
			return part
		}
	}
	return ""
}

// Wherever a text with a secret is cut, and however it arrives, at most seven characters in a row of it are shown.
func TestCutsShowNothing(t *testing.T) {
	t.Parallel()
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	random, bare := rand.New(rand.NewPCG(1, 2)), strings.NewReplacer(" "+Mask+" ", Mask, " "+Mask, Mask, Mask+" ", Mask)
	word := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = letters[random.IntN(len(letters))]
		}
		return string(b)
	}
	for range 60 {
		value := word(8 + random.IntN(60))
		m := NewMasker(value, word(20))
		hidden := value
		switch random.IntN(4) {
		case 0:
			hidden = base64.StdEncoding.EncodeToString([]byte(value))
		case 1:
			hidden = hex.EncodeToString([]byte(value))
		}
		around := func() string {
			return strings.Repeat("plain text.\n", random.IntN(8)) + strings.Repeat("x", random.IntN(9))
		}
		text := around() + " " + hidden + " " + around()
		for name, cut := range cutters {
			for n := 8; n < len(text); n += 1 + random.IntN(4) {
				short := cut(text, n)
				if part := shows(m.String(short), hidden); part != "" {
					t.Fatalf("%s, %d: %q shows %q of %q", name, n, m.String(short), part, hidden)
				}
				if part := shows(string(m.JSON([]byte(fmt.Sprintf("%q", short)), nil)), hidden); part != "" {
					t.Fatalf("%s, %d: as JSON, %q of %q is shown", name, n, part, hidden)
				}
				var out bytes.Buffer
				w := m.Writer(&out)
				for rest := short; rest != ""; {
					n := min(len(rest), 1+random.IntN(12))
					_, _ = w.Write([]byte(rest[:n]))
					rest = rest[n:]
				}
				// A mask may cover the spaces beside it or not.
				if got, want := bare.Replace(out.String()+w.Held()), bare.Replace(m.String(short)); got != want && got != want+Mask && !strings.HasSuffix(got, Mask) {
					t.Fatalf("%s, %d: in pieces %q, as a whole %q", name, n, got, want)
				} else if part := shows(got, hidden); part != "" {
					t.Fatalf("%s, %d: in pieces, %q shows %q", name, n, got, part)
				}
			}
		}
		// A command that goes on has its output in two results.
		for i := range len(text) {
			first, second := m.Part(text[:i], false, true), m.Part(text[i:], true, false)
			var out bytes.Buffer
			w := m.Following(&out)
			for _, c := range []byte(text[i:]) {
				_, _ = w.Write([]byte{c})
			}
			for _, got := range []string{first, second, out.String() + w.Held()} {
				if part := shows(got, hidden); part != "" {
					t.Fatalf("cut at %d: %q shows %q of %q", i, got, part, hidden)
				}
			}
		}
	}
}

// Text beside a mark that is no part of a secret stays as it is, and a mark holds back nothing in a stream.
func TestCutsKeepText(t *testing.T) {
	t.Parallel()
	m := NewMasker("https://hooks.example/T0K3N-abcdefgh", canary)
	for _, text := range []string{
		"Loading https…", "see http […] then", "… and so on", "[... Observation truncated due to length ...]", "a [...", "...]", "wait…\nwait…\nwait…\n",
		canary[:3] + "…", "…" + canary[len(canary)-3:], "ends with " + canary[:6], "[", "[..", "plain \xe2\x80",
	} {
		if got := m.String(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
		var out bytes.Buffer
		w := m.Writer(&out)
		for _, c := range []byte(text) {
			_, _ = w.Write([]byte{c})
		}
		if got := out.String() + w.Held(); got != text {
			t.Errorf("in pieces, %q became %q", text, got)
		}
	}
	var out bytes.Buffer
	w := m.Writer(&out)
	if _, _ = w.Write([]byte("working… still working")); out.String() != "working… still working" {
		t.Errorf("only %q is shown", out.String())
	}
}

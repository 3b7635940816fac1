package files

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

// A text that comes in pieces is one exactly if it is one as a whole.
func FuzzTextInPieces(f *testing.F) {
	f.Add([]byte("für 😀 \xf0\x9f"), uint8(1))
	f.Add([]byte("\xed\xa0\x80\xc0\xaf\xff"), uint8(3))
	f.Fuzz(func(t *testing.T, b []byte, piece uint8) {
		var state text8
		ok := true
		for part := range bytes.SplitSeq(b, nil) { // by characters, and then in pieces that do not care
			for len(part) > 0 && ok {
				n := min(len(part), int(piece%5)+1)
				ok = state.take(part[:n])
				part = part[n:]
			}
		}
		if ok && state.whole() != utf8.Valid(b) || !ok && utf8.Valid(b) {
			t.Errorf("%q: %t %t", b, ok, state.whole())
		}
	})
}

func TestFreshNames(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int
		want string
	}{
		{"a.txt", 0, "a.txt"}, {"a.txt", 1, "a (1).txt"}, {"a.tar.gz", 12, "a.tar (12).gz"}, {"a", 2, "a (2)"}, {".profile", 1, ".profile (1)"}, {"a.", 1, "a (1)."},
		{strings.Repeat("x", 255), 1, strings.Repeat("x", 251) + " (1)"},
		{strings.Repeat("x", 251) + ".txt", 1, strings.Repeat("x", 247) + " (1).txt"},
		{strings.Repeat("ü", 127), 1, strings.Repeat("ü", 125) + " (1)"},
		{"a." + strings.Repeat("x", 253), 1, "a." + strings.Repeat("x", 249) + " (1)"},
		{strings.Repeat("\x80", 255), 1, strings.Repeat("\x80", 251) + " (1)"},
	} {
		got := nthName(c.name, c.n)
		if got != c.want || len(got) > maxName {
			t.Errorf("%q %d: %q, want %q", c.name, c.n, got, c.want)
		}
	}
}

package clip_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"deckhand/internal/clip"
)

func TestClip(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ got, want string }{
		"start of a short text":       {clip.Start("äb", 3), "äb"},
		"start, half a character":     {clip.Start("äb", 1), ""},
		"start, whole characters":     {clip.Start("aäb", 3), "aä"},
		"start, less than nothing":    {clip.Start("a", -1), ""},
		"start of four bytes":         {clip.Start("a😀", 4), "a"},
		"start, not UTF-8":            {clip.Start(strings.Repeat("\x80", 9), 8), strings.Repeat("\x80", 5)},
		"end of a short text":         {clip.End("äb", 3), "äb"},
		"end, half a character":       {clip.End("bä", 1), ""},
		"end, whole characters":       {clip.End("bäa", 3), "äa"},
		"end, nothing":                {clip.End("a", -1), ""},
		"bytes that fit":              {clip.Bytes("äb", 3), "äb"},
		"too many bytes":              {clip.Bytes("äbc", 3), "äb…"},
		"characters that fit":         {clip.Runes("äöü", 3), "äöü"},
		"too many characters":         {clip.Runes("äöüx", 3), "äöü…"},
		"no characters":               {clip.Runes("ä", 0), "…"},
		"middle of a short text":      {clip.Middle("abc", 3), "abc"},
		"middle of a long text":       {clip.Middle(strings.Repeat("a", 50)+strings.Repeat("z", 50), 20), "aaaaaa […] zzzzzz"},
		"one line":                    {clip.Line(" a\n\t b\r\nc "), "a b c"},
		"a line of white space alone": {clip.Line("\n \t"), ""},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", name, c.got, c.want)
		}
	}
}

// Whatever the length, a valid text stays valid.
func TestValidStaysValid(t *testing.T) {
	t.Parallel()
	const text = "aä€😀zä€😀"
	for n := -1; n <= len(text)+1; n++ {
		for _, got := range []string{clip.Start(text, n), clip.End(text, n), clip.Bytes(text, n), clip.Runes(text, n), clip.Middle(text, n)} {
			if !utf8.ValidString(got) {
				t.Errorf("cut at %d: %q is not valid", n, got)
			}
		}
		if got := clip.Start(text, n); len(got) > max(n, 0) || !strings.HasPrefix(text, got) {
			t.Errorf("the first %d bytes are %q", n, got)
		}
		if got := clip.End(text, n); len(got) > max(n, 0) || !strings.HasSuffix(text, got) {
			t.Errorf("the last %d bytes are %q", n, got)
		}
	}
}

// The note counts to the length.
func TestMiddleRunes(t *testing.T) {
	t.Parallel()
	for _, most := range []int{0, 1, 5, 40, 100, 999, 1000} {
		got := clip.MiddleRunes(strings.Repeat("ä", 1000), most)
		if n := utf8.RuneCountInString(got); n > max(most, 1) || most == 1000 && n != 1000 {
			t.Errorf("%d characters, want %d", n, most)
		}
	}
	if got := clip.MiddleRunes("a"+strings.Repeat("x", 500)+"z", 100); !strings.HasPrefix(got, "ax") || !strings.HasSuffix(got, "xz") || !strings.Contains(got, "402 characters are left out") {
		t.Error(got)
	}
}

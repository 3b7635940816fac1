// Package clip shortens texts for people, models and logs. No function cuts a
// character in half. It imports only the standard library, so every package may use it.
package clip

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// mark stands for what was cut off.
const mark = "…"

// Clipped is the mark of the editor of files, which models know. The masker of secrets looks for it as well.
const Clipped = "<response clipped>"

// Start returns at most the first n bytes of s, without a mark.
func Start(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n = max(n, 0)
	for back := 1; back < utf8.UTFMax && n > 0 && !utf8.RuneStart(s[n]); back++ {
		n--
	}
	return s[:n]
}

// End returns at most the last n bytes of s, without a mark.
func End(s string, n int) string {
	from := max(len(s)-max(n, 0), 0)
	for back := 1; back < utf8.UTFMax && from < len(s) && from > 0 && !utf8.RuneStart(s[from]); back++ {
		from++
	}
	return s[from:]
}

// Bytes returns the first n bytes of s, followed by "…" if there were more.
func Bytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return Start(s, n) + mark
}

// Runes returns the first n characters of s, followed by "…" if there were more.
func Runes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n--; n < 0 {
			return s[:i] + mark
		}
	}
	return s
}

// Middle returns s with its middle replaced by " […] " if it has more than n bytes.
func Middle(s string, n int) string {
	if len(s) <= n {
		return s
	}
	half := max((n-8)/2, 1)
	return Start(s, half) + " […] " + End(s, half)
}

// MiddleRunes returns s in at most n characters: if it has more, its middle is
// replaced by a note that counts what is left out.
func MiddleRunes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	note := []rune(fmt.Sprintf("\n[… %d characters are left out …]\n", len(r)-n))
	keep := n - len(note)
	if keep < 2 {
		return string(r[:max(n-1, 0)]) + mark
	}
	return string(r[:keep-keep/2]) + string(note) + string(r[len(r)-keep/2:])
}

// Line returns s on one line: each run of white space becomes one space.
func Line(s string) string { return strings.Join(strings.Fields(s), " ") }

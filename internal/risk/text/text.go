// Package text examines commands as text, before they are parsed.
package text

import (
	"strings"
	"unicode"
)

// Disguised reports whether s holds characters that make it look like another text.
func Disguised(s string) bool { return strings.ContainsFunc(s, disguises) }

// disguises reports characters that make a text look like another one.
func disguises(r rune) bool {
	switch {
	case r == '\n' || r == '\t' || r == ' ':
		return false
	case r >= 0xFE00 && r <= 0xFE0F, r == 0x115F, r == 0x1160, r == 0x3164, r == 0xFFA0: // selectors and fillers
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.IsSpace(r) || unicode.Is(unicode.Zs, r) || unicode.Is(unicode.Co, r)
}

// Nesting is an upper bound for how deep a parser would have to go. It does not
// look at quotes: what is in them counts against the limit too.
func Nesting(command string) int {
	depth, deepest := 0, 0
	for i := 0; i < len(command); i++ {
		switch command[i] {
		case '(', '{', '[':
			depth++
		case ')', '}', ']':
			depth = max(depth-1, 0)
		case '`':
			depth++ // the closing one counts as well: there are rarely many
		}
		deepest = max(deepest, depth)
	}
	for _, w := range strings.FieldsFunc(command, func(r rune) bool { return !unicode.IsLetter(r) && r != '!' }) {
		switch w {
		case "if", "while", "until", "for", "case", "select", "time", "coproc", "function", "!":
			depth++
			deepest = max(deepest, depth)
		case "fi", "done", "esac":
			depth = max(depth-1, 0)
		}
	}
	return deepest
}

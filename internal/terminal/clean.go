package terminal

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Clean is the text with everything taken out that a terminal would obey. Line
// ends and tabs stay; a carriage return inside begins a new line. It may be called on
// the parts of a text, wherever that was cut.
func Clean(text string) string {
	if !strings.ContainsFunc(text, unsafe) {
		return text
	}
	var b strings.Builder
	runes := []rune(text)
	for i, r := range runes {
		switch {
		case r == '\r':
			if i+1 < len(runes) && runes[i+1] != '\n' {
				b.WriteByte('\n')
			}
		case r < 0x20 && unsafe(r):
			b.WriteRune(0x2400 + r) // the picture of the control character
		case r == 0x7f:
			b.WriteRune(0x2421)
		case unsafe(r):
			b.WriteRune(unicode.ReplacementChar)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// JSON escapes the terminal control characters in a JSON text. They can occur only in strings.
func JSON(text []byte) []byte {
	if !bytes.ContainsFunc(text, unsafe) {
		return text
	}
	var out []byte
	for _, r := range string(text) {
		switch {
		case !unsafe(r) || r == '\r':
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// Inline is Clean for what has to stay on one line.
func Inline(text string) string {
	return strings.Join(strings.FieldsFunc(Clean(text), func(r rune) bool { return r == '\n' || r == '\t' }), " ")
}

// unsafe is true for what controls a terminal: the control characters, the
// second set of them, and what changes the direction of writing or hides
// characters, so that a command could look like another one.
func unsafe(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case unicode.IsControl(r), r == 0x2028, r == 0x2029, r == 0xfeff, r == 0x061c, r == 0x180e:
		return true
	}
	return r >= 0x200b && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2060 && r <= 0x206f || r >= 0xfff0 && r <= 0xfffb || r >= 0xe0000 && r <= 0xe0fff
}

// cells is how many columns a character takes up.
func cells(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case r >= 0x1100 && (r <= 0x115f || r >= 0x2e80 && r <= 0xa4cf || r >= 0xac00 && r <= 0xd7a3 || r >= 0xf900 && r <= 0xfaff ||
		r >= 0xfe30 && r <= 0xfe6f || r >= 0xff00 && r <= 0xff60 || r >= 0xffe0 && r <= 0xffe6 || r >= 0x1f300 && r <= 0x1faff || r >= 0x20000 && r <= 0x3fffd):
		return 2
	}
	return 1
}

// columns is how many columns a text takes up that has no line end.
func columns(text string) int {
	n := 0
	for _, r := range text {
		if r == '\t' {
			n += 8 - n%8
			continue
		}
		n += cells(r)
	}
	return n
}

// breakAt is where a line is broken that is wider than so many columns: after
// the last space, or where it must be.
func breakAt(line string, width int) int {
	used, space := 0, 0
	for i, r := range line {
		n := cells(r)
		if r == '\t' {
			n = 8 - used%8
		}
		if used+n > width && i > 0 {
			if space > 0 {
				return space
			}
			return i
		}
		used += n
		if r == ' ' {
			space = i + 1
		}
	}
	return len(line)
}

// clip cuts a line that is wider than so many columns.
func clip(line string, width int) string {
	used, cut := 0, 0
	for i, r := range line {
		n := cells(r)
		if r == '\t' {
			n = 8 - used%8
		}
		if used+n > width {
			return line[:cut] + "…"
		}
		if used += n; used < width {
			cut = i + len(string(r))
		}
	}
	return line
}

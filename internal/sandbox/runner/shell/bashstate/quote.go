package bashstate

import (
	"fmt"
	"strings"
)

// Text is one word on one line for the %b of printf. Bash takes minutes for a long $'...' with many quotes.
func Text(text string) string { return escaped(text, "'", `\0%03o`) }

// Quote makes one word on one line of any text.
func Quote(text string) string { return escaped(text, "$'", `\%03o`) }

func escaped(text, begin, octal string) string {
	var b strings.Builder
	b.Grow(len(text) + 8)
	b.WriteString(begin)
	for i := range len(text) {
		switch c := text[i]; {
		case c == '\n':
			b.WriteString(`\n`)
		case c < ' ', c == 0x7f, c == '\'', c == '\\', c == '!': // ! would be looked up in a history that the user turned on
			fmt.Fprintf(&b, octal, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

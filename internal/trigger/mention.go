package trigger

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// mentions is true if a Markdown text calls a name: as a word of its own, and
// neither in a quotation nor in code, where people write about the name and not
// to it. The name begins with @.
func mentions(text, name string) bool {
	m := markdown{}
	for line := range strings.Lines(text) {
		if prose := m.prose(strings.TrimRight(line, "\r\n")); called(prose, name) {
			return true
		}
	}
	return false
}

// markdown reads a text line by line and knows where code is.
type markdown struct {
	fence   string // what ends the code block, "" outside of one
	comment bool   // within <!-- and -->
	blank   bool   // the line before was blank, or indented code
	begun   bool
}

// prose is what of a line is neither code nor quoted. Code within a line is
// replaced by a space.
func (m *markdown) prose(line string) string {
	first := !m.begun
	m.begun = true
	text := strings.TrimLeft(line, " ")
	indent := len(line) - len(text)
	switch {
	case m.comment:
		_, rest, ended := strings.Cut(line, "-->")
		if m.comment = !ended; m.comment {
			return ""
		}
		return m.prose(rest)
	case m.fence != "":
		if end := strings.TrimRight(text, " \t"); indent < 4 && len(end) >= len(m.fence) && strings.Trim(end, m.fence[:1]) == "" {
			m.fence = ""
		}
		return ""
	case strings.TrimSpace(line) == "":
		m.blank = true
		return ""
	case (indent >= 4 || strings.HasPrefix(text, "\t")) && (m.blank || first):
		return "" // and what follows is code as well, while it is indented
	}
	m.blank = false
	if f := fenceOf(text); f != "" {
		m.fence = f
		return ""
	}
	if strings.HasPrefix(text, ">") {
		return ""
	}
	return m.without(text)
}

// fenceOf is the fence that a line opens, "" if it opens none.
func fenceOf(text string) string {
	for _, c := range []string{"`", "~"} {
		n := len(text) - len(strings.TrimLeft(text, c))
		if n >= 3 && (c == "~" || !strings.Contains(text[n:], "`")) {
			return text[:n]
		}
	}
	return ""
}

// without removes code and comments from within a line.
func (m *markdown) without(text string) string {
	var out strings.Builder
	for {
		i := strings.IndexAny(text, "`<")
		if i < 0 {
			out.WriteString(text)
			return out.String()
		}
		out.WriteString(text[:i])
		text = text[i:]
		if text[0] == '<' {
			rest, opens := strings.CutPrefix(text, "<!--")
			if !opens {
				out.WriteByte('<')
				text = text[1:]
				continue
			}
			var ended bool
			if _, text, ended = strings.Cut(rest, "-->"); !ended {
				m.comment = true
				return out.String()
			}
			continue
		}
		ticks := text[:len(text)-len(strings.TrimLeft(text, "`"))]
		text = text[len(ticks):]
		if end := closing(text, len(ticks)); end >= 0 {
			out.WriteByte(' ')
			text = text[end+len(ticks):]
		}
	}
}

// closing is where a run of exactly n backticks begins, -1 if there is none.
func closing(text string, n int) int {
	for at := 0; ; {
		i := strings.IndexByte(text[at:], '`')
		if i < 0 {
			return -1
		}
		at += i
		run := len(text[at:]) - len(strings.TrimLeft(text[at:], "`"))
		if run == n {
			return at
		}
		at += run
	}
}

// called is true if the name stands in the text as a word of its own.
func called(text, name string) bool {
	for at := 0; at+len(name) <= len(text); at++ {
		if text[at] != '@' || !strings.EqualFold(text[at:at+len(name)], name) {
			continue
		}
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		if at > 0 && (wordly(before) || strings.ContainsRune("@./-+\\", before)) {
			continue
		}
		if ends(text[at+len(name):]) {
			return true
		}
	}
	return false
}

// ends is true if a name cannot go on with this text: a dot ends a sentence, but
// not a name if letters follow.
func ends(rest string) bool {
	r, size := utf8.DecodeRuneInString(rest)
	switch {
	case rest == "":
		return true
	case wordly(r) || strings.ContainsRune("-/@", r):
		return false
	case r == '.':
		next, _ := utf8.DecodeRuneInString(rest[size:])
		return rest[size:] == "" || !wordly(next)
	}
	return true
}

func wordly(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// openFence is what closes a code block that the text leaves open, "" if it leaves none.
func openFence(text string) string {
	m := markdown{}
	for line := range strings.Lines(text) {
		m.prose(strings.TrimRight(line, "\r\n"))
	}
	return m.fence
}

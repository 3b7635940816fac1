package edit

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"deckhand/internal/clip"
)

// lines is a text whose lines may end in \r\n. Models write \n, so that is what
// they see and what is searched; what is not changed keeps the ends it has.
type lines struct {
	text string // as it is
	seen string // with \n alone
	end  string // what most lines end with
}

func cut(s string) lines {
	l := lines{text: s, seen: s, end: "\n"}
	n := strings.Count(s, "\r\n")
	if n == 0 {
		return l
	}
	l.seen = strings.ReplaceAll(s, "\r\n", "\n")
	if 2*n >= strings.Count(s, "\n") {
		l.end = "\r\n"
	}
	return l
}

// crlf is true if there are lines that end in \r\n.
func (l *lines) crlf() bool { return len(l.text) != len(l.seen) }

// asSeen is what a text from outside looks like when it is compared with ours.
func (l *lines) asSeen(s string) string {
	if !l.crlf() {
		return s
	}
	return strings.ReplaceAll(s, "\r\n", "\n")
}

// at translates a place in seen to the place in text.
func (l *lines) at(seen int) int {
	if !l.crlf() {
		return seen
	}
	skipped, from := 0, 0
	for {
		i := strings.Index(l.text[from:], "\r\n")
		if i < 0 || from+i-skipped >= seen {
			return seen + skipped
		}
		from += i + 2
		skipped++
	}
}

// replace puts s in the place of seen[from:to] and returns the whole text.
func (l *lines) replace(from, to int, s string) string {
	if l.crlf() {
		s = strings.ReplaceAll(l.asSeen(s), "\n", l.end)
	}
	return l.text[:l.at(from)] + s + l.text[l.at(to):]
}

// count is how many lines there are; an end of line at the end begins no new one.
func (l *lines) count() int { return countLines(l.seen) }

func countLines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}

// line is the number of the line that a place in seen is on.
func (l *lines) line(seen int) int { return 1 + strings.Count(l.seen[:seen], "\n") }

// after is the place in seen behind line n.
func (l *lines) after(n int) int {
	at := 0
	for range n {
		i := strings.IndexByte(l.seen[at:], '\n')
		if i < 0 {
			return len(l.seen)
		}
		at += i + 1
	}
	return at
}

const clipped = clip.Clipped + "<NOTE>Only the first part is shown, to save space. "

// number shows lines first to last as `cat -n` does. If it is too much, clipped
// and what to do is added.
func (l *lines) number(first, last int, what string) string {
	var out strings.Builder
	left := maxShown
	rest := l.seen[l.after(first-1):]
	for n := first; n <= last; n++ {
		line, more, _ := strings.Cut(rest, "\n")
		rest = more
		head := fmt.Sprintf("%6d\t", n)
		room := left - len(head) - 1
		if room > 0 || line == "" && room == 0 {
			shown := prefix(line, room)
			out.WriteString(head + shown + "\n")
			left = room - utf8.RuneCountInString(shown)
			if len(shown) == len(line) {
				continue
			}
		}
		out.WriteString(clipped + what + "</NOTE>\n")
		break
	}
	return out.String()
}

// prefix is the first n characters.
func prefix(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// Package cut finds where texts were cut, and what is left of other texts there.
package cut

import (
	"strings"

	"deckhand/internal/clip"
)

const (
	ellipsis = "…"
	openMark = "[..."
	endMark  = "...]"
	// maxMark is how long a mark in brackets can be, between its ends.
	maxMark = 200
	// Around are the characters between a mark and the text.
	Around = " \t\r\n[]"
)

// Span is a part of a text: From is inclusive, To is exclusive.
type Span struct{ From, To int }

// Marks lists the marks of a text. What follows open may become one when more text follows.
func Marks(s string) (all []Span, open int) {
	// The next mark of each kind is searched for once.
	dots, editor, bracket := next{mark: ellipsis}, next{mark: clip.Clipped}, next{mark: openMark}
	for at := 0; at < len(s); {
		i, mark := dots.in(s, at), ellipsis
		if n := editor.in(s, at); n < i {
			i, mark = n, clip.Clipped
		}
		b := bracket.in(s, at)
		switch {
		case i == len(s) && b == len(s):
			return all, unfinished(s, at)
		case i < b:
			at = i
			all = append(all, Span{at, at + len(mark)})
			at += len(mark)
		default:
			at = b
			rest := s[at+len(openMark) : min(len(s), at+len(openMark)+maxMark)]
			line, _, whole := strings.Cut(rest, "\n")
			if n := strings.Index(line, endMark); n >= 0 {
				all = append(all, Span{at, at + len(openMark) + n + len(endMark)})
				at += len(openMark) + n + len(endMark)
				continue
			}
			if !whole && len(rest) < maxMark {
				return all, at
			}
			at += len(openMark)
		}
	}
	return all, len(s)
}

// next is the next place of a mark.
type next struct {
	mark  string
	at    int
	known bool
}

// in returns the first place of the mark from a position on; the length of the text if there is none.
func (n *next) in(s string, from int) int {
	if n.known && n.at >= from {
		return n.at
	}
	n.at, n.known = len(s), true
	if i := strings.Index(s[from:], n.mark); i >= 0 {
		n.at = from + i
	}
	return n.at
}

// unfinished is where the first bytes of a mark at the end of a text begin.
func unfinished(s string, from int) int {
	for n := min(len(clip.Clipped)-1, len(s)-from); n > 0; n-- {
		if end := s[len(s)-n:]; strings.HasPrefix(openMark, end) || strings.HasPrefix(ellipsis, end) || strings.HasPrefix(clip.Clipped, end) {
			return len(s) - n
		}
	}
	return len(s)
}

// Ending returns how much of the beginning of a text is the end of one of the forms, each of which is followed by a 0 byte
// (Knuth-Morris-Pratt).
func Ending(text, forms string) int {
	back := make([]int, len(text)+1) // the longest beginning that is also an end, for each length
	for i, n := 1, 0; i < len(text); i++ {
		for n > 0 && text[i] != text[n] {
			n = back[n]
		}
		if text[i] == text[n] {
			n++
		}
		back[i+1] = n
	}
	longest, n := 0, 0
	for i := range len(forms) {
		c := forms[i]
		if c == 0 { // a form ends
			longest, n = max(longest, n), 0
			continue
		}
		for n > 0 && (n == len(text) || text[n] != c) {
			n = back[n]
		}
		if text[n] == c {
			n++
		}
	}
	return longest
}

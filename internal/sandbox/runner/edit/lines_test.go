package edit

import (
	"strings"
	"testing"
)

// Replacing what a text holds once gives the text with it replaced, whatever
// its lines end with; nothing else is touched.
func FuzzReplace(f *testing.F) {
	f.Add("a\r\nb\nc", "b\n", "x\ny")
	f.Add("\r\n\r\r\n", "\r", "\n")
	f.Add("aXa", "X", "\r\n")
	f.Fuzz(func(t *testing.T, text, old, with string) {
		l := cut(text)
		seen := l.asSeen(old)
		if old == "" || strings.Count(l.seen, seen) != 1 {
			t.Skip()
		}
		at, lines := l.find(seen)
		if len(lines) == 0 || lines[0] != l.line(at) {
			t.Fatalf("found at %d, on lines %v", at, lines)
		}
		if got := l.replace(at, at+len(seen), old); !l.crlf() && got != text {
			t.Fatalf("replaced by itself: %q", got)
		}
		got := l.replace(at, at+len(seen), with)
		if head := text[:l.at(at)]; !strings.HasPrefix(got, head) || cut(head).seen != l.seen[:at] && !strings.HasSuffix(head, "\r") {
			t.Fatalf("the text before was changed: %q in %q", got, text)
		}
		if tail := text[l.at(at+len(seen)):]; !strings.HasSuffix(got, tail) {
			t.Fatalf("the text behind was changed: %q in %q", got, text)
		}
	})
}

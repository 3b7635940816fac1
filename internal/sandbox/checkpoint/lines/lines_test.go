package lines_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"deckhand/internal/sandbox/checkpoint/lines"
)

func TestCount(t *testing.T) {
	long := func(from, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "line %d\n", from+i)
		}
		return b.String()
	}
	for name, test := range map[string]struct {
		before, after  string
		added, removed int
	}{
		"new":          {"", "a\nb\n", 2, 0},
		"deleted":      {"a\nb", "", 0, 2},
		"same":         {"a\nb\n", "a\nb\n", 0, 0},
		"changed line": {"a\nb\nc\n", "a\nx\nc\n", 1, 1},
		"no newline":   {"a\nb", "a\nb\nc", 1, 0},
		"moved":        {"a\nb\nc\nd\n", "c\nd\na\nb\n", 2, 2},
		"long":         {long(0, 5000), "first\n" + long(100, 5000) + "last\n", 102, 100},
	} {
		t.Run(name, func(t *testing.T) {
			if added, removed := lines.Count([]byte(test.before), []byte(test.after)); added != test.added || removed != test.removed {
				t.Errorf("+%d -%d, want +%d -%d", added, removed, test.added, test.removed)
			}
		})
	}
}

func TestBinary(t *testing.T) {
	if lines.Binary([]byte("text\n")) || !lines.Binary([]byte("a\x00b")) || lines.Binary(nil) {
		t.Error("text and binary content are confused")
	}
}

func TestRenames(t *testing.T) {
	file := func(text string) lines.File {
		return lines.File{Hash: sha256.Sum256([]byte(text)), Size: int64(len(text)), Text: []byte(text)}
	}
	body := strings.Repeat("some words in a line\nand other words\n", 5) + "a\nb\nc\nd\n"
	large := lines.File{Hash: [32]byte{1}, Size: 1 << 30} // its content is not read
	removed := []lines.File{file(body), file("gone\n"), file(""), large, file("one\ntwo\nthree\nfour\n")}
	added := []lines.File{file("one\ntwo\nthree\nfive\n"), file(""), large, file("new\n"), file(body)}
	if got := lines.Renames(removed, added); !slices.Equal(got, []int{4, -1, 3, -1, 0}) {
		t.Errorf("pairs %v", got)
	}
	many := make([]lines.File, 1000)
	for i := range many {
		many[i] = file(fmt.Sprint(i, "\n", string(bytes.Repeat([]byte("x\n"), 50))))
	}
	for i, at := range lines.Renames(many[:500], many[500:]) {
		if at >= 0 {
			t.Fatalf("file %d is paired although too many files changed", i)
		}
	}
}

// Package gitignore decides which files a .gitignore file hides, by git's own
// rules: the last pattern that fits wins, and nothing below a hidden folder
// comes back. Names and patterns are bytes, as they are for git.
package gitignore

import (
	"strings"
)

// MaxPatterns is how many patterns of a file count, so that a hostile one cannot
// make every look at a folder expensive. Those that people write are far below.
const MaxPatterns = 2000

// List is the patterns of one .gitignore file. The zero List hides nothing.
type List struct{ patterns []pattern }

// pattern is one line.
type pattern struct {
	// parts are the pieces between slashes. A part "**" fits any number of folders.
	parts []string
	// back shows again what an earlier pattern hid; folder fits folders only.
	back, folder bool
}

// Parse reads the text of a .gitignore file. There is no wrong text: what makes
// no sense fits nothing.
func Parse(text string) *List {
	l := &List{}
	text = strings.TrimPrefix(text, "\ufeff")
	for line := range strings.SplitSeq(text, "\n") {
		if len(l.patterns) == MaxPatterns {
			break
		}
		if p, ok := parseLine(strings.TrimSuffix(line, "\r")); ok {
			l.patterns = append(l.patterns, p)
		}
	}
	return l
}

func parseLine(line string) (pattern, bool) {
	var p pattern
	if strings.HasPrefix(line, "#") {
		return p, false
	}
	line = trimBlanks(line)
	if rest, ok := strings.CutPrefix(line, "!"); ok {
		p.back, line = true, rest
	}
	if rest, ok := strings.CutSuffix(line, "/"); ok {
		p.folder, line = true, rest
	}
	if line == "" {
		return p, false
	}
	// A slash at the beginning or in the middle ties the pattern to the root;
	// without one it fits at any depth.
	if !strings.Contains(line, "/") {
		p.parts = []string{"**", line}
		return p, true
	}
	p.parts = strings.Split(strings.TrimPrefix(line, "/"), "/")
	return p, true
}

// trimBlanks takes away blanks at the end that are not escaped.
func trimBlanks(line string) string {
	end := 0 // after the last character that stays
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
		case '\\':
			if i++; i >= len(line) {
				return line // a single backslash at the end
			}
			end = i + 1
		default:
			end = i + 1
		}
	}
	return line[:end]
}

// Hides reports whether a file, or a folder if dir is true, is hidden: by a
// pattern that fits it, or one of the folders it lies in. The path is relative
// to where the .gitignore file lies, with slashes and without dots.
func (l *List) Hides(path string, dir bool) bool {
	if l == nil || len(l.patterns) == 0 {
		return false
	}
	parts := strings.Split(path, "/")
	for n := 1; n <= len(parts); n++ {
		if l.hides(parts[:n], dir || n < len(parts)) {
			return true
		}
	}
	return false
}

// hides looks at one path alone.
func (l *List) hides(path []string, dir bool) bool {
	for i := len(l.patterns) - 1; i >= 0; i-- {
		p := &l.patterns[i]
		if p.folder && !dir {
			continue
		}
		if fits(p.parts, path) {
			return !p.back
		}
	}
	return false
}

// fits holds the pieces of a pattern against those of a path. Only the last **
// has to be tried again: whatever an earlier one could take, this one can.
func fits(pattern, path []string) bool {
	star, from := -1, 0
	p, s := 0, 0
	for s < len(path) {
		switch {
		case p < len(pattern) && pattern[p] == "**":
			star, from = p, s
			if p++; p == len(pattern) {
				return p == 1 || s < len(path) // a/** is everything in a, and not a itself
			}
			continue
		case p < len(pattern) && glob(pattern[p], path[s]):
			p, s = p+1, s+1
			continue
		case star < 0:
			return false
		}
		from++
		p, s = star+1, from
	}
	return p == len(pattern)
}

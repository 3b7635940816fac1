package search

import (
	"context"
	"path"
	"regexp"
	"strings"

	"deckhand/internal/sandbox"
)

const (
	// maxPattern is the longest pattern.
	maxPattern = 1000
	// maxPaths is how many paths an answer lists.
	maxPaths = 200
)

// Glob finds names.
func (s *Search) Glob(ctx context.Context, p sandbox.GlobParams) (sandbox.GlobResult, error) {
	var r sandbox.GlobResult
	pattern, folders := strings.CutSuffix(p.Pattern, "/")
	at, anchored := p.Path, false
	if path.IsAbs(pattern) {
		at, pattern = split(pattern)
		anchored = true
	}
	fits, err := compile(pattern, anchored)
	if err != nil {
		return r, err
	}
	from, err := s.place(at)
	if err != nil {
		return r, err
	}
	defer from.close()
	if !from.file.IsDir() {
		return r, mistakef("%s is a file, and names are looked for in folders.", from.path)
	}
	limited, cancel := context.WithTimeout(ctx, s.limits.time)
	defer cancel()
	list, unfinished := s.walk(limited, from, func(rel string, f sandbox.File) bool {
		if folders {
			return f.IsDir() && fits.MatchString(rel)
		}
		return named(f) && fits.MatchString(rel)
	})
	if err := ctx.Err(); err != nil {
		return r, err
	}
	r = sandbox.GlobResult{Root: from.at(""), Total: len(list), Unfinished: unfinished, Paths: [][]byte{}}
	for _, f := range list[:min(len(list), maxPaths)] {
		r.Paths = append(r.Paths, from.at(f.rel))
	}
	return r, nil
}

// special are the characters that mean something in a pattern.
const special = `*?[{\`

// split cuts an absolute pattern into the folder to look in and the rest.
func split(pattern string) (dir, rest string) {
	at := strings.IndexAny(pattern, special)
	if at < 0 {
		at = len(pattern)
	}
	slash := strings.LastIndexByte(pattern[:at], '/')
	return pattern[:slash+1], pattern[slash+1:]
}

// compile makes a regular expression of a glob: that takes no more time than
// the length of a path, whatever the pattern is. It is held against paths below
// the place; a pattern without a slash may begin at any folder, unless it is
// anchored.
func compile(pattern string, anchored bool) (*regexp.Regexp, error) {
	whole := pattern
	switch {
	case pattern == "":
		return nil, mistake("The glob pattern is empty. Use *.go for names, or src/**/*.go for paths.")
	case len(pattern) > maxPattern:
		return nil, mistakef("The glob pattern has %d characters, and at most %d are allowed.", len(pattern), maxPattern)
	case strings.HasPrefix(pattern, "/"), strings.HasPrefix(pattern, "./"):
		_, pattern, _ = strings.Cut(pattern, "/")
		anchored = true
	}
	t := &translation{pattern: pattern}
	t.out.WriteString(`(?s)\A`)
	if !anchored && !strings.Contains(pattern, "/") {
		t.out.WriteString(`(?:.*/)?`)
	}
	for t.at < len(pattern) {
		t.next()
	}
	t.out.WriteString(`\z`)
	re, err := regexp.Compile(t.out.String())
	if err != nil || t.open > 0 {
		return nil, mistakef("The glob pattern %q makes no sense: look at its brackets.", whole)
	}
	return re, nil
}

// translation is a glob that becomes a regular expression.
type translation struct {
	pattern string
	at      int
	open    int // braces
	out     strings.Builder
}

// next translates one character, or what belongs together.
func (t *translation) next() {
	rest := t.pattern[t.at:]
	switch c := rest[0]; {
	case c == '*':
		t.star(rest)
		return
	case c == '?':
		t.out.WriteString(`[^/]`)
	case c == '[':
		if n := t.set(rest); n > 0 {
			t.at += n
			return
		}
		t.out.WriteString(`\[`)
	case c == '{':
		t.open++
		t.out.WriteString(`(?:`)
	case c == ',' && t.open > 0:
		t.out.WriteByte('|')
	case c == '}' && t.open > 0:
		t.open--
		t.out.WriteByte(')')
	case c == '\\' && len(rest) > 1:
		t.at++
		t.literal(rest[1:])
		return
	default:
		t.literal(rest)
		return
	}
	t.at++
}

// literal takes the first character as it is.
func (t *translation) literal(rest string) {
	for i, r := range rest {
		if i > 0 {
			rest = rest[:i]
			break
		}
		if r < 0x80 {
			rest = rest[:1]
			break
		}
	}
	t.out.WriteString(regexp.QuoteMeta(strings.ToValidUTF8(rest, "\uFFFD")))
	t.at += len(rest)
}

// star translates * and **. Two stars mean folders only if they stand alone
// between slashes.
func (t *translation) star(rest string) {
	stars := len(rest) - len(strings.TrimLeft(rest, "*"))
	begins := t.at == 0 || strings.IndexByte("/{,", t.pattern[t.at-1]) >= 0
	after := rest[stars:]
	t.at += stars
	switch {
	case stars < 2 || !begins:
		t.out.WriteString(`[^/]*`)
	case strings.HasPrefix(after, "/"):
		t.out.WriteString(`(?:.*/)?`)
		t.at++
	case after == "" || after[0] == '}' || after[0] == ',':
		t.out.WriteString(`.*`)
	default:
		t.out.WriteString(`[^/]*`)
	}
}

// set translates a set like [a-z] or [!0-9] and says how long it is, 0 if it has no end.
func (t *translation) set(rest string) int {
	negated := strings.HasPrefix(rest[1:], "!") || strings.HasPrefix(rest[1:], "^")
	from := 1
	if negated {
		from++
	}
	end := strings.IndexByte(rest[min(from+1, len(rest)):], ']')
	if end < 0 {
		return 0
	}
	end += from + 1
	t.out.WriteByte('[')
	if negated {
		t.out.WriteString(`^/`)
	}
	for _, r := range rest[from:end] {
		if strings.ContainsRune(`\[]^&~:`, r) {
			t.out.WriteByte('\\')
		}
		t.out.WriteRune(r)
	}
	t.out.WriteByte(']')
	return end + 1
}

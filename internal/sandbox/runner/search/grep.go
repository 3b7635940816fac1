package search

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/runner/edit/text"
)

const (
	// maxFile is the largest file that is searched.
	maxFile = 10 << 20
	// maxSteps bounds the size of a regular expression: each character of a line
	// may cost so many steps, and nothing can interrupt them.
	maxSteps = 5000
	// maxLine is how much of a line is searched, for the same reason.
	maxLine = 64 << 10
	// maxShown is how many characters of a line are shown.
	maxShown = 300
	// maxLines and maxInFile are how many lines that fit an answer holds, of all
	// files and of one.
	maxLines, maxInFile = 200, 40
	// maxContext is how many lines around them.
	maxContext = 10
)

// Grep finds lines.
func (s *Search) Grep(ctx context.Context, p sandbox.GrepParams) (sandbox.GrepResult, error) {
	var r sandbox.GrepResult
	re, err := expression(p.Pattern, p.IgnoreCase)
	if err != nil {
		return r, err
	}
	include := regexp.MustCompile("")
	if p.Include != "" {
		if include, err = compile(p.Include, false); err != nil {
			return r, err
		}
	}
	from, err := s.place(p.Path)
	if err != nil {
		return r, err
	}
	defer from.close()
	limited, cancel := context.WithTimeout(ctx, s.limits.time)
	defer cancel()
	r = sandbox.GrepResult{Root: from.at(""), Files: []sandbox.GrepFile{}}
	list, unfinished := s.walk(limited, from, func(rel string, f sandbox.File) bool {
		return regular(f) && include.MatchString(rel)
	})
	r.Unfinished = unfinished
	g := &grep{place: from, re: re, context: min(max(p.Context, 0), maxContext), result: &r}
	g.prefix, _ = re.LiteralPrefix()
	for _, f := range list {
		if limited.Err() != nil {
			r.Unfinished = true
			break
		}
		if g.shown >= maxLines {
			r.More = true
			break
		}
		g.file(limited, f)
	}
	return r, ctx.Err()
}

// expression compiles a pattern. It is held against lines, so ^ and $ are theirs.
func expression(pattern string, fold bool) (*regexp.Regexp, error) {
	switch {
	case pattern == "":
		return nil, mistake("The pattern is empty. Give a regular expression to look for.")
	case len(pattern) > maxPattern:
		return nil, mistakef("The pattern has %d characters, and at most %d are allowed.", len(pattern), maxPattern)
	}
	flags := syntax.Perl
	whole := "(?m)" + pattern
	if fold {
		whole = "(?mi)" + pattern
	}
	tree, err := syntax.Parse(whole, flags)
	if err != nil {
		why := err.Error()
		var e *syntax.Error
		if errors.As(err, &e) {
			why = e.Code.String() + " at " + e.Expr
		}
		return nil, mistakef("The pattern is not a valid regular expression (RE2 syntax, without look-around and back-references): %s. Put a \\ before characters that are meant literally.", why)
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil || len(prog.Inst) > maxSteps {
		return nil, mistake("The pattern is too complicated. Use smaller repetitions or fewer alternatives.")
	}
	return regexp.Compile(whole)
}

// grep is a search that goes on.
type grep struct {
	*place
	re      *regexp.Regexp
	prefix  string // that every match begins with
	context int
	shown   int // lines that fit, in the result
	result  *sandbox.GrepResult
}

// file searches a file. What cannot be read has nothing.
func (g *grep) file(ctx context.Context, f found) {
	if f.size > maxFile {
		g.result.Large++
		return
	}
	content, ok := g.read(f)
	if !ok {
		return
	}
	out := sandbox.GrepFile{Path: g.at(f.rel)}
	last := 0 // the last line that is in out
	for l := range g.matches(ctx, content) {
		out.Matches++
		if out.Matches > maxInFile || g.shown >= maxLines {
			continue
		}
		g.shown++
		last = g.add(&out, content, l, last)
	}
	if out.Matches > 0 {
		g.result.Matches += out.Matches
		g.result.Files = append(g.result.Files, out)
	}
}

// read gives a text file's content, and false for a binary one.
func (g *grep) read(f found) (string, bool) {
	file, _, err := g.tree.Open([]byte(path.Join(g.real, f.rel)))
	if err != nil {
		return "", false
	}
	defer file.Close()
	in := io.LimitReader(file, maxFile)
	b := make([]byte, 0, min(f.size, maxFile)+512)
	head := b[:min(cap(b), 8<<10)]
	n, err := io.ReadFull(in, head)
	if bytes.IndexByte(head[:n], 0) >= 0 && !bytes.HasPrefix(head, []byte("\xff\xfe")) && !bytes.HasPrefix(head, []byte("\xfe\xff")) {
		return "", false // it is not worth reading the rest
	}
	buf := bytes.NewBuffer(b[:n])
	if err == nil {
		_, err = buf.ReadFrom(in)
	}
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return "", false
	}
	content, _, err := text.Decode(buf.Bytes())
	return content, err == nil
}

// line is where a line lies in a file's content.
type line struct {
	number     int // from 1
	start, end int // without its end
	from, to   int // the match in it
}

// matches gives the lines that fit. Where every match begins with the same
// characters, only lines that have them are looked at.
func (g *grep) matches(ctx context.Context, content string) func(func(line) bool) {
	return func(yield func(line) bool) {
		number, at := 1, 0
		for at < len(content) && ctx.Err() == nil {
			if g.prefix != "" {
				i := strings.Index(content[at:], g.prefix)
				if i < 0 {
					return
				}
				begin := at + strings.LastIndexByte(content[at:at+i], '\n') + 1
				number += strings.Count(content[at:begin], "\n")
				at = begin
			}
			l := line{number: number, start: at, end: lineEnd(content, at)}
			searched := content[l.start:min(l.end, l.start+maxLine)]
			if m := g.re.FindStringIndex(strings.TrimSuffix(searched, "\r")); m != nil {
				l.from, l.to = m[0], m[1]
				if !yield(l) {
					return
				}
			}
			number, at = number+1, l.end+1
		}
	}
}

func lineEnd(content string, start int) int {
	if i := strings.IndexByte(content[start:], '\n'); i >= 0 {
		return start + i
	}
	return len(content)
}

// add puts a line that fits into the result, with the lines around it. They may
// be there already: last is the last that is. A line that only stood around
// another and fits itself is marked.
func (g *grep) add(out *sandbox.GrepFile, content string, l line, last int) int {
	if l.number <= last {
		i := len(out.Lines) - 1 - (last - l.number)
		out.Lines[i].Match, out.Lines[i].Text = true, excerpt(content[l.start:l.end], l.from, l.to)
	} else {
		before, start := []sandbox.GrepLine{}, l.start
		for n := l.number - 1; n > last && n >= l.number-g.context; n-- {
			end := start - 1
			start = strings.LastIndexByte(content[:end], '\n') + 1
			before = append(before, sandbox.GrepLine{Number: n, Text: excerpt(content[start:end], 0, 0)})
		}
		for i := len(before) - 1; i >= 0; i-- {
			out.Lines = append(out.Lines, before[i])
		}
		out.Lines = append(out.Lines, sandbox.GrepLine{Number: l.number, Text: excerpt(content[l.start:l.end], l.from, l.to), Match: true})
		last = l.number
	}
	// What follows, as far as it is not there yet.
	number, start := l.number, l.end+1
	for number < l.number+g.context && start < len(content) {
		number++
		end := lineEnd(content, start)
		if number > last {
			out.Lines = append(out.Lines, sandbox.GrepLine{Number: number, Text: excerpt(content[start:end], 0, 0)})
			last = number
		}
		start = end + 1
	}
	return last
}

// excerpt is a line, or the part of a long one that is around the match.
func excerpt(s string, from, to int) string {
	s = strings.TrimSuffix(s, "\r")
	if len(s) <= maxShown {
		return s
	}
	begin := max(0, from-maxShown/4)
	if to <= maxShown { // the beginning tells more than what follows
		begin = 0
	}
	for begin < len(s) && !utf8.RuneStart(s[begin]) {
		begin++
	}
	end := min(len(s), begin+maxShown)
	for end < len(s) && !utf8.RuneStart(s[end]) {
		end--
	}
	out := s[begin:end]
	if begin > 0 {
		out = "…" + out
	}
	if end < len(s) {
		out += "…"
	}
	return out
}

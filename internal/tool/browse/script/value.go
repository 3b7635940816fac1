package script

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// kind is what a value is.
type kind int

const (
	textKind kind = iota + 1
	numberKind
	wordKind // True, False, None
	listKind
)

// value is a literal. Numbers and words keep their spelling as text.
type value struct {
	kind   kind
	text   string
	number float64
	list   []value
}

// value reads a literal.
func (p *parser) value(depth int) (value, error) {
	switch c := p.peek(); {
	case c == '\'' || c == '"':
		return p.quoted(false)
	case c == '[' || c == '(':
		return p.list(depth)
	case c == '-' || c == '+' || c == '.' || c >= '0' && c <= '9':
		return p.number()
	}
	if rest := p.source[p.at:]; len(rest) > 1 && (rest[0] == 'r' || rest[0] == 'R') && (rest[1] == '\'' || rest[1] == '"') {
		p.at++
		return p.quoted(true)
	}
	from := p.at
	switch word := p.name(); word {
	case "True", "False", "None", "true", "false", "null":
		return value{kind: wordKind, text: word}, nil
	}
	p.at = from
	return value{}, fmt.Errorf("expected a quoted string, a number or a list, not %s", p.next())
}

// list reads values up to the closing bracket.
func (p *parser) list(depth int) (value, error) {
	if depth == maxDepth {
		return value{}, fmt.Errorf("lists are nested too deeply")
	}
	end := "]"
	if p.peek() == '(' {
		end = ")"
	}
	p.at++
	v := value{kind: listKind}
	for {
		p.space()
		if p.take(end) {
			return v, nil
		}
		item, err := p.value(depth + 1)
		if err != nil {
			return v, err
		}
		v.list = append(v.list, item)
		p.space()
		if !p.take(",") && !strings.HasPrefix(p.source[p.at:], end) {
			return v, fmt.Errorf("in a list a comma or %s was expected, not %s", end, p.next())
		}
	}
}

// number reads a decimal number.
func (p *parser) number() (value, error) {
	from := p.at
	for !p.done() && strings.IndexByte("+-.0123456789eE_", p.peek()) >= 0 {
		p.at++
	}
	text := p.source[from:p.at]
	n, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	if err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
		return value{}, fmt.Errorf("%q is not a number", text)
	}
	return value{kind: numberKind, text: text, number: n}, nil
}

// quoted reads a text in one or three quotes of either sort. Lines may end in
// either: models write long texts that way.
func (p *parser) quoted(raw bool) (value, error) {
	line := p.line()
	quote := p.source[p.at : p.at+1]
	if three := strings.Repeat(quote, 3); strings.HasPrefix(p.source[p.at:], three) {
		quote = three
	}
	p.at += len(quote)
	var out strings.Builder
	for {
		switch {
		case p.done():
			return value{}, fmt.Errorf("the text that begins on line %d has no closing %s", line, quote)
		case p.take(quote):
			if !utf8.ValidString(out.String()) {
				return value{}, fmt.Errorf("the text that begins on line %d is not valid UTF-8", line)
			}
			return value{kind: textKind, text: out.String()}, nil
		case p.peek() != '\\' || len(p.source) == p.at+1:
			out.WriteByte(p.peek())
			p.at++
		case raw:
			out.WriteString(p.source[p.at : p.at+2])
			p.at += 2
		default:
			if err := p.escape(&out); err != nil {
				return value{}, err
			}
		}
	}
}

// escapes are what a letter after a backslash means.
var escapes = map[byte]string{
	'n': "\n", 't': "\t", 'r': "\r", 'b': "\b", 'f': "\f", 'v': "\v", 'a': "\a", '0': "\x00",
	'\\': "\\", '\'': "'", '"': "\"", '\n': "",
}

// digits is how many hexadecimal digits follow a letter.
var digits = map[byte]int{'x': 2, 'u': 4, 'U': 8}

// escape reads a backslash and what it stands for. An unknown one stands for itself.
func (p *parser) escape(out *strings.Builder) error {
	c := p.source[p.at+1]
	p.at += 2
	if text, ok := escapes[c]; ok {
		out.WriteString(text)
		return nil
	}
	n, ok := digits[c]
	if !ok {
		out.WriteByte('\\')
		out.WriteByte(c)
		return nil
	}
	hex := p.source[p.at:min(len(p.source), p.at+n)]
	code, err := strconv.ParseUint(hex, 16, 32)
	if err != nil || len(hex) < n || code > utf8.MaxRune {
		return fmt.Errorf(`\%c needs %d hexadecimal digits of a character`, c, n)
	}
	p.at += n
	r := rune(code)
	// A character beyond the first 65,536 may be written as two halves.
	if low, ok := p.lowHalf(r); ok {
		r = (r-0xd800)<<10 + (low - 0xdc00) + 0x10000
	}
	if !utf8.ValidRune(r) {
		return fmt.Errorf(`\%c%s is half a character`, c, hex)
	}
	out.WriteRune(r)
	return nil
}

// lowHalf reads the second half of a character whose first half is r.
func (p *parser) lowHalf(r rune) (rune, bool) {
	rest := p.source[p.at:]
	if r < 0xd800 || r > 0xdbff || len(rest) < 6 || rest[:2] != `\u` {
		return 0, false
	}
	low, err := strconv.ParseUint(rest[2:6], 16, 32)
	if err != nil || low < 0xdc00 || low > 0xdfff {
		return 0, false
	}
	p.at += 6
	return rune(low), true
}

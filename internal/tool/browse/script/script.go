// Package script reads the little language that a model drives the browser
// with: calls of known functions with literal arguments, written as in Python.
// It is only ever read. There are no variables, no expressions, and nothing that
// could be evaluated.
package script

import (
	"fmt"
	"strings"
)

// The bounds of a script. A model that writes more has lost its way.
const (
	maxLength = 200_000
	maxSteps  = 100
	maxDepth  = 3 // of lists
)

// Step is one call, checked against the signature of its function.
type Step struct {
	// Name is the function's.
	Name string
	// Source is the call as it was written.
	Source string
	args   map[string]value
}

// Has says whether the call has the argument.
func (s Step) Has(name string) bool { _, ok := s.args[name]; return ok }

// Text is a text argument, "" if the call does not have it.
func (s Step) Text(name string) string { return s.args[name].text }

// Number is a numeric argument, 0 if the call does not have it.
func (s Step) Number(name string) float64 { return s.args[name].number }

// List is an argument that is one text or a list of them.
func (s Step) List(name string) []string {
	v := s.args[name]
	if v.kind != listKind {
		if v.kind == 0 {
			return nil
		}
		return []string{v.text}
	}
	out := make([]string, len(v.list))
	for i, item := range v.list {
		out[i] = item.text
	}
	return out
}

// Parse parses a script. Its errors are for its author.
func Parse(source string) ([]Step, error) {
	if len(source) > maxLength {
		return nil, fmt.Errorf("the code has %d bytes, and at most %d are read", len(source), maxLength)
	}
	p := &parser{source: source}
	var steps []Step
	for {
		p.separators()
		if p.done() {
			break
		}
		step, err := p.step()
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", p.line(), err)
		}
		if len(steps) == maxSteps {
			return nil, fmt.Errorf("the code has more than %d calls", maxSteps)
		}
		steps = append(steps, step)
	}
	if len(steps) == 0 {
		return nil, fmt.Errorf("the code has no call in it; the functions are %s", Names())
	}
	return steps, nil
}

// parser walks over a script.
type parser struct {
	source string
	at     int
}

func (p *parser) done() bool { return p.at >= len(p.source) }

// peek is the next byte, 0 at the end.
func (p *parser) peek() byte {
	if p.done() {
		return 0
	}
	return p.source[p.at]
}

// take steps over a text if it is next.
func (p *parser) take(text string) bool {
	if strings.HasPrefix(p.source[p.at:], text) {
		p.at += len(text)
		return true
	}
	return false
}

// line is the number of the line that is read, for errors.
func (p *parser) line() int { return 1 + strings.Count(p.source[:min(p.at, len(p.source))], "\n") }

// skip steps over the bytes of a set, and over comments if lines may end.
func (p *parser) skip(set string) {
	for !p.done() {
		switch c := p.peek(); {
		case strings.IndexByte(set, c) >= 0:
			p.at++
		case c == '#' && strings.Contains(set, "\n"):
			for !p.done() && p.peek() != '\n' {
				p.at++
			}
		default:
			return
		}
	}
}

// separators may stand between calls, space inside of them.
func (p *parser) separators() { p.skip(" \t\r\n;") }
func (p *parser) space()      { p.skip(" \t\r\n") }

// name reads an identifier, "" if none is next.
func (p *parser) name() string {
	from := p.at
	for !p.done() {
		c := p.peek()
		if c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || p.at > from && c >= '0' && c <= '9' {
			p.at++
			continue
		}
		break
	}
	return p.source[from:p.at]
}

// step reads one call with what ends it.
func (p *parser) step() (Step, error) {
	from := p.at
	name := p.name()
	if name == "" {
		return Step{}, fmt.Errorf("a call of a function was expected, not %s", p.next())
	}
	signature, ok := functions[name]
	if !ok {
		return Step{}, fmt.Errorf("there is no function %s; the functions are %s", name, Names())
	}
	p.skip(" \t")
	if !p.take("(") {
		return Step{}, fmt.Errorf("%s needs its arguments in parentheses, as in %s", name, usage(name))
	}
	given, err := p.arguments(name)
	if err != nil {
		return Step{}, err
	}
	source := p.source[from:p.at]
	p.skip(" \t\r")
	if c := p.peek(); c != 0 && c != '\n' && c != ';' && c != '#' {
		return Step{}, fmt.Errorf("after %s a new line was expected, not %s", source, p.next())
	}
	args, err := bind(signature, given)
	if err != nil {
		return Step{}, fmt.Errorf("%s: %w; it is called as %s", name, err, usage(name))
	}
	return Step{Name: name, Source: source, args: args}, nil
}

// argument is one as it was written; without a name it goes by its place.
type argument struct {
	name  string
	value value
}

// arguments reads up to the closing parenthesis.
func (p *parser) arguments(function string) ([]argument, error) {
	var out []argument
	for {
		p.space()
		if p.take(")") {
			return out, nil
		}
		a, err := p.argument()
		if err != nil {
			return nil, err
		}
		if a.name == "" && len(out) > 0 && out[len(out)-1].name != "" {
			return nil, fmt.Errorf("in %s an argument without a name follows one with a name", function)
		}
		out = append(out, a)
		p.space()
		if !p.take(",") && p.peek() != ')' {
			return nil, fmt.Errorf("in the arguments of %s a comma or a closing parenthesis was expected, not %s", function, p.next())
		}
	}
}

// argument reads a value that may have a name.
func (p *parser) argument() (argument, error) {
	from := p.at
	if name := p.name(); name != "" {
		p.space()
		if p.take("=") {
			p.space()
			v, err := p.value(0)
			return argument{name, v}, err
		}
		p.at = from
	}
	v, err := p.value(0)
	return argument{"", v}, err
}

// next says what comes, for errors.
func (p *parser) next() string {
	if p.done() {
		return "the end"
	}
	rest := []rune(p.source[p.at:min(len(p.source), p.at+80)])
	if len(rest) > 20 {
		rest = append(rest[:20], '…')
	}
	return fmt.Sprintf("%q", string(rest))
}

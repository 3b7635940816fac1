package tool

import (
	"encoding/json"
	"regexp"
	"strings"

	"deckhand/internal/risk"
)

// A pattern is what a person allows for good:
//
//	execute_bash:git status     this command and no other
//	execute_bash:git log*       it, and it with more arguments
//	str_replace_editor:/a/b/*   files below a folder
//	fetch                       every call of a tool
//
// However it is written, a pattern allows only what is plainly the same kind of
// thing: never a call that is rated worse than the pattern itself, nor anything
// that is High.

// Patterns are those of a tool whose calls are allowed in part. What follows the colon
// is the tool's.
type Patterns struct {
	// Whole is why the tool as a whole cannot be allowed, in a sentence for the person
	// who wrote such a pattern; "" if it can.
	Whole string
	// Check says what is wrong with a pattern, in a sentence; "" if nothing is.
	Check func(pattern string) string
	// Propose makes one of a call; "" for what should be asked about every time.
	Propose func(args json.RawMessage) string
	// Matches reports whether a pattern that was checked allows a call.
	Matches func(pattern string, args json.RawMessage) bool
}

const maxPattern = 512

var toolName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)

// PatternError is a sentence about a pattern that cannot be used.
type PatternError struct{ Message string }

func (e *PatternError) Error() string { return e.Message }

// Pattern proposes what to allow for good when a person allows this call. It is
// empty for what should be asked about every time.
func Pattern(name string, args json.RawMessage) string {
	p := name
	if narrow := Describe(name).Patterns; narrow != nil {
		if p = narrow.Propose(args); p == "" {
			return ""
		}
		p = name + ":" + p
	}
	if !Matches(p, name, args) {
		return ""
	}
	return p
}

// Matches reports whether a pattern allows a call.
func Matches(pattern, name string, args json.RawMessage) bool {
	if CheckPattern(pattern) != nil {
		return false
	}
	allowed, rest, narrow := strings.Cut(pattern, ":")
	if allowed != name {
		return false
	}
	if rating, _ := Rate(name, false, args); rating == risk.High {
		return false
	}
	return !narrow || Describe(name).Patterns.Matches(rest, args)
}

// CheckPattern says what is wrong with a pattern, in a sentence for the person who wrote it.
func CheckPattern(pattern string) error {
	name, rest, narrow := strings.Cut(pattern, ":")
	p := Describe(name).Patterns
	message := ""
	switch {
	case len(pattern) > maxPattern:
		message = "A pattern has at most 512 characters."
	case !toolName.MatchString(name):
		message = "A pattern begins with the name of a tool, like execute_bash:git status* or fetch."
	case !narrow && p != nil:
		message = p.Whole
	case narrow && p == nil:
		message = "Only " + strings.Join(narrowed(), " and ") + " take more than the name of the tool in a pattern."
	case narrow:
		message = p.Check(rest)
	}
	if message == "" {
		return nil
	}
	return &PatternError{message}
}

// narrowed are the names of the tools whose calls are allowed in part.
func narrowed() (names []string) {
	for _, d := range registered {
		if d.Patterns != nil {
			names = append(names, d.Name)
		}
	}
	return names
}

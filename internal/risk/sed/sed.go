// Package sed parses sed scripts, to find out whether they do more than print.
package sed

import "strings"

// Prints reports whether a sed script consists only of commands that print,
// skip, join or replace text. Those that write files or run programs are not
// among them, and neither is anything that it cannot follow.
func Prints(script string) bool {
	s := sedScript(script)
	for {
		s = s.skip(" \t\n;{}")
		if s == "" {
			return true
		}
		var ok bool
		if s, ok = s.address(); !ok {
			return false
		}
		s = s.skip(" \t!")
		if s == "" {
			return false
		}
		command := s[0]
		s = s[1:]
		switch {
		case strings.IndexByte("pdgGhHxnNDPl=", command) >= 0:
		case command == 'q' || command == 'Q':
			s = s.skip(" 0123456789")
		case command == 's' || command == 'y':
			if s, ok = s.replacement(command == 's'); !ok {
				return false
			}
		case command == '{':
			continue
		default:
			return false
		}
		s = s.skip(" \t")
		if s != "" && strings.IndexByte(";\n}", s[0]) < 0 {
			return false
		}
	}
}

// sedScript is the rest of a script.
type sedScript string

func (s sedScript) skip(set string) sedScript { return sedScript(strings.TrimLeft(string(s), set)) }

// address skips which lines a command is for.
func (s sedScript) address() (sedScript, bool) {
	for {
		s = s.skip(" \t0123456789$,~+")
		if s == "" || s[0] != '/' {
			return s, true
		}
		var ok bool
		if s, ok = s[1:].past('/'); !ok {
			return "", false
		}
		s = s.skip("IM")
	}
}

// past skips up to the delimiter. A backslash takes what follows; a bracket
// could hide a delimiter, so it is not followed.
func (s sedScript) past(delimiter byte) (sedScript, bool) {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '\n':
			return "", false
		case '[':
			set := strings.TrimPrefix(string(s[i+1:]), "^")
			if end := strings.IndexByte(set, ']'); end < 1 || strings.IndexByte(set[:end], delimiter) >= 0 {
				return "", false
			}
		case delimiter:
			return s[i+1:], true
		}
	}
	return "", false
}

// replacement skips s/a/b/flags, whose flags e and w are the dangerous ones.
func (s sedScript) replacement(flags bool) (sedScript, bool) {
	if s == "" || s[0] == '\\' || s[0] == '\n' || s[0] == '[' || s[0] >= 0x80 {
		return "", false
	}
	delimiter := s[0]
	s, ok := s[1:].past(delimiter)
	if !ok {
		return "", false
	}
	if s, ok = s.past(delimiter); !ok {
		return "", false
	}
	if flags {
		s = s.skip("gpiIM0123456789")
	}
	return s, true
}

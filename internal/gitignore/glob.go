package gitignore

import "strings"

// glob holds a pattern against one name. It takes time in proportion to both
// lengths, whatever the pattern: only the last * has to be tried again.
func glob(pattern, name string) bool {
	star, from := -1, 0
	p, s := 0, 0
	for s < len(name) {
		if p < len(pattern) && pattern[p] == '*' {
			p++
			star, from = p, s
			continue
		}
		if n, ok := one(pattern[p:], name[s]); ok {
			p, s = p+n, s+1
			continue
		}
		if star < 0 {
			return false
		}
		from++
		p, s = star, from
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// one holds the beginning of a pattern against one byte and says how much of
// the pattern that took.
func one(pattern string, c byte) (int, bool) {
	if pattern == "" {
		return 0, false
	}
	switch pattern[0] {
	case '?':
		return 1, true
	case '[':
		return bracket(pattern, c)
	case '\\':
		if len(pattern) == 1 {
			return 0, false
		}
		return 2, pattern[1] == c
	}
	return 1, pattern[0] == c
}

// bracket holds a set like [a-z_], [!0-9] or [[:alpha:]] against one byte. A set
// without an end fits nothing.
func bracket(pattern string, c byte) (int, bool) {
	i, negated, in := 1, false, false
	if i < len(pattern) && (pattern[i] == '!' || pattern[i] == '^') {
		i, negated = i+1, true
	}
	for first := true; ; first = false {
		if i >= len(pattern) {
			return 0, false
		}
		if pattern[i] == ']' && !first {
			return i + 1, in != negated
		}
		if strings.HasPrefix(pattern[i:], "[:") {
			if name, _, ok := strings.Cut(pattern[i+2:], "]"); ok && strings.HasSuffix(name, ":") {
				is, known := classes[strings.TrimSuffix(name, ":")]
				if !known {
					return 0, false
				}
				in = in || is(c)
				i += len("[:") + len(name) + len("]")
				continue
			}
		}
		low, n := member(pattern[i:])
		if n == 0 {
			return 0, false
		}
		i += n
		high := low
		if i+1 < len(pattern) && pattern[i] == '-' && pattern[i+1] != ']' {
			if high, n = member(pattern[i+1:]); n == 0 {
				return 0, false
			}
			i += 1 + n
		}
		in = in || low <= c && c <= high
	}
}

// member is one character of a set, which may be escaped.
func member(s string) (c byte, n int) {
	switch {
	case s == "" || s == `\`:
		return 0, 0
	case s[0] == '\\':
		return s[1], 2
	}
	return s[0], 1
}

func between(low, high byte) func(byte) bool {
	return func(c byte) bool { return low <= c && c <= high }
}

func either(parts ...func(byte) bool) func(byte) bool {
	return func(c byte) bool {
		for _, is := range parts {
			if is(c) {
				return true
			}
		}
		return false
	}
}

// classes are those of POSIX, for ASCII, as git has them.
var classes = func() map[string]func(byte) bool {
	upper, lower, digit := between('A', 'Z'), between('a', 'z'), between('0', '9')
	alpha := either(upper, lower)
	alnum := either(alpha, digit)
	graph := between('!', '~')
	return map[string]func(byte) bool{
		"upper": upper, "lower": lower, "digit": digit, "alpha": alpha, "alnum": alnum, "graph": graph,
		"punct":  func(c byte) bool { return graph(c) && !alnum(c) },
		"print":  between(' ', '~'),
		"blank":  func(c byte) bool { return c == ' ' || c == '\t' },
		"space":  func(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' },
		"cntrl":  func(c byte) bool { return c < ' ' || c == 0x7f },
		"xdigit": either(digit, between('a', 'f'), between('A', 'F')),
	}
}()

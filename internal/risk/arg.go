package risk

import (
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// hole marks the parts of an argument that are only known at run time.
const hole = "\x00"

// arg is one word of a command, as far as it is known before the command runs.
type arg struct {
	// text is what the program receives, without quotes, with a hole for each unknown part.
	text string
	// known is false if there is a hole, or if the shell splits the word into several.
	known bool
	// glob is set if the shell replaces the word by matching file names.
	glob bool
	// quoted is set if a part was quoted or escaped.
	quoted bool
	// process is set for a process substitution: <(…) or >(…).
	process bool
	// variable is the name of the variable whose value the whole word is.
	variable string
}

// evaluate returns the argument that the shell makes of a word.
func evaluate(w *syntax.Word) arg {
	out := arg{known: true}
	var b strings.Builder
	for _, p := range w.Parts {
		out.part(&b, p, false)
	}
	out.text, out.variable = b.String(), variableOf(w.Parts)
	if out.text == "[" { // a program, for a pattern has an end
		out.glob = false
	}
	return out
}

func (w *arg) unknown(b *strings.Builder) {
	w.known = false
	b.WriteString(hole)
}

func (w *arg) part(b *strings.Builder, p syntax.WordPart, quoted bool) {
	switch p := p.(type) {
	case *syntax.Lit:
		w.literal(b, p.Value, quoted)
	case *syntax.SglQuoted:
		w.quoted = true
		if !p.Dollar {
			b.WriteString(p.Value)
			return
		}
		// $'\x72m' is rm.
		if s, _, err := expand.Format(&expand.Config{}, p.Value, nil); err == nil && !strings.Contains(p.Value, "%") {
			b.WriteString(s)
			return
		}
		w.unknown(b)
	case *syntax.DblQuoted:
		w.quoted = true
		for _, inner := range p.Parts {
			w.part(b, inner, true)
		}
	case *syntax.ExtGlob:
		w.glob = true
		w.unknown(b)
	case *syntax.ProcSubst:
		w.process = true
		w.unknown(b)
	default: // an expansion
		w.unknown(b)
	}
}

// literal removes backslashes, and notices what the shell would replace.
func (w *arg) literal(b *strings.Builder, s string, quoted bool) {
	braces := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\\' && i+1 < len(s):
			i++
			if s[i] == '\n' {
				continue
			}
			if quoted && !strings.ContainsRune("$`\"\\", rune(s[i])) {
				b.WriteByte('\\')
			}
			w.quoted = true
			b.WriteByte(s[i])
			continue
		case !quoted && (c == '*' || c == '?' || c == '['):
			w.glob = true
		case !quoted && c == '{':
			braces = true
		case !quoted && braces && (c == ',' || c == '.' && strings.HasPrefix(s[i:], "..")):
			w.known = false // {a,b} and {1..3} become several words
		}
		b.WriteByte(c)
	}
}

// plain reports whether the argument is passed exactly as written.
func (w arg) plain() bool { return w.known && !w.glob }

// flag reports whether the argument is or may become an option.
func (w arg) flag() bool {
	return w.text == "" && !w.known || strings.HasPrefix(w.text, "-") || strings.HasPrefix(w.text, hole)
}

// argsOf evaluates the words of a command.
func argsOf(ws []*syntax.Word) []arg {
	out := make([]arg, len(ws))
	for i, w := range ws {
		out[i] = evaluate(w)
	}
	return out
}

// is reports whether an argument is a long option, which programs accept abbreviated:
// --outp=x is --output=x.
func (w arg) is(long string) bool {
	name, _, _ := strings.Cut(w.text, "=")
	return len(name) > 2 && strings.HasPrefix(name, "--") && strings.HasPrefix(long, strings.TrimRight(name, hole))
}

// short reports whether an argument is a group of short options with one of the letters.
func (w arg) short(letters string) bool {
	return len(w.text) > 1 && w.text[0] == '-' && w.text[1] != '-' && strings.ContainsAny(w.text[1:], letters)
}

// anyOf reports whether an argument is one of the long options, or has one of the
// letters among its short ones.
func anyOf(args []arg, letters string, long ...string) bool {
	for _, a := range args {
		if letters != "" && a.short(letters) {
			return true
		}
		for _, l := range long {
			if a.is(l) {
				return true
			}
		}
	}
	return false
}

// operands returns the arguments that are not options. Everything after -- is an operand.
func operands(args []arg) []arg {
	var out []arg
	for i, a := range args {
		if a.known && a.text == "--" {
			return append(out, args[i+1:]...)
		}
		if !a.flag() || a.text == "-" {
			out = append(out, a)
		}
	}
	return out
}

// opaque reports whether an argument could turn out to be an option.
func opaque(args []arg) bool {
	for _, a := range args {
		if a.known && a.text == "--" {
			return false
		}
		if strings.HasPrefix(a.text, hole) && !a.process || !a.known && (a.text == "" || strings.HasPrefix(a.text, "-") || strings.HasPrefix(a.text, "{")) || a.glob && !safeGlob(a.text) {
			return true
		}
	}
	return false
}

// safeGlob reports whether no name that the pattern finds can begin with a dash.
func safeGlob(text string) bool { return text != "" && !strings.ContainsAny(text[:1], "*?[-"+hole) }

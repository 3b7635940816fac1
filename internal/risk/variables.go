package risk

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"deckhand/internal/risk/names"
)

// assigns rates the assignments of a simple command.
func (j *judge) assigns(c *syntax.CallExpr) {
	for _, a := range c.Assigns {
		j.assignment(a, len(c.Args) > 0, false)
	}
}

// declare rates export, declare and their kind.
func (j *judge) declare(d *syntax.DeclClause) {
	exported := d.Variant.Value == "export"
	for _, a := range d.Args {
		switch {
		case a.Name != nil && a.Value == nil && a.Array == nil && a.Naked: // export NAME
			j.assigned(a.Name.Value, exported, "")
		case a.Name != nil:
			j.assignment(a, exported, true)
		case a.Value != nil:
			exported = j.declareWord(evaluate(a.Value), exported)
		}
	}
	j.add(Low, "It declares variables.")
}

// declareRule rates export, declare and their kind where the parser sees a simple command: "export" or command export.
func declareRule(exported bool) rule {
	return func(c command, args []arg) {
		exported := exported
		for _, a := range args {
			exported = c.declareWord(a, exported)
		}
		c.add(Low, "It declares variables.")
	}
}

// declareWord rates one argument of export, declare and their kind: an option, NAME or NAME=value. It reports whether
// the variables after it are exported.
func (j *judge) declareWord(w arg, exported bool) bool {
	if !w.plain() {
		j.add(Unknown, "It declares a variable whose name is only known at run time.")
	}
	if strings.HasPrefix(w.text, "-") || strings.HasPrefix(w.text, "+") {
		switch {
		case strings.ContainsAny(w.text, "nf"):
			j.add(Unknown, "It declares a reference or a function.")
		case strings.ContainsRune(w.text, 'i'):
			j.add(Unknown, "It declares a variable whose value the shell evaluates on each assignment.")
		}
		return exported || strings.ContainsRune(w.text, 'x')
	}
	name, value, _ := strings.Cut(w.text, "=")
	name = strings.TrimSuffix(name, "+")
	if !identifier.MatchString(name) { // the shell evaluates the index of a[…]
		j.add(Unknown, "It sets a variable in a way that cannot be analyzed.")
		return exported
	}
	j.value(value, true)
	j.assigned(name, exported, value)
	return exported
}

func (j *judge) assignment(a *syntax.Assign, exported, declared bool) {
	value := ""
	if a.Value != nil {
		value = evaluate(a.Value).text
		j.value(value, declared)
	}
	if a.Index != nil {
		j.arithmetic(a.Index)
	}
	if a.Array != nil {
		for _, e := range a.Array.Elems {
			if e.Index != nil {
				j.arithmetic(e.Index)
			}
			if e.Value != nil {
				j.value(evaluate(e.Value).text, false)
			}
		}
	}
	j.assigned(a.Name.Value, exported, value)
}

// value rates the text that a variable gets. declare -a parses a text in parentheses as the elements of an array.
func (j *judge) value(text string, declared bool) {
	if holdsCommand(text) {
		j.add(Unknown, "It stores text that contains a command.")
	}
	if declared && strings.HasPrefix(text, "(") {
		j.add(Unknown, "It sets a variable in a way that cannot be analyzed.")
	}
}

// holdsCommand reports text that runs something where the shell evaluates it again.
func holdsCommand(text string) bool {
	return strings.Contains(text, "$(") || strings.Contains(text, "`") || strings.Contains(text, "<(")
}

// assigned rates a variable that gets a value.
func (j *judge) assigned(name string, exported bool, value string) {
	switch {
	case names.HarmlessVariable(name):
		j.add(Low, "It sets a harmless variable.")
	case strings.HasSuffix(name, "PAGER") && value == "cat":
		j.add(Low, "It disables a pager.")
	case names.DangerousVariable(name):
		j.add(High, "It sets the variable "+name+", which decides what programs do or which ones run.")
	case exported || strings.ToLower(name) != name:
		j.add(Medium, "It sets an environment variable that programs may read.")
	default:
		j.add(Low, "It sets a shell variable.")
	}
}

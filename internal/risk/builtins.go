package risk

import (
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// builtins are the commands of the shell itself. Those that change how later
// commands are understood are the dangerous ones.
var builtins = map[string]rule{
	"echo : true false pwd type times dirs help exit return break continue shift disown caller sleep": always(Low, "It only prints text."),
	"jobs":                           jobsRule,
	"test [":                         tests,
	"printf":                         printfRule,
	"read":                           readRule,
	"unset":                          unsetRule,
	"export":                         declareRule(true),
	"declare typeset local readonly": declareRule(false),
	"cd pushd":                       cdRule,
	"popd":                           popdRule,
	"set":                            setRule,
	"shopt umask ulimit":             always(Medium, "It changes shell options."),
	"wait getopts fg bg":             always(Medium, "It acts on the shell's own jobs or variables."),
	"history":                        historyRule,
	"alias":                          aliasRule,
	"unalias":                        always(Medium, "It changes how the shell resolves names."),
	"hash enable":                    hashRule,
	"bind complete compgen compopt mapfile readarray": always(Unknown, "It can make the shell run something later."),
	"trap":     trapRule,
	"eval":     evalRule,
	"source .": sourceRule,
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// name rates a variable that a builtin sets; a[…] would be calculated.
func (c command) name(w arg) {
	if !w.plain() || !identifier.MatchString(w.text) {
		c.add(Unknown, "It sets a variable whose name is only known at run time.")
		return
	}
	c.assigned(w.text, false, "")
}

// jobsRule knows that jobs -x runs a command.
func jobsRule(c command, args []arg) {
	c.add(Low, "It only prints text.")
	if !anyOf(args, "x") && !opaque(args) {
		return
	}
	c.add(Medium, "It runs another program.")
	rest, ok := unwrap(args, "", 0)
	if !ok {
		c.add(Unknown, noWrapped)
		return
	}
	c.run(rest)
}

func tests(c command, args []arg) {
	c.add(Low, "It only tests a condition.")
	for i, a := range args {
		if a.text == "-v" || a.text == "-R" {
			if i+1 == len(args) || !args[i+1].plain() || args[i+1].text != "]" && !identifier.MatchString(args[i+1].text) {
				c.add(Unknown, "It tests a variable whose name is only known at run time.")
			}
		}
	}
}

// countsBytes matches the conversion %n, which stores the number of bytes printed so far in a variable.
var countsBytes = regexp.MustCompile(`%[^a-zA-Z%(]*[hlLjtzq]*n`)

func printfRule(c command, args []arg) {
	c.add(Low, "It only prints text.")
	if len(args) == 0 {
		return
	}
	format := 0
	switch first := args[0]; {
	case strings.HasPrefix(first.text, "-v") && len(first.text) > 2:
		c.name(arg{text: first.text[2:], known: first.known})
		format = 1
	case first.text == "-v" && len(args) > 1:
		c.name(args[1])
		format = 2
	case strings.HasPrefix(first.text, hole), !first.known && strings.HasPrefix(first.text, "{"):
		c.add(Medium, "What it prints, or where to, is only known at run time.")
	}
	if format < len(args) && args[format].text == "--" {
		format++
	}
	if format+1 >= len(args) { // nothing for a conversion to use
		return
	}
	switch f := args[format]; {
	case !f.plain():
		c.add(Medium, "What it prints, or where to, is only known at run time.")
	case countsBytes.MatchString(strings.ReplaceAll(f.text, "%%", "")):
		c.add(Unknown, "It sets a variable in a way that cannot be analyzed.")
	}
}

func readRule(c command, args []arg) {
	c.add(Low, "It reads its input into a variable.")
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case !a.plain():
			c.add(Unknown, "It sets a variable whose name is only known at run time.")
		case a.text == "-a" && i+1 < len(args):
			i++
			c.name(args[i])
		case len(a.text) == 2 && a.text[0] == '-' && strings.Contains("dinNptu", a.text[1:]):
			i++
		case strings.HasPrefix(a.text, "-") && strings.ContainsAny(a.text, "a"):
			c.add(Unknown, "It sets a variable in a way that cannot be analyzed.")
		case !strings.HasPrefix(a.text, "-"):
			c.name(a)
		}
	}
}

func unsetRule(c command, args []arg) {
	for _, a := range args {
		switch {
		case a.text == "-v":
		case strings.HasPrefix(a.text, "-"):
			c.add(Medium, "It removes a function or a reference.")
		default:
			c.name(a)
		}
	}
}

// anyDirectory matches the names that cd and pushd take from their history: -, +1 and -1.
var anyDirectory = regexp.MustCompile(`^(-|[-+][0-9]+)$`)

func popdRule(c command, _ []arg) {
	c.add(Low, "It changes the working folder.")
	c.away = true
}

func cdRule(c command, args []arg) {
	c.add(Low, "It changes the working folder.")
	if ops := operands(args); len(ops) == 1 && ops[0].plain() && !anyDirectory.MatchString(ops[0].text) {
		c.dir = c.at(ops[0].text)
	} else {
		c.dir, c.away = "", true
	}
}

// setRule lets through what makes scripts stricter or louder.
func setRule(c command, args []arg) {
	c.add(Low, "It makes the shell stricter or more verbose.")
	for i, a := range args {
		text := strings.TrimLeft(a.text, "-+")
		switch {
		case a.text == "--":
			return
		case !a.plain():
			c.add(Unknown, "Which option of the shell it sets is only known at run time.")
		case text == "history":
			c.add(High, "It changes whether the shell keeps a history.")
		case i > 0 && strings.HasSuffix(args[i-1].text, "o") && (text == "pipefail" || text == "errexit" || text == "nounset" || text == "xtrace"):
		case strings.Trim(text, "euxov") != "":
			c.add(Medium, "It changes shell options.")
		}
	}
}

func historyRule(c command, args []arg) {
	if len(args) == 0 || len(args) == 1 && args[0].plain() && strings.Trim(args[0].text, "0123456789") == "" {
		c.add(Low, "It only prints text.")
		return
	}
	c.add(High, "It changes the shell's history.")
}

func aliasRule(c command, args []arg) {
	c.add(Low, "It only prints text.")
	for _, a := range args {
		name, value, defines := strings.Cut(a.text, "=")
		switch {
		case !a.known:
			c.add(Unknown, "It defines an alias whose name is only known at run time.")
		case defines && known(name):
			c.add(High, "It redefines the name of a program.")
		case defines:
			c.add(Medium, "It defines an alias.")
			c.inner(value)
		}
	}
}

func hashRule(c command, args []arg) {
	if len(args) == 0 || len(args) == 1 && args[0].text == "-r" {
		c.add(Low, "It only prints text.")
		return
	}
	c.add(High, "It changes which program a name runs.")
}

func trapRule(c command, args []arg) {
	if len(args) == 0 || len(args) == 1 && (args[0].text == "-l" || args[0].text == "-p") {
		c.add(Low, "It only prints text.")
		return
	}
	c.add(Medium, "It makes the shell run something later.")
	c.text(args)
}

// text rates the first word that is not an option as a command.
func (c command) text(args []arg) {
	for len(args) > 0 && args[0].known && strings.HasPrefix(args[0].text, "-") {
		args = args[1:]
	}
	switch {
	case len(args) == 0:
	case !args[0].known:
		c.add(Unknown, "It runs a command that is only known at run time.")
	default:
		c.inner(args[0].text)
	}
}

func evalRule(c command, args []arg) {
	var all []string
	for _, a := range args {
		if !a.plain() {
			c.add(Unknown, "It runs a command that is only known at run time.")
			return
		}
		all = append(all, a.text)
	}
	c.add(Medium, "It runs text as a command.")
	c.inner(strings.Join(all, " "))
}

func sourceRule(c command, args []arg) {
	switch {
	case len(args) == 0:
		c.add(Low, "It does nothing.")
	case args[0].process, strings.HasPrefix(args[0].text, "/dev/"), strings.HasPrefix(args[0].text, "/proc/"):
		c.add(High, "It runs the commands in its input.")
	case !args[0].plain():
		c.add(Unknown, "Which file of commands it runs is only known at run time.")
	default:
		c.add(Medium, "It runs the commands in a file.")
	}
}

// document is the text of a here-document; ok is false if it is not known.
func document(w *syntax.Word) (text string, ok bool) {
	if w == nil {
		return "", false
	}
	got := evaluate(w)
	return got.text, got.known
}

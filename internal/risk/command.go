package risk

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// command is a simple command: a program and its arguments.
type command struct {
	*judge
	args []arg
	// input is the here-document that the program reads, nil if there is none.
	input *syntax.Word
	// through counts the commands that run this one.
	through int
}

// rule rates the arguments of a program.
type rule func(c command, args []arg)

// rules holds what is known of programs. It is filled at start because rules for
// commands that run others look into it again.
var rules map[string]rule

func init() {
	rules = map[string]rule{}
	for _, table := range []map[string]rule{builtins, wrappers, interpreters, fileRules, networkRules, projectRules} {
		for names, r := range table {
			for name := range strings.FieldsSeq(names) {
				rules[name] = r
			}
		}
	}
}

// known reports whether a name is that of a program the rules know.
func known(name string) bool { return rules[name] != nil }

// systemPrograms are the folders where a program of a name is the one that is meant.
var systemPrograms = []string{"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"}

// find returns the rule for a program; python3.12 is python.
func find(name string) rule {
	if strings.Contains(name, "/") {
		if !slices.Contains(systemPrograms, path.Dir(path.Clean(name))) {
			return nil
		}
		name = path.Base(name)
	}
	if r := rules[name]; r != nil {
		return r
	}
	if strings.HasPrefix(name, "mkfs.") {
		return rules["mkfs"]
	}
	return rules[strings.TrimRight(name, "0123456789.-")]
}

// rate rates the command.
func (c command) rate() {
	if len(c.args) == 0 {
		return
	}
	if *c.left--; *c.left < 0 {
		c.add(Unknown, "There are too many commands to analyze.")
		return
	}
	name, args := c.args[0], c.args[1:]
	switch {
	case name.process:
		c.add(High, "It runs commands that another process writes.")
	case !name.plain():
		c.add(Unknown, "Which program runs is only known at run time.")
	case name.text == "":
		c.add(Low, "It does nothing.")
	default:
		r := find(name.text)
		if r == nil {
			c.stranger(name.text)
			return
		}
		r(c, args)
	}
}

// stranger rates a program that the rules do not know.
func (c command) stranger(name string) {
	if strings.Contains(name, "/") {
		c.add(Medium, "It runs a program or script by its path.")
		return
	}
	c.add(Medium, "It runs an unknown program.")
}

// run rates a command that this one runs.
func (c command) run(args []arg) {
	if c.through == maxThrough {
		c.add(Unknown, tooDeep)
		return
	}
	command{c.judge, args, c.input, c.through + 1}.rate()
}

// always makes a rule that does not look at arguments.
func always(r Rating, reason string) rule {
	return func(c command, _ []arg) { c.add(r, reason) }
}

// reader rates a program that prints what is in files and cannot do more.
func reader(c command, args []arg) {
	c.add(Low, "It only reads.")
	ended := false
	for _, a := range args {
		_, value, valued := strings.Cut(a.text, "=")
		switch {
		case !ended && a.known && a.text == "--":
			ended = true
		case ended || !strings.HasPrefix(a.text, "-"):
			c.reads(a)
		case valued: // --from-file=NAME
			c.reads(arg{text: value, known: a.known, glob: a.glob})
		}
	}
}

// asksVersion reports whether a program is only asked what it is.
func asksVersion(args []arg) bool {
	if len(args) != 1 || !args[0].plain() {
		return false
	}
	switch args[0].text {
	case "--version", "--help", "-V", "-version", "-h":
		return true
	}
	return false
}

// versioned is a rule that answers Low to the question for the version.
func versioned(r rule) rule {
	return func(c command, args []arg) {
		if asksVersion(args) {
			c.add(Low, "It only prints a version.")
			return
		}
		r(c, args)
	}
}

// strange reports an option that is not known to change only what is shown.
func strange(a arg) bool {
	return !a.known || a.flag() && !slices.Contains([]string{"-g", "--json", "--depth=0", "--format=json", "--installed", "--all", "-a"}, a.text)
}

// bySubcommand rates by the first operand; others get the last rule.
func bySubcommand(low, high string, otherwise Rating, reason string) rule {
	return versioned(func(c command, args []arg) {
		ops := operands(args)
		switch {
		case len(ops) == 0 || !ops[0].plain():
			c.add(otherwise, reason)
		case slices.Contains(strings.Fields(high), ops[0].text):
			c.add(High, "It publishes something, or makes a change that cannot be undone.")
		case slices.Contains(strings.Fields(low), ops[0].text) && args[0].text == ops[0].text && !slices.ContainsFunc(args, strange):
			c.add(Low, "It only prints text.")
		default:
			c.add(otherwise, reason)
		}
	})
}

package risk

import (
	"slices"
	"strings"

	"deckhand/internal/risk/sed"
)

// interpreters run programs that are texts.
var interpreters = map[string]rule{
	"sh bash dash zsh ksh mksh ash rbash fish csh tcsh": versioned(shellRule),
	"python pypy": versioned(pythonRule),
	"perl ruby node nodejs deno bun php lua luajit Rscript R osascript tclsh wish groovy julia guile ghc runghc swift scala irb ipython": versioned(interpreter),
	"sqlite mysql mariadb psql mongo mongosh redis-cli": versioned(always(Unknown, "It runs commands of a database, which cannot be analyzed.")),
	"vi vim nvim view ex ed emacs nano pico joe micro":  versioned(always(Unknown, "It starts an editor, which can run commands.")),
	"less more man info pager most":                     always(Medium, "It starts a pager, which can run commands."),
	"awk gawk mawk nawk":                                versioned(awkRule),
	"sed gsed":                                          versioned(sedRule),
}

const (
	fromInput = "It runs the commands in its input."
	fromLine  = "It runs code that is given on the command line, which cannot be analyzed."
	fromFile  = "It runs a script."
)

// shellRule looks into -c and into here-documents.
func shellRule(c command, args []arg) {
	for i, a := range args {
		switch {
		case a.process:
			c.add(High, fromInput)
			return
		case !a.known:
			c.add(Unknown, "Which commands it runs is only known at run time.")
			return
		case a.text == "-" || a.text == "--" || a.text == "-s" || a.text == "/dev/stdin" || strings.HasPrefix(a.text, "/dev/fd/") || strings.HasPrefix(a.text, "/proc/"):
			c.stdin()
			return
		case a.text == "-o" || a.text == "+o" || strings.HasPrefix(a.text, "--"):
			c.add(Unknown, "It starts a shell in a way that cannot be analyzed.")
			return
		case strings.HasPrefix(a.text, "-") && strings.Contains(a.text, "c"):
			c.add(Medium, "It runs text as a command.")
			c.text(args[i+1:])
			return
		case strings.HasPrefix(a.text, "-") || strings.HasPrefix(a.text, "+"):
			if strings.ContainsAny(a.text, "li") {
				c.add(Medium, "It starts a shell that reads its start-up files.")
			}
		default:
			c.add(Medium, fromFile)
			return
		}
	}
	c.stdin()
}

// stdin rates a shell that reads its commands.
func (c command) stdin() {
	text, ok := document(c.input)
	switch {
	case ok:
		c.add(Medium, "It runs text as a command.")
		c.inner(text)
	case c.input != nil:
		c.add(Unknown, "It runs text that is only known at run time.")
	default:
		c.add(High, fromInput)
	}
}

func interpreter(c command, args []arg) {
	for _, a := range args {
		switch {
		case a.process:
			c.add(High, fromInput)
			return
		case !a.known:
			c.add(Unknown, "Which code it runs is only known at run time.")
			return
		case a.text == "-" || a.text == "/dev/stdin":
			c.add(Unknown, fromInput)
			return
		case strings.HasPrefix(a.text, "-"):
			// Every language spells it in another way, and options can be joined.
			c.add(Unknown, fromLine)
			return
		default:
			c.add(Medium, fromFile)
			return
		}
	}
	c.add(Unknown, fromInput)
}

func pythonRule(c command, args []arg) {
	for len(args) > 0 && args[0].known && slices.Contains([]string{"-u", "-B", "-q", "-b", "-I", "-E", "-s", "-O"}, args[0].text) {
		args = args[1:]
	}
	if len(args) < 2 || args[0].text != "-m" || !args[1].plain() {
		interpreter(c, args)
		return
	}
	// A file of that name in the working folder comes before Python's own.
	if args[1].text == "pytest" && c.isEveryday("pytest", args[2:]) {
		c.add(Low, "It builds or tests the project.")
		return
	}
	c.add(Medium, "It runs a module, possibly from the project.")
	if args[1].text == "pip" {
		pipRule(c, args[2:])
	}
}

// awkRule lets through programs that can only print.
func awkRule(c command, args []arg) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a.text == "-F" || a.text == "-v":
			i++
		case strings.HasPrefix(a.text, "-F") || strings.HasPrefix(a.text, "-v"):
		case a.flag():
			c.add(Unknown, "It runs an awk program that cannot be analyzed.")
			return
		default:
			c.awk(a)
			reader(c, args[i+1:])
			if opaque(args[i+1:]) || slices.ContainsFunc(args[i+1:], arg.flag) {
				c.add(Medium, "What it reads is only known at run time.")
			}
			return
		}
	}
	c.add(Low, "It does nothing.")
}

func (c command) awk(program arg) {
	text := strings.ReplaceAll(program.text, "||", "")
	switch {
	case !program.known:
		c.add(Unknown, "Its awk program is only known at run time.")
	case strings.Contains(text, "system") || strings.ContainsAny(text, "|@") || strings.Contains(text, "getline") || strings.Contains(text, "ARG"):
		c.add(Unknown, "Its awk program may run other programs, or read other files.")
	case strings.Contains(text, ">"):
		c.add(Medium, "Its awk program may write to files.")
	}
}

// sedRule lets through scripts that can only print.
func sedRule(c command, args []arg) {
	c.add(Low, "It only reads.")
	scripts, files, inPlace := []arg{}, []arg{}, false
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a.text == "-e" || a.text == "--expression":
			if i++; i < len(args) {
				scripts = append(scripts, args[i])
			}
		case a.text == "--":
		case a.text == "-n" || a.text == "-E" || a.text == "-r" || a.text == "-nE" || a.text == "-En" || a.text == "-nr" || a.text == "-z" || a.text == "-s":
		case a.is("--in-place") || a.short("i") && !strings.ContainsAny(a.text, "ef"):
			inPlace = true
		case a.flag():
			c.add(Unknown, "It runs sed in a way that cannot be analyzed.")
			return
		default:
			files = append(files, a)
		}
	}
	if len(scripts) == 0 && len(files) > 0 {
		scripts, files = files[:1], files[1:]
	}
	for _, s := range scripts {
		if !s.known || !sed.Prints(s.text) {
			c.add(Unknown, "Its sed script may write files or run commands.")
		}
	}
	for _, f := range files {
		if inPlace {
			c.writes(f, "It changes a file.")
		} else {
			c.reads(f)
		}
	}
	if inPlace {
		c.add(Medium, "It changes files.")
	}
}

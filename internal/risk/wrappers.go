package risk

import "strings"

// wrappers are programs that run other ones.
var wrappers = map[string]rule{
	"env":            envRule,
	"command":        commandRule,
	"builtin":        wrapper("", 0, Low),
	"exec":           execRule,
	"nice":           wrapper("n", 0, Low),
	"ionice":         wrapper("cn", 0, Low),
	"timeout":        wrapper("ks", 1, Low),
	"nohup":          wrapper("", 0, Medium),
	"setsid":         wrapper("", 0, Medium),
	"stdbuf":         wrapper("ioe", 0, Low),
	"time":           timeRule,
	"taskset":        wrapper("", 1, Medium),
	"chrt":           wrapper("", 1, Medium),
	"busybox toybox": wrapper("", 0, Low),
	"xargs":          xargsRule,
	"find":           findRule,
	"fd fdfind":      fdRule,
	"rg":             rgRule,
	"sudo doas su runuser pkexec chroot unshare nsenter setpriv capsh gosu":                                                                               always(High, "It runs a program as another user or in another namespace."),
	"parallel watch flock strace ltrace gdb script rlwrap entr expect tmux screen dtach run-parts systemd-run start-stop-daemon unbuffer prlimit setarch": always(Unknown, "It runs another program in a way that cannot be analyzed."),
}

const noWrapped = "It runs another program in a way that cannot be analyzed."

// unwrap skips a wrapper's own options and operands. valued are the letters of
// options that take a value. ok is false for what it does not know.
func unwrap(args []arg, valued string, skip int) (rest []arg, ok bool) {
	for len(args) > 0 {
		a := args[0]
		switch {
		case !a.known:
			return nil, false
		case a.text == "--":
			args = args[1:]
			return args[min(skip, len(args)):], true
		case strings.HasPrefix(a.text, "--"):
			if !strings.Contains(a.text, "=") {
				return nil, false
			}
			args = args[1:]
		case len(a.text) > 1 && a.text[0] == '-':
			args = args[1:]
			if at := strings.IndexAny(a.text[1:], valued); valued != "" && at >= 0 && at == len(a.text)-2 {
				args = args[min(1, len(args)):]
			}
		default:
			return args[min(skip, len(args)):], true
		}
	}
	return nil, true
}

// wrapper makes the rule of a program that runs its operands.
func wrapper(valued string, skip int, least Rating) rule {
	return func(c command, args []arg) {
		rest, ok := unwrap(args, valued, skip)
		if !ok {
			c.add(Unknown, noWrapped)
			return
		}
		c.add(least, "It runs another program.")
		c.run(rest)
	}
}

func envRule(c command, args []arg) {
	if anyOf(args, "S", "--split-string") {
		c.add(Unknown, "It runs a command that it parses itself.")
		return
	}
	rest, ok := unwrap(args, "uC", 0)
	if !ok {
		c.add(Unknown, noWrapped)
		return
	}
	c.add(Low, "It only prints text.")
	if anyOf(args, "C", "--chdir") {
		c.add(Medium, "It runs another program in another folder.")
	}
	for len(rest) > 0 {
		name, value, sets := strings.Cut(rest[0].text, "=")
		if !sets {
			break
		}
		c.assigned(strings.ReplaceAll(name, hole, "?"), true, value)
		rest = rest[1:]
	}
	c.run(rest)
}

func commandRule(c command, args []arg) {
	if len(args) > 0 && args[0].known && (args[0].text == "-v" || args[0].text == "-V") {
		c.add(Low, "It only locates a program.")
		return
	}
	wrapper("", 0, Low)(c, args)
}

func timeRule(c command, args []arg) {
	if len(args) > 0 && args[0].flag() && args[0].text != "-p" && args[0].text != "-v" {
		c.add(Medium, "It may write to a file.")
	}
	wrapper("fo", 0, Low)(c, args)
}

func execRule(c command, args []arg) {
	c.add(Medium, "It changes the shell itself.")
	rest, ok := unwrap(args, "a", 0)
	if !ok {
		c.add(Unknown, noWrapped)
		return
	}
	c.run(rest)
}

// later is an argument that another program supplies.
var later = arg{text: hole}

func xargsRule(c command, args []arg) {
	c.add(Medium, "It runs a program on each item of its input.")
	rest, ok := unwrap(args, "InPLdaEs", 0)
	if !ok {
		c.add(Unknown, noWrapped)
		return
	}
	if len(rest) > 0 {
		c.run(append(rest[:len(rest):len(rest)], later))
	}
}

func findRule(c command, args []arg) {
	c.add(Low, "It only searches for files.")
	if opaque(args) {
		c.add(Unknown, "How it looks for files is only known at run time.")
	}
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a.text == "-delete":
			c.add(High, "It deletes the files that it finds.")
		case strings.HasPrefix(a.text, "-fprint") || a.text == "-fls":
			if i+1 < len(args) {
				c.writes(args[i+1], "It writes to a file.")
			}
		case strings.HasPrefix(a.text, "-exec") || strings.HasPrefix(a.text, "-ok"):
			c.add(Medium, "It runs a program on the files that it finds.")
			inner := until(args[i+1:])
			c.run(inner)
			i += len(inner) + 1
		}
	}
}

// until is the command of find -exec, with the file's name not known.
func until(args []arg) []arg {
	var out []arg
	for _, a := range args {
		if a.text == ";" || a.text == "+" {
			break
		}
		if strings.Contains(a.text, "{}") {
			a = arg{text: strings.ReplaceAll(a.text, "{}", hole)}
		}
		out = append(out, a)
	}
	return out
}

func fdRule(c command, args []arg) {
	c.add(Low, "It only searches for files.")
	if opaque(args) || anyOf(args, "xX", "--exec", "--exec-batch") {
		c.add(Unknown, "It may run a program on the files that it finds.")
	}
}

func rgRule(c command, args []arg) {
	reader(c, args)
	if opaque(args) || anyOf(args, "", "--pre", "--hostname-bin") {
		c.add(Unknown, "It may run a program on the files that it searches.")
	}
}

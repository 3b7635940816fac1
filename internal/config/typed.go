package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Description is what the help says first.
const Description = `A coding agent that works in this folder, in a sandbox. Start a session with: deckhand. Continue the last one with: deckhand -c. Run one task in a script with: deckhand run "task". Start a server with: deckhand serve.`

// Groups are the headings of commands and flags in the help, in their order.
var Groups = []kong.Group{
	{Key: "work", Title: "Work in a folder:"},
	{Key: "client", Title: "Work on a running server:"},
	{Key: "server", Title: "Run a server:"},
	{Key: "other", Title: "Other:"},
	{Key: "remote", Title: "Server flags:"},
	{Key: "data", Title: "Data flags:"},
	{Key: "model", Title: "Model and approval flags:"},
	{Key: "sandbox", Title: "Sandbox flags:"},
	{Key: "limits", Title: "Limit flags:"},
	{Key: "signon", Title: "Single sign-on flags:"},
	{Key: "replicas", Title: "Flags for several servers:"},
	{Key: "mail", Title: "E-mail flags:"},
	{Key: "web", Title: "Web page flags:"},
	{Key: "monitor", Title: "Monitoring and log flags:"},
}

// AsTyped understands what people try first, as with other programs.
func AsTyped(args []string) []string {
	switch {
	case len(args) > 0 && args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	case len(args) == 1 && args[0] == "--version":
		return []string{"version"}
	}
	args = withCommand(commandFirst(args))
	var out []string
	for i, arg := range args {
		if arg == "--" {
			return append(out, args[i:]...)
		}
		if last := len(out) - 1; last >= 0 && negativeNumber.MatchString(arg) && strings.HasPrefix(out[last], "--") && !strings.Contains(out[last], "=") {
			out[last] += "=" + arg // the parser would take it for a short flag
			continue
		}
		out = append(out, arg)
	}
	return out
}

// early are the flags that are also accepted before the command. true means that the flag has a value.
var early = map[string]bool{"--server": true, "--data-dir": true, "--key-file": true, "--plain-http": false}

// commandFirst moves early flags after the command: deckhand --server URL list becomes deckhand list --server URL.
func commandFirst(args []string) []string {
	at := 0
	for at < len(args) && strings.HasPrefix(args[at], "-") {
		name, _, joined := strings.Cut(args[at], "=")
		value, known := early[name]
		if !known {
			return args
		}
		if at++; value && !joined {
			at++
		}
	}
	if at == 0 || at >= len(args) {
		return args
	}
	flags, rest := args[:at], args[at:]
	end := slices.Index(rest, "--")
	if end < 0 {
		end = len(rest)
	}
	return slices.Concat(rest[:end], flags, rest[end:])
}

// withCommand inserts the command that flags without one are for: deckhand -c is deckhand session -c.
func withCommand(args []string) []string {
	at := 0
	for at < len(args) && (args[at] == "--config" || strings.HasPrefix(args[at], "--config=")) {
		if args[at] == "--config" {
			at++
		}
		at++
	}
	if at > len(args) || at < len(args) && (!strings.HasPrefix(args[at], "-") || args[at] == "--help" || args[at] == "-h") {
		return args
	}
	return slices.Insert(slices.Clone(args), at, "session")
}

var negativeNumber = regexp.MustCompile(`^-[0-9][0-9.]*[A-Za-z]*$`)

// localOnly are the flags that have no effect on another server.
var localOnly = []string{"agent", "analyzer", "base-url", "budget", "confirm", "max-iterations", "model", "sandbox", "yes"}

// CheckFlags refuses negative numbers, and flags on the command line that --server would ignore. Variables and
// the config file may set such flags, as defaults for sessions without --server.
func CheckFlags(k *kong.Context) error {
	for _, p := range k.Path {
		if p.Flag != nil && !p.Resolved && slices.Contains(localOnly, p.Flag.Name) && hasServer(k) {
			return fmt.Errorf("--%s does not work with --server (or DECKHAND_SERVER): the settings on that server apply; change them there", p.Flag.Name)
		}
	}
	return CheckNegative(k)
}

// hasServer reports whether the command uses another server.
func hasServer(k *kong.Context) bool {
	return slices.ContainsFunc(k.Flags(), func(f *kong.Flag) bool { return f.Name == "server" && f.Target.String() != "" })
}

// CheckNegative refuses negative numbers, which have no meaning for any flag. Optional
// values are checked by their commands.
func CheckNegative(k *kong.Context) error {
	for _, f := range k.Flags() {
		if v := f.Target; v.CanInt() && v.Int() < 0 || v.CanFloat() && v.Float() < 0 {
			return fmt.Errorf("--%s must not be negative", f.Name)
		}
	}
	return nil
}

// flagFirst matches a message about a flag.
var flagFirst = regexp.MustCompile(`^--([a-z-]+)`)

// Located returns the text of an error in plain English. To each line about a flag, it adds the source of the value unless that is the
// command line.
func (r *Resolver) Located(err error) error {
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		lines[i] = r.located(plain(line))
	}
	return errors.New(strings.Join(lines, "\n"))
}

func (r *Resolver) located(line string) string {
	m := flagFirst.FindStringSubmatch(line)
	if m == nil || r.flags[m[1]] == nil || typed(r.Args, m[0], "") != "" {
		return line
	}
	_, source := r.lookUp(r.flags[m[1]])
	switch name, isVariable := strings.CutPrefix(source, fromEnvironment); {
	case source == "" || source == fromPackage || isVariable && strings.HasSuffix(line, name+")"): // the parser names variables
		return line
	case isVariable:
		source = "environment variable" + name
	case source == fromFile:
		source += " " + r.Path
	}
	return line + " (" + source + ")"
}

// quoted is a pattern for a quoted value.
const quoted = `("(?:[^"\\]|\\.)*")`

// parserTexts are texts of the parser, and what to say instead.
var parserTexts = []struct {
	form *regexp.Regexp
	text string
}{
	{regexp.MustCompile(` \(from envar (\w+)=` + quoted + `\)$`), " (environment variable $1)"},
	{regexp.MustCompile(`expected duration but got ` + quoted + `(?:: time: [a-z ]+` + quoted + `(?: in duration ` + quoted + `)?)?`), "$1 is not a duration; use a value such as 30s, 10m or 1h30m"},
	{regexp.MustCompile(`expected a valid \d+ bit u?int but got ` + quoted), "$1 is not a whole number; use a value such as 16"},
	{regexp.MustCompile(`expected a float but got ` + quoted + ` \(\S+\)`), "$1 is not a number; use a value such as 16 or 0.5"},
	{regexp.MustCompile(`bool value must be true, 1, yes, false, 0 or no but got ` + quoted), "$1 is not a value of a switch; use true or false"},
	{regexp.MustCompile(`^\[?<([a-z-]+)>\]? must be`), "$1 must be"},
	{regexp.MustCompile(`^(--[a-z-]+): (?:expected \w+ value but got "EOL" \(<EOL>\)|missing value, expecting ".*")$`), "$1 needs a value"},
	{regexp.MustCompile(`^(--[a-z-]+): expected \w+ value but got ` + quoted + ` \((?:long|short) flag\)(?:; perhaps try (\S+)\?)?$`), "$1 needs a value; $2 is a flag"},
	{regexp.MustCompile(`^expected "((?:<[a-z-]+> ?)+)"$`), "missing argument $1"},
	{regexp.MustCompile(`^expected one of (".*")$`), "missing command: use one of $1"},
	{regexp.MustCompile(`^(--[a-z-]+): l?stat (.+): no such file or directory`), "$1: the file $2 does not exist"},
	{regexp.MustCompile(`^(--[a-z-]+): open (.+): no such file or directory`), "$1: the file $2 does not exist"},
	{regexp.MustCompile(`^(--[a-z-]+): (?:l?stat|open|read) (.+: )`), "$1: $2"},
}

// plain replaces texts of the parser.
func plain(text string) string {
	for _, p := range parserTexts {
		text = p.form.ReplaceAllString(text, p.text)
	}
	return text
}

// Explain returns the error message for an invalid command line, with the command that prints the relevant help.
func (r *Resolver) Explain(err error) string {
	var wrong *kong.ParseError
	if !errors.As(err, &wrong) {
		return err.Error()
	}
	// An enum lists the empty default, too.
	name, path, text := "", "deckhand", strings.Replace(r.Located(wrong).Error(), `one of "",`, "one of ", 1)
	if at := wrong.Context.Selected(); at != nil {
		name, path = at.Name, at.FullPath()
	}
	word, unexpected := strings.CutPrefix(text, "unexpected argument ")
	switch {
	case text == "missing argument <task>":
		text = fmt.Sprintf("task missing; for example: %s \"fix the failing test\"", path)
	case unexpected && (name == "run" || name == "new"):
		text += fmt.Sprintf("; quote the task: deckhand %s \"fix the failing test\"", name)
	case unexpected && (name == "" || name == "session"):
		word, hint, suggested := strings.Cut(word, ", ")
		if text = "unknown command " + word; suggested {
			text += "; " + suggestion.ReplaceAllString(hint, "$1")
		} else {
			text += "; to run a task: deckhand run \"TASK\""
		}
		return text + "\nRun deckhand --help for a list of commands."
	}
	return text + "\nRun " + path + " --help for help."
}

var suggestion = regexp.MustCompile(`"([^"]*)"`)

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

// Located adds the path of the config file to an error about a flag, if the value comes from there.
func (r *Resolver) Located(err error) error {
	m := flagFirst.FindStringSubmatch(err.Error())
	if m == nil || typed(r.Args, m[0], "DECKHAND_"+strings.ToUpper(strings.ReplaceAll(m[1], "-", "_"))) != "" {
		return err
	}
	for _, key := range []string{m[1], strings.ReplaceAll(m[1], "-", "_")} {
		if _, ok := r.file.flags[key]; ok {
			return fmt.Errorf("%w (config file %s)", err, r.Path)
		}
	}
	return err
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

package risk

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

var (
	// plainWord needs no quotes in a shell and cannot be mistaken for anything.
	plainWord = regexp.MustCompile(`^[A-Za-z0-9._/:@%+,=-]+$`)
	// programWord is a program by its name, subWord what a subcommand looks like.
	programWord = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._+-]*$`)
	subWord     = regexp.MustCompile(`^[a-z][a-z0-9:_-]*$`)
)

// withSubcommands are the programs whose first argument says what they do.
var withSubcommands = []string{"git", "go", "npm", "yarn", "pnpm", "cargo", "pip", "pip3", "make", "docker", "podman", "kubectl", "poetry", "uv", "bundle", "dotnet", "mix", "gradle", "mvn", "brew", "apt", "apt-get"}

// hands are the subcommands that run what their arguments name.
var hands = map[string]string{
	"go": "run tool", "npm": "exec x init create", "pnpm": "exec dlx create", "yarn": "exec dlx create", "uv": "run tool", "poetry": "run", "bundle": "exec",
	"docker": "run exec create compose", "podman": "run exec create compose", "kubectl": "run exec debug", "dotnet": "exec", "mix": "run eval",
}

// handsOn reports whether a command is as dangerous as its arguments, because it
// runs them: uv run sh -c …
func handsOn(ws []string) bool {
	if slices.Contains([]string{"npx", "bunx", "uvx", "pipx"}, ws[0]) {
		return true
	}
	subs := strings.Fields(hands[ws[0]])
	return slices.ContainsFunc(ws[1:], func(w string) bool { return slices.Contains(subs, w) })
}

// ProposeCommand is what to allow for good when a person allows this command line: it and
// no other, or with * at the end it with more arguments. It is empty for what should be
// asked about every time.
func ProposeCommand(text string) string {
	ws, ok := simple(text)
	if !ok {
		return ""
	}
	if slices.ContainsFunc(ws, func(w string) bool { return !plainWord.MatchString(w) }) {
		if len(ws) < 2 || !slices.Contains(withSubcommands, ws[0]) || handsOn(ws) {
			return ""
		}
	}
	if len(ws) > 1 && slices.Contains(withSubcommands, ws[0]) && !handsOn(ws) {
		if !subWord.MatchString(ws[1]) {
			return ""
		}
		return ws[0] + " " + ws[1] + "*"
	}
	return strings.Join(ws, " ")
}

// MatchesCommand reports whether what was allowed covers a command line: a single command
// of literal words that is not rated worse than what was allowed.
func MatchesCommand(allowed, text string) bool {
	ws, ok := simple(text)
	rating, _ := Shell(text)
	if !ok || rating == Unknown || rating == High {
		return false
	}
	allowed, more := strings.CutSuffix(allowed, "*")
	want := strings.Fields(allowed)
	if len(ws) < len(want) || !more && len(ws) != len(want) || !slices.Equal(ws[:len(want)], want) {
		return false
	}
	if len(ws) > len(want) && handsOn(ws) {
		return false
	}
	// What was allowed is as harmless as it looked: an option that makes it worse
	// is another matter.
	meant, _ := Shell(strings.Join(want, " "))
	return !rating.Worse(meant)
}

// simple are the words of a command line that is one program with literal
// arguments and nothing else: no pipe, list, substitution, redirection,
// assignment, pattern of names, line break or program that runs another.
func simple(text string) ([]string, bool) {
	if strings.ContainsAny(text, "\n#") {
		return nil, false
	}
	file, problem := parseShell(text)
	if problem != nil || len(file.Stmts) != 1 {
		return nil, false
	}
	s := file.Stmts[0]
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || s.Negated || s.Background || s.Coprocess || s.Disown || s.Semicolon.IsValid() || len(s.Redirs) > 0 || len(call.Assigns) > 0 || len(call.Args) == 0 {
		return nil, false
	}
	var out []string
	for i, w := range argsOf(call.Args) {
		switch {
		case !w.plain(), strings.HasPrefix(w.text, "~") && !w.quoted, strings.Contains(w.text, "\n"):
			return nil, false
		case i == 0 && (w.quoted || !programWord.MatchString(w.text) || runsOthers(w.text)):
			return nil, false
		}
		out = append(out, w.text)
	}
	return out, true
}

// runsOthers reports whether a program is only the way to another one.
func runsOthers(name string) bool {
	for names := range wrappers {
		if slices.Contains(strings.Fields(names), name) && name != "find" && name != "rg" && name != "fd" {
			return true
		}
	}
	return slices.Contains([]string{"eval", "source", ".", "trap", "alias", "bash", "sh", "dash", "zsh", "ksh", "fish"}, name)
}

// CheckCommand says what is wrong with what is to be allowed for good, in a sentence for
// the person who wrote it; "" if nothing is.
func CheckCommand(rest string) string {
	rest, more := strings.CutSuffix(rest, "*")
	ws := strings.Fields(rest)
	if len(ws) == 0 || strings.Join(ws, " ") != strings.TrimSuffix(rest, " ") || slices.ContainsFunc(ws, func(w string) bool { return !plainWord.MatchString(w) }) {
		return "A command in a pattern is a program and plain words with one space between, and * at the end for further arguments."
	}
	if got, ok := simple(rest); !ok || !slices.Equal(got, ws) {
		return "A command in a pattern is a single program that does not run another one: no pipes, shells, sudo, env, xargs and the like."
	}
	if more && handsOn(ws) {
		return "This command runs what its arguments name, so a pattern for it cannot end in *: write the whole command."
	}
	if rating, reason := Shell(rest); rating == High || rating == Unknown {
		return "This command needs approval every time. " + reason
	}
	return ""
}

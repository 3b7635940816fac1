package risk

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A pattern is what a person allows for good:
//
//	execute_bash:git status     this command and no other
//	execute_bash:git log*       it, and it with more arguments
//	str_replace_editor:/a/b/*   files below a folder
//	fetch                       every call of a tool
//
// However it is written, a pattern allows only what is plainly the same kind of
// thing: a single command of literal words, and never one that is rated worse
// than the pattern itself, nor anything that is High.

const (
	shellTool  = "execute_bash"
	editorTool = "str_replace_editor"
	maxPattern = 512
)

var (
	toolName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
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

// Pattern proposes what to allow for good when a person allows this call. It is
// empty for what should be asked about every time.
func Pattern(tool string, args json.RawMessage) string {
	rating, _ := Rate(tool, false, args)
	if rating == High || !toolName.MatchString(tool) {
		return ""
	}
	var p string
	switch tool {
	case shellTool:
		p = proposeCommand(args)
	case editorTool:
		p = proposeFolder(args)
	default:
		p = tool
	}
	if p == "" || CheckPattern(p) != nil || !Matches(p, tool, args) {
		return ""
	}
	return p
}

func proposeCommand(args json.RawMessage) string {
	ws, ok := simpleCall(args)
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
		return shellTool + ":" + ws[0] + " " + ws[1] + "*"
	}
	return shellTool + ":" + strings.Join(ws, " ")
}

func proposeFolder(args json.RawMessage) string {
	a, ok := parse(args)
	if !ok {
		return ""
	}
	name, _ := a.text("path")
	folder := path.Dir(name)
	if folder == "/" || !within(folder, name) {
		return ""
	}
	return editorTool + ":" + folder + "/*"
}

// Matches reports whether a pattern allows a call.
func Matches(pattern, tool string, args json.RawMessage) bool {
	if CheckPattern(pattern) != nil {
		return false
	}
	name, rest, narrow := strings.Cut(pattern, ":")
	if name != tool {
		return false
	}
	rating, _ := Rate(tool, false, args)
	switch {
	case rating == High:
		return false
	case !narrow:
		return true
	case tool == shellTool:
		return matchesCommand(rest, rating, args)
	default:
		a, ok := parse(args)
		if !ok {
			return false
		}
		file, _ := a.text("path")
		return within(strings.TrimSuffix(rest, "/*"), file)
	}
}

func matchesCommand(allowed string, rating Rating, args json.RawMessage) bool {
	ws, ok := simpleCall(args)
	if !ok || rating == Unknown {
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

// simpleCall takes apart a call of the shell that starts a command.
func simpleCall(args json.RawMessage) ([]string, bool) {
	a, ok := parse(args)
	if !ok || a.yes("is_input") {
		return nil, false
	}
	text, ok := a.text("command")
	if !ok {
		return nil, false
	}
	return simple(text)
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
	for i, w := range words(call.Args) {
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

// PatternError is a sentence about a pattern that cannot be used.
type PatternError struct{ Message string }

func (e *PatternError) Error() string { return e.Message }

func bad(message string) error { return &PatternError{message} }

// CheckPattern says what is wrong with a pattern, in a sentence for whoever wrote it.
func CheckPattern(pattern string) error {
	tool, rest, narrow := strings.Cut(pattern, ":")
	switch {
	case len(pattern) > maxPattern:
		return bad("A pattern has at most 512 characters.")
	case !toolName.MatchString(tool):
		return bad("A pattern begins with the name of a tool, like execute_bash:git status* or fetch.")
	case tool == shellTool && !narrow:
		return bad("A pattern for execute_bash names a command, like execute_bash:git status*; the shell as a whole cannot be allowed.")
	case !narrow:
		return nil
	case tool == shellTool:
		return checkCommand(rest)
	case tool == editorTool:
		folder, ok := strings.CutSuffix(rest, "/*")
		if !ok || !path.IsAbs(folder) || path.Clean(folder) != folder || folder == "/" || strings.ContainsAny(folder, "*?[") || strings.ContainsFunc(folder, disguises) {
			return bad("A pattern for the editor names a folder by its whole path, like str_replace_editor:/workspace/docs/*.")
		}
		return nil
	}
	return bad("Only execute_bash and str_replace_editor take more than the name of the tool in a pattern.")
}

func checkCommand(rest string) error {
	rest, more := strings.CutSuffix(rest, "*")
	ws := strings.Fields(rest)
	if len(ws) == 0 || strings.Join(ws, " ") != strings.TrimSuffix(rest, " ") || slices.ContainsFunc(ws, func(w string) bool { return !plainWord.MatchString(w) }) {
		return bad("A command in a pattern is a program and plain words with one space between, and * at the end for further arguments.")
	}
	if got, ok := simple(rest); !ok || !slices.Equal(got, ws) {
		return bad("A command in a pattern is a single program that does not run another one: no pipes, shells, sudo, env, xargs and the like.")
	}
	if more && handsOn(ws) {
		return bad("This command runs what its arguments name, so a pattern for it cannot end in *: write the whole command.")
	}
	if rating, reason := Shell(rest); rating == High || rating == Unknown {
		return bad("This command needs approval every time. " + reason)
	}
	return nil
}

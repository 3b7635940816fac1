// Package bashstate takes the state of an interactive bash and gives it to another one:
// working directory, variables with their attributes, functions, aliases, options, traps,
// umask, resource limits, positional parameters and the last exit code.
//
// Bash prints nearly all of its state as commands that create it again. Dump is a command
// that prints them in parts; Parse takes the parts from its output; State.Restore is a
// command for a new bash. Processes and open files are not a part of the state.
package bashstate

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// State is the state of a bash.
type State struct {
	// Dir is the working directory as the shell calls it, Dirs the rest of its stack of
	// directories, the top first.
	Dir  string   `json:"dir"`
	Dirs []string `json:"dirs,omitempty"`
	// Flags are those of $- that Dump turns off for a moment, Status the last exit code.
	Flags  string `json:"flags,omitempty"`
	Status int    `json:"status,omitempty"`
	// The rest is as bash printed it.
	Functions string `json:"functions,omitempty"`
	Marked    string `json:"marked,omitempty"` // attributes of functions
	Variables string `json:"variables"`
	Aliases   string `json:"aliases,omitempty"`
	Umask     string `json:"umask"`
	Limits    string `json:"limits,omitempty"`
	Shopt     string `json:"shopt"`
	Options   string `json:"options"`
	Args      string `json:"args,omitempty"`
	Traps     string `json:"traps,omitempty"`
	// Waited is the exit code of $!, the last process in the background; nil without one.
	Waited *int `json:"waited,omitempty"`
	// Hooked and MayERR are what the runner knows of its traps.
	Hooked bool `json:"hooked,omitempty"`
	MayERR bool `json:"may_err,omitempty"`
	// Jobs is what the shell has not said yet of jobs that ended.
	Jobs string `json:"-"`
}

// parts are the names of the parts in the order in which Dump prints them.
var parts = []string{"first", "dirs", "functions", "marked", "aliases", "umask", "limits", "shopt", "options", "args", "traps", "variables", "jobs", "end"}

// limits are the letters of "ulimit" for what can be set.
const limits = "cdefilmnqrstuvx"

// Dump is a command that prints the state to the terminal and leaves it as it is. word
// separates the parts; it must be new each time. The command calls only builtins, since
// names may be functions or aliases, and turns off what would show it or end the shell.
// What it sets begins with __dh_, as all that belongs to the runner.
func Dump(word string) string {
	half := len(word) / 2
	at := func(part string) string { return `\builtin printf '\n@%s %s\n' "$__dh_i" ` + part }
	lines := []string{
		`{ __dh_k=$?; __dh_l=$-; \builtin set +exvu; } 2>/dev/null`,
		// In two halves: the variables show this text.
		"__dh_i=" + word[:half], "__dh_i+=" + word[half:],
		at("first"), `\builtin printf '%s %s %s\n' "$__dh_k" "$__dh_l" "${!:-0}"`, `\builtin pwd`,
		at("dirs"), `\builtin dirs -l -p`,
		at("functions"), `\builtin declare -f`,
		at("marked"), `\builtin declare -F`,
		at("aliases"), `\builtin alias -p`,
		at("umask"), `\builtin umask`,
		at("limits"), `\builtin printf 'S\n'; \builtin ulimit -Sa; \builtin printf 'H\n'; \builtin ulimit -Ha`,
		at("shopt"), `\builtin shopt -p`,
		at("options"), `\builtin set +o`,
		at("args"), `case $# in 0) ;; *) \builtin printf ' %q' "$@";; esac`,
		at("traps"), `\builtin trap -p`,
		at("variables"), `\builtin declare -p`,
		// Nothing runs, so waiting only asks. It makes the shell forget what it wanted to say.
		at("jobs"), `__dh_j=0; case ${!:-} in ?*) \builtin jobs; \builtin wait "$!" && : || __dh_j=$?;; esac; \builtin printf '\n%s' "$__dh_j"`,
		at("end"),
	}
	return "{ " + strings.Join(lines, "\n") + "\n} 2>/dev/null\n" +
		// As the command before it had left the shell. Later commands see its exit code.
		`{ case $__dh_l in *u*) \builtin set -u;; esac; case $__dh_l in *v*) \builtin set -v;; esac; case $__dh_l in *x*) \builtin set -x;; esac; __dh_z=$__dh_k; ` +
		`case $__dh_l in *e*) \builtin set -e;; esac; __dh_e; } 9>&2 2>/dev/null`
}

// ErrBackground says that the shell can still be asked for the exit code of a process
// that it started in the background.
var ErrBackground = errors.New("a variable has the process ID of a background job")

// Parse takes the state from what Dump printed. With ErrBackground the state is known, but
// another shell could not do the same.
func Parse(printed []byte, word string) (*State, error) {
	found := map[string]string{}
	rest := string(printed)
	for i, name := range parts {
		before, after, ok := strings.Cut(rest, "\n@"+word+" "+name+"\n")
		if !ok {
			return nil, fmt.Errorf("the shell does not show its state: there is no part %q", name)
		}
		if i > 0 {
			found[parts[i-1]] = before
		}
		rest = after
	}
	s := &State{
		Functions: found["functions"], Marked: found["marked"], Aliases: found["aliases"], Umask: strings.TrimSpace(found["umask"]),
		Limits: parseLimits(found["limits"]), Shopt: found["shopt"], Options: found["options"], Args: found["args"], Traps: found["traps"], Variables: found["variables"],
	}
	var background int
	head, dir, _ := strings.Cut(found["first"], "\n")
	if _, err := fmt.Sscanf(head, "%d %s %d", &s.Status, &s.Flags, &background); err != nil {
		return nil, fmt.Errorf("the shell does not show its state: %w", err)
	}
	// Each path ends with a line feed, and may hold others.
	s.Dir = strings.TrimSuffix(dir, "\n")
	if !strings.HasPrefix(s.Dir, "/") || len(s.Umask) < 3 || !strings.Contains(s.Variables, "declare ") {
		return nil, errors.New("the shell does not show its state: a part is empty")
	}
	if stack := strings.Split(strings.TrimSuffix(found["dirs"], "\n"), "\n"); len(stack) > 1 && !strings.Contains(s.Dir, "\n") {
		s.Dirs = stack[1:]
	}
	jobs, waited, _ := cutLast(found["jobs"], "\n")
	code, err := strconv.Atoi(waited)
	if err != nil {
		return nil, fmt.Errorf("the shell does not show its state: %w", err)
	}
	if s.Jobs = jobs; background != 0 {
		s.Waited = &code
	}
	if background != 0 && s.mentions(background) {
		return s, ErrBackground
	}
	return s, nil
}

// others returns what matches variables that hold small numbers and are not set by commands. It is slow to
// compile, and only suspended sandboxes need it.
var others = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^declare \S+ (__dh_|BASH|HIST|LINES=|COLUMNS=|OPT|SHLVL=|SECONDS=|PPID=|E?UID=).*$`)
})

// mentions reports whether a variable has the number of a process as a word.
func (s *State) mentions(pid int) bool {
	word := regexp.MustCompile(`["' ]` + strconv.Itoa(pid) + `["' ]`)
	return word.MatchString(others().ReplaceAllString(s.Variables, ""))
}

// parseLimits turns lines such as "core file size (blocks, -c) 0" into "Sc 0". Asking for each limit by itself takes bash many times as long.
func parseLimits(printed string) string {
	var out strings.Builder
	kind := ""
	for line := range strings.Lines(printed) {
		line = strings.TrimSuffix(line, "\n")
		if line == "S" || line == "H" {
			kind = line
			continue
		}
		name, value, ok := cutLast(line, ") ")
		if n := len(name); ok && n > 2 && name[n-2] == '-' && strings.IndexByte(limits, name[n-1]) >= 0 {
			out.WriteString(kind + name[n-1:] + " " + strings.TrimSpace(value) + "\n")
		}
	}
	return out.String()
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// OwnFunctions reports whether the shell has functions that are not the runner's.
func (s *State) OwnFunctions() bool {
	for line := range strings.Lines(s.Marked) {
		if f := strings.Fields(line); len(f) > 0 && !strings.HasPrefix(f[len(f)-1], "__dh_") {
			return true
		}
	}
	return false
}

// Guarded reports whether the shell has traps that the runner keeps away from its own commands.
func (s *State) Guarded() bool {
	for line := range strings.Lines(s.Traps) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasSuffix(line, " DEBUG") || strings.HasSuffix(line, " RETURN") || strings.HasSuffix(line, " ERR") {
			return true
		}
	}
	return false
}

// Exit returns what the state says of "set -e", and of "set -x" and "set -v".
func (s *State) Exit() (errexit, traced bool) {
	return strings.Contains(s.Flags, "e"), strings.Contains(s.Flags, "v")
}

// set are variables that bash sets when it starts and that a command may have unset.
var set = []string{"HOSTNAME", "HOSTTYPE", "MACHTYPE", "OSTYPE", "OLDPWD", "PS4", "COLUMNS", "LINES"}

// isName reports whether a variable of bash can have the name.
func isName(s string) bool {
	for i, c := range []byte(s) {
		if c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// Restore is a command that gives the state to a bash that has just been started with
// variables of the names env. dir is where it goes. number is the command's own; a shell that
// was restored tells of the next one that it has ended.
func (s *State) Restore(dir string, env []string, number int64) string {
	var b bytes.Buffer
	whole := "" // what __dh_y is when all parts could be read to their ends
	eval := func(text string) {
		if strings.TrimSpace(text) != "" {
			b.WriteString(`\builtin eval ` + Quote(text+"\n__dh_y+=1") + "\n")
			whole += "1"
		}
	}
	b.WriteString("{\n\\builtin cd -- " + Quote(dir) + "\n")
	// Variables come before functions, one of which may be called declare, and functions before
	// aliases, which would change them. Some can only be read with extglob, whatever it is now.
	for _, n := range slices.Concat(env, set) {
		if isName(n) {
			b.WriteString(`\builtin unset -v ` + n + "\n")
		}
	}
	eval(s.Variables)
	b.WriteString("\\builtin shopt -s extglob\n")
	eval(s.Functions)
	var marked strings.Builder
	for line := range strings.Lines(s.Marked) {
		marked.WriteString(`\builtin ` + line)
	}
	eval(marked.String())
	for _, d := range slices.Backward(s.Dirs) {
		b.WriteString(`\builtin pushd -n ` + Quote(d) + "\n")
	}
	eval(s.Aliases)
	for line := range strings.Lines(s.Limits) {
		if kind, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			b.WriteString(`\builtin ulimit -` + kind + " " + value + "\n")
		}
	}
	if s.Waited != nil {
		fmt.Fprintf(&b, "\\builtin set +m\n(\\builtin exit %d) &\n\\builtin wait \"$!\"\n", *s.Waited)
	}
	b.WriteString(`\builtin umask ` + s.Umask + "\n")
	if s.Args != "" {
		b.WriteString(`\builtin set --` + s.Args + "\n")
	}
	eval(s.Shopt)
	eval(s.options())
	eval(s.Traps)
	b.WriteString("} >/dev/null 2>&1\n")
	fmt.Fprintf(&b, "{ case $__dh_y in %s) __dh_n=%d;; *) __dh_n=%d;; esac; \\builtin unset -v __dh_y; __dh_d=0 __dh_v= __dh_z=%d; ", whole, number+1, number, s.Status)
	for _, f := range "uvxe" {
		if strings.ContainsRune(s.Flags, f) {
			b.WriteString(`\builtin set -` + string(f) + "; ")
		}
	}
	b.WriteString("__dh_e; } 9>&2 2>/dev/null")
	return b.String()
}

// options are those of "set -o" without what is never on between commands: an editor of
// lines, and what Flags has.
func (s *State) options() string {
	var kept []string
	for line := range strings.Lines(s.Options) {
		switch f := strings.Fields(line); {
		case len(f) != 3:
		case slices.Contains([]string{"vi", "emacs", "errexit", "xtrace", "verbose", "nounset"}, f[2]):
		default:
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

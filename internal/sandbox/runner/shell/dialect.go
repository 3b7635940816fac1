package shell

import (
	"fmt"
	"strconv"
	"strings"

	"deckhand/internal/sandbox/runner/shell/bashstate"
	"deckhand/internal/sandbox/runner/shell/heredoc"
)

// A shell takes its lines from a pipe and not from its terminal. So what a
// program was sent and did not read never becomes a command, and a command may
// be longer than a terminal's line. Its terminal is given to each command as
// standard input. The shell is interactive all the same: only then does Ctrl-C
// end a command and not the shell, and only then are there jobs.
//
// Everything that tells the runner where a shell is goes to the terminal through
// a descriptor of our own, so that a command may close or redirect its output.
// That a command has ended is told by the line that ran it. A syntax error or an
// interrupt makes the shell drop the rest of that line; then the prompt of bash
// tells it, or the next line of another shell.

// dialect is how one kind of shell is spoken to.
type dialect struct {
	args []string
	// takePipes is typed, if the shell starts on the terminal; it puts the pipe in
	// its place.
	takePipes string
	// ready are the first lines of the pipe: they define what the others use.
	ready func(word string) string
}

// quietly calls one of our functions so that a user's "set -x" does not show it.
func quietly(call string) string { return "{ " + call + "; } 2>/dev/null" }

// reopen connects outputs that a command has closed with the terminal again: a
// shell without them cannot even say what is wrong. What a command has redirected
// to a file stays there. It calls nothing: a fork bomb likes the name ":".
func reopen(terminal string) string {
	return "{ __dh_l=; } 2>/dev/null 7>&1||\\exec >&" + terminal + ";{ __dh_l=; } 7>&2 2>/dev/null||\\exec 2>&" + terminal + ";"
}

// bashReopen is the same for bash, without copying descriptors. Our name in the condition keeps a trap of DEBUG from it.
const bashReopen = `[[ $__dh_G && -t 1 && -t 2 ]]||__dh_j;`

// bash runs a command with one line of the pipe, see bashLine.
//
// The functions keep the previous command's exit code in __dh_s and show it to
// the next one, count __dh_n, and repair after each command what the prompt
// needs: scripts that set up a shell for a person change it. They must not fail,
// since a user's "set -e" would end the shell, and they call no name that a user's
// function may take. Descriptor 255 is the terminal that bash holds for itself;
// what was redirected with exec does not change it. Builtins that a command has
// disabled are enabled again; where that fails the option d says so.
var bash = dialect{
	args:      []string{"bash", "--noprofile", "--norc", "--noediting", "-i"},
	takePipes: "exec 0<&3 3<&- 4<&-\n",
	ready: func(word string) string {
		mark := `\033]5379;` + word
		// On a line of its own, because bash expands each line that it reads until history is off, which takes as long as reading the rest.
		quiet := `set +o history; set +H; unset HISTFILE MAILCHECK TMOUT PROMPT_COMMAND; umask 022; PS0= PS1= PS2=` + "\n"
		return quiet + strings.Join([]string{
			`__dh_n=0 __dh_s=0 __dh_d=0 __dh_c= __dh_v= __dh_o= __dh_z=0 __dh_D= __dh_G=DEBUG __dh_K= __dh_R=`,
			`__dh_p=$'` + mark + `;p;${__dh_n};${__dh_s};${__dh_o}\a'`, `readonly __dh_p`,
			// With "builtin exec" the redirection would end with the line.
			`__dh_w() { [[ -t 255 ]] || command exec 255<>/dev/tty || \exec 255<>/dev/tty; }`, `__dh_w`,
			`__dh_j() { [[ -t 1 || -e /dev/fd/1 ]] || \exec >&255; [[ -t 2 || -e /dev/fd/2 ]] || \exec 2>&255; }`,
			// "set -x" and "set -v" are off between commands.
			`__dh_b() { __dh_d=0 __dh_n=$1; builtin printf -v __dh_c %b "$2"; if [[ $-$__dh_v == *[vx]* ]]; then __dh_l; fi; ` +
				`[[ -t 255 ]] || __dh_w; builtin printf '` + mark + `;b;%s\a' "$1" >&255; }`,
			`__dh_l() { if [[ $- == *x* ]]; then __dh_v+=x; builtin set +x; fi; if [[ $__dh_v ]]; then __dh_c="builtin set -$__dh_v"$'\n'$__dh_c; fi; __dh_v=; }`,
			`__dh_r() { builtin return "$__dh_s"; }`,
			`__dh_m() { [[ -t 255 ]] || __dh_w; builtin printf '` + mark + `;%s;%s;%s;%s\a' "$1" "$__dh_n" "$__dh_s" "$__dh_o" >&255; }`,
			bashTrap,
			// If the command changed nothing that must be repaired, this is all. The function is short and calls no other one,
			// because bash copies a function each time it is called.
			`__dh_e() { if [[ ${__dh_n-} && ${__dh_d-}${__dh_v-}${__dh_K-} == 0 && $- != *[evx]* && -t 1 && -t 9 && -t 255 && $PS1 == "$__dh_p" && ! ${PS0-}${PS2-} && ${PROMPT_COMMAND[*]-} == "$__dh_q" ]] && ` +
				`builtin enable ` + bashUses + ` && builtin eval builtin :; then __dh_s=$__dh_z __dh_d=1 __dh_o=; else __dh_f; fi; }`,
			// A command may have unset our variables.
			`__dh_f() { __dh_n=${__dh_n:-?} __dh_d=${__dh_d-0} __dh_s=${__dh_s-0} __dh_v=${__dh_v-} __dh_K=${__dh_K-} __dh_D=${__dh_D-}; if [[ $- == *x* ]]; then __dh_v+=x; builtin set +x; fi; if [[ $- == *v* ]]; then __dh_v+=v; builtin set +v; fi; __dh_o=$__dh_v$__dh_K __dh_K=; if [[ $- == *e* ]]; then __dh_o+=e; fi; if [[ ! -t 1 && -e /dev/fd/1 ]]; then __dh_o+=r; fi; ` +
				`if ! { { builtin enable ` + bashUses + ` || \enable ` + bashUses + `; } && builtin eval builtin :; }; then __dh_o+=d; fi; ` +
				`if [[ $__dh_d == 0 ]]; then __dh_s=$__dh_z __dh_d=1; __dh_m e; fi; ` +
				// After an interrupted command nothing else calls it; usually there is nothing
				// left to do.
				`builtin unset PROMPT_COMMAND; PROMPT_COMMAND=$__dh_q; ` +
				`if [[ $__dh_v == *x* ]]; then PROMPT_COMMAND='` + bashEnd + `'; fi; PS0= PS2=; ` +
				// The prompt goes to standard error. Its mark must not go to a file.
				`if [[ -t 9 ]]; then PS1=$__dh_p; else PS1= PROMPT_COMMAND+=';` + quietly("__dh_m p") + `'; fi; }`,
			`__dh_y() { ` + bashEnd + `; }`, `readonly __dh_q='case $__dh_d in 0) __dh_y;; esac'`,
			`readonly __dh_g __dh_h __dh_G; readonly -f __dh_w __dh_j __dh_b __dh_l __dh_r __dh_m __dh_t __dh_u __dh_e __dh_f __dh_y __dh_k __dh_a`, bashEnd,
		}, "; ") + "\n"
	},
}

// bashUses are the builtins that our lines call.
const bashUses = ". : builtin command enable eval exec printf return set unset"

// bashEnd tells that a command has ended. Standard error stays in reach as
// descriptor 9, unless it is closed.
var bashEnd = quietly("__dh_z=$?") + ";{ __dh_e; } 9>&2 2>/dev/null||" + quietly("__dh_e")

// bashLine runs a command. It is evaluated where the line is, at the top level,
// so that everything it sets stays set. The condition puts the previous exit
// code into $? where "set -e" does not see it. Bash takes the end of a text that
// is not complete for the end of a line that goes on: hence the empty line. It
// may be lost, for an interrupt makes bash drop what it has read ahead.
//
// An interactive bash that was started without line editing crashes when a command turns
// it on: it then reads its lines in another way, even in the middle of an eval. While bash
// reads a file it does not count as interactive. The option is turned off after the command,
// for it would end the shell at Ctrl-C. The descriptor of the file is closed before the command: bash
// would keep a copy as descriptor 10, and lose its own input where a command closes that.
func bashLine(p *process, number int64, text string) string {
	begin, eval, end := "__dh_b ", `\builtin eval "$__dh_c" <&255`, bashEnd
	if p.status != 0 {
		eval = ifElse("__dh_r", eval)
	}
	if p.hooked {
		begin = `\builtin trap - $__dh_G; __dh_a; __dh_b `
		eval = `\builtin . /proc/self/fd/7 7<<<'{ \command exec 7<&- || __dh_x=; \builtin eval "$__dh_D"; } >/dev/null 2>&1;` + ifElse("__dh_r", `\builtin eval "$__dh_c" <&255`) +
			`;{ __dh_k=$? __dh_x=$(\builtin trap -p $__dh_G); \builtin trap - $__dh_G; __dh_u; \builtin return "$__dh_k"; } >/dev/null 2>&1'`
	}
	if p.traceTo != "" {
		end = "{ " + end + "; } " + p.traceTo + ">/dev/null"
	}
	return quietly(begin+strconv.FormatInt(number, 10)+" "+bashstate.Text(heredoc.Close(text, end, p.errexit || p.hooked && p.mayERR))) + ";" +
		bashReopen + eval + ";" + end + "\n\n"
}

// ifElse runs a command after a condition, whatever that is.
func ifElse(condition, then string) string {
	return "if " + condition + ";then " + then + ";else " + then + ";fi"
}

// bashCheck is a line that does nothing but change the number that the prompt
// tells. An interrupt may make bash drop any part of it: the rest does no harm.
func bashCheck(number int64) string { return "__dh_n=" + strconv.FormatInt(number, 10) + "\n" }

// plain is any other shell that follows the standard. It reads a command from a
// file, whose name comes through a second pipe: the ash of busybox takes a
// signal at its prompt for the end of its input, so it must not wait there. Its
// first pipe holds one line ahead, always the same, that waits for a name. The
// next one is written when the shell has said that it took this one, and a name
// only after that. Not before: busybox reads all that is in the pipe, and what it
// has read and not used is seen by its own commands as their input. Not later: a
// command may end at once, and a job of its own with it, whose end is a signal.
//
// Descriptor 9 is its terminal. It is opened once: the end of a job is a signal,
// which may break off the opening.
var plain = dialect{
	// The line editor of zsh would read from the terminal.
	args: []string{"sh", "-c", "exec 0<&3 8<&4 9<&2 3<&- 4<&-; exec sh ${ZSH_VERSION:++o zle} -i"},
	ready: func(word string) string {
		mark := `\033]5379;` + word
		return strings.Join([]string{
			`case ${ZSH_VERSION-} in ?*) unsetopt promptcr promptsp; eval '` + strings.ReplaceAll(zshTrap, "'", `'\''`) + `';; esac`,
			`unset HISTFILE MAILCHECK TMOUT`, `umask 022`, `__dh_n=0 __dh_s=0 __dh_d=1 __dh_f= __dh_v= __dh_x= __dh_o= __dh_i=`,
			`__dh_m() { command printf "$@" >&9 || command printf "$@" >&9 || command printf "$@" >&9; }`,
			// What zsh has disabled it would look for on the disk, and take its end for that of a job.
			`__dh_q() { __dh_z=$?; case ${ZSH_VERSION-} in ?*) command enable . : exec printf read return set unset;; esac; case $- in *v*) __dh_v=v; command set +v;; esac; case $- in *x*) __dh_x=x;; esac; case $__dh_d in 0) __dh_s=$__dh_z __dh_d=1;; esac; }`,
			`__dh_t() { __dh_m '` + mark + `;t;%s;%s\a' "$__dh_n" "$__dh_s"; }`,
			// See plainName. What IFS is must not matter: it may be read-only.
			`__dh_g() { command read -r __dh_i <&8 && { __dh_i=${__dh_i#.}; __dh_i=${__dh_i# }; __dh_n=${__dh_i%% *}; ` +
				`__dh_f=${__dh_i#* }; __dh_f=${__dh_f%.}; __dh_f=${__dh_f% }; } || __dh_f=-; }`,
			`__dh_b() { case $__dh_f in -) ;; *) __dh_d=0; __dh_m '` + mark + `;b;%s\a' "$__dh_n";; esac; }`,
			`__dh_r() { return "$__dh_s"; }`,
			`__dh_e() { __dh_q; __dh_o=$__dh_x$__dh_v; case $- in *e*) __dh_o=e$__dh_o;; esac; ` +
				`__dh_m '` + mark + `;e;%s;%s;%s\a' "$__dh_n" "$__dh_s" "$__dh_o"; __dh_p; }`,
			`__dh_p() { PS1='` + "\x1b]5379;" + word + `;p;${__dh_n};$?` + "\a" + `' PS2=; }`,
			`__dh_p`, `__dh_m '` + mark + `;e;0;0\a'`,
		}, "; ") + "\n"
	},
}

// plainLine waits for a command's number and file, and runs it. There is no file
// if nothing is to be done. "set -x" is turned off here, since in a function of zsh it
// comes back when the function ends.
var plainLine = quietly("__dh_q; case $__dh_x in x) command set +x;; esac; __dh_t; __dh_g; __dh_b") + ";" + reopen("9") +
	"case $__dh_f in -) ;; *) " + ifElse(quietly("__dh_r"), `. "$__dh_f" <&9 8<&- 9<&-`) + ";; esac;" +
	quietly("__dh_e") + "\n"

// plainName tells a plain shell the number and the file of a command. Read into one
// variable, a line may lose at either end characters that IFS has: these are dots.
func plainName(number int64, file string) string { return fmt.Sprintf(". %d %s .\n", number, file) }

// plainTrace is the first line of a file when a command before turned on "set -x" or
// "set -v", which are off between commands. It keeps the exit code of the command
// before, but with "set -e", which would take it for a failure.
var plainTrace = quietly("case $__dh_v in v) __dh_v=; command set -v;; esac; case $__dh_x in x) __dh_x=; command set -x;; esac; "+
	"case $- in *e*) ;; *) __dh_r;; esac") + "\n"

// ourLines are what "set -v" would show of our lines.
func (d *dialect) ourLines() [][]byte {
	if d == &bash {
		return [][]byte{[]byte(bashEnd + "\n")}
	}
	return [][]byte{[]byte(plainLine), []byte(plainTrace), []byte(plainClose + "\n")}
}

// plainClose is the last line of a file, see closing.
var plainClose = quietly("__dh_q")

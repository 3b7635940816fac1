package shell

import (
	"fmt"
	"strconv"
	"strings"
)

// A shell takes its lines from a pipe and not from its terminal. So what a
// program was sent and did not read never becomes a command, and a command may
// be longer than a terminal's line. Its terminal is given to each command as
// standard input. The shell is interactive all the same: only then does Ctrl-C
// end a command and not the shell, and only then are there jobs.
//
// It starts on the terminal, where takePipes waits for it, and is told the rest
// through the pipe.

// dialect is how one kind of shell is spoken to.
type dialect struct {
	args []string
	// takePipes is typed; it puts the pipe in place of the terminal.
	takePipes string
	// ready is the first line of the pipe: it defines what the others use.
	ready func(word string) string
}

// quietly calls one of our functions so that a user's "set -x" does not show it.
// Standard error stays in reach as descriptor 9.
func quietly(call string) string { return "{ " + call + "; } 9>&2 2>/dev/null" }

// bash runs a command with one line of the pipe, see bashLine.
//
// The functions keep the previous command's exit code in __dh_s and show it to
// the next one, count __dh_n, and repair after each command what the prompt
// needs: scripts that set up a shell for a person change it. They must not fail,
// since a user's "set -e" would end the shell. Descriptor 255 is the terminal
// that bash holds for itself; what was redirected with exec does not change it.
var bash = dialect{
	args:      []string{"bash", "--noprofile", "--norc", "--noediting", "-i"},
	takePipes: "exec 0<&3 3<&- 4<&-\n",
	ready: func(word string) string {
		mark := `\033]5379;` + word
		return strings.Join([]string{
			`set +o history`, `set +H`, `unset HISTFILE MAILCHECK TMOUT PROMPT_COMMAND`, `umask 022`,
			`__dh_n=0 __dh_s=0 __dh_d=1 __dh_c=`, `__dh_t=255`, `[ -t 255 ] || __dh_t=2`,
			`__dh_p=$'` + mark + `;e;${__dh_n};${__dh_s}\a'`, `readonly __dh_t __dh_p`,
			// It turns "set -x" off for as long as it takes to get to the command.
			`__dh_b() { __dh_d=0 __dh_n=$1 __dh_c=$2; if [[ $- == *x* ]]; then __dh_c=$'set -x\n'$2; set +x; fi; ` +
				`builtin printf '` + mark + `;b;%s\a' "$1" >&"$__dh_t"; }`,
			`__dh_r() { return "$__dh_s"; }`,
			`__dh_e() { local s=$?; if [[ $__dh_d == 0 ]]; then __dh_s=$s __dh_d=1; fi; ` +
				// After a command that was broken off nobody else calls it; usually there is
				// nothing left to do.
				`unset PROMPT_COMMAND; PROMPT_COMMAND='case $__dh_d in 0) ` + quietly("__dh_e") + `;; esac' PS0= PS2=; ` +
				`if [[ $- == *x* ]]; then PROMPT_COMMAND='` + quietly("__dh_e") + `'; fi; ` +
				`if [[ -t 9 ]]; then PS1=$__dh_p; else PS1=; builtin printf '` + mark + `;e;%s;%s\a' "$__dh_n" "$__dh_s" >&"$__dh_t"; fi; }`,
			`readonly -f __dh_b __dh_r __dh_e`, quietly("__dh_e"),
		}, "; ") + "\n"
	},
}

// closing is text with a last line that takes its exit code. Without it a user's
// "set -e" would end the shell for a code that it lets pass in the text itself,
// as in "! true" or "false && true". What may have an unfinished here-document
// is left alone: the line would become a part of it.
func closing(text string) (closed string, ok bool) {
	if strings.Contains(text, "<<") {
		return text, false
	}
	if strings.HasSuffix(text, `\`) {
		text += "\n" // the line goes on, with nothing
	}
	return text + "\n" + quietly("__dh_e"), true
}

// bashLine runs a command. It is evaluated where the line is, at the top level,
// so that everything it sets stays set. The condition puts the previous exit
// code into $? where "set -e" does not see it.
func bashLine(number int64, text string) string {
	const eval = `eval "$__dh_c" <&"$__dh_t"`
	text, ok := closing(text)
	line := "{ __dh_b " + strconv.FormatInt(number, 10) + " " + bashQuote(text) + "; } 2>/dev/null" +
		";if __dh_r;then " + eval + ";else " + eval + ";fi"
	if !ok {
		line += ";" + quietly("__dh_e")
	}
	return line + "\n"
}

// bashQuote makes one word on one line of any text.
func bashQuote(text string) string {
	var b strings.Builder
	b.Grow(len(text) + 8)
	b.WriteString("$'")
	for i := range len(text) {
		switch c := text[i]; {
		case c == '\n':
			b.WriteString(`\n`)
		case c < ' ', c == 0x7f, c == '\'', c == '\\', c == '!': // ! would be looked up in a history that somebody turned on
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

// plain is any other shell that follows the standard. It reads a command from a
// file, whose name comes through a second pipe: the ash of busybox takes a
// signal at its prompt for the end of its input, so it must not wait there. Its
// first pipe holds one line ahead, always the same, that waits for a name. The
// next one is written when the shell has said that it took this one, and a name
// only after that. Not before: busybox reads all that is in the pipe, and what it
// has read and not used is seen by its own commands as their input. Not later: a
// command may end at once, and a job of its own with it, whose end is a signal.
var plain = dialect{
	args:      []string{"sh", "-i"},
	takePipes: "exec 0<&3 8<&4 3<&- 4<&-\n",
	ready: func(word string) string {
		mark := `\033]5379;` + word
		return strings.Join([]string{
			`unset HISTFILE MAILCHECK TMOUT`, `umask 022`, `__dh_n=0 __dh_s=0 __dh_d=1 __dh_f=`,
			// The end of a job is a signal, which may break off the opening or the writing.
			`__dh_m() { printf "$@" >/dev/tty || printf "$@" >/dev/tty || printf "$@" >/dev/tty; }`,
			`__dh_q() { local s=$?; if [ "$__dh_d" = 0 ]; then __dh_s=$s __dh_d=1; fi; }`,
			`__dh_t() { __dh_m '` + mark + `;t;%s\a' "$__dh_n"; }`,
			`__dh_b() { [ "$__dh_f" = - ] || { __dh_d=0; __dh_m '` + mark + `;b;%s\a' "$__dh_n"; }; }`,
			`__dh_r() { return "$__dh_s"; }`,
			`__dh_e() { __dh_q; __dh_p; __dh_m '` + mark + `;e;%s;%s\a' "$__dh_n" "$__dh_s"; }`,
			`__dh_p() { PS1='` + "\x1b]5379;" + word + `;p;${__dh_n};$?` + "\a" + `' PS2=; }`,
			`__dh_p`, `__dh_m '` + mark + `;e;0;0\a'`,
		}, "; ") + "\n"
	},
}

// plainLine waits for a command's number and file, and runs it. There is no file
// if nothing is to be done.
var plainLine = quietly("__dh_q; __dh_t; IFS=' ' read -r __dh_n __dh_f <&8; __dh_b") + ";" +
	"if " + quietly(`[ "$__dh_f" = - ]`) + ";then :;" +
	"elif " + quietly("__dh_r") + ";then . \"$__dh_f\" <&2 8<&-;else . \"$__dh_f\" <&2 8<&-;fi;" + quietly("__dh_e") + "\n"

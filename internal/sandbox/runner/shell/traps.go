package shell

import (
	"strings"

	"deckhand/internal/sandbox/runner/shell/bashstate"
)

// noteHooks remembers what a text may leave behind in the shell. The lines of a shell with
// hooks are longer, see bashLine.
func (p *process) noteHooks(text string) {
	p.hooked = p.hooked || bashstate.MayHook(text)
	p.mayERR = p.mayERR || strings.Contains(text, "ERR") || p.hooked && !strings.Contains(text, "trap")
	if to := bashstate.TraceTo(text); to != "" {
		p.traceTo = to
	}
}

// A trap of DEBUG or RETURN would be run for our commands as well, and cannot be taken away
// before the first of them. So its text is put between these two, which know our commands
// by their names, or by being in no file. The exit code that the text sees stays what it was.
const (
	bashGuard = `case ${FUNCNAME-source}:$BASH_COMMAND in *__dh_*|trap:*|${__dh_R-}) ;; *) `
	zshGuard  = `case $__dh_d:${funcstack[*]-}:${ZSH_DEBUG_CMD-} in 1*|0::*|*__dh_*|0:trap\ *) ;; *) `
)

// bashTrap is what stands in for the builtin "trap": it sets guarded traps, and shows them
// as they were given. What "set -x" would show of it goes nowhere. __dh_D sets the trap of
// DEBUG again, which is gone in each new file that bash reads. A trap of DEBUG that returns would
// end that file before the command, so it is not run there (__dh_R). With "extdebug" a trap that
// fails skips the command: __dh_k reports that, and lets "trap" run, which removes the trap. __dh_u guards
// a trap that "builtin trap" has set, after the command.
const bashTrap = `__dh_t() { { local k=0 s; if [[ $# == 0 || $1 == -p ]]; then s=$(builtin trap "$@" 2>&9); k=$?; ` +
	`s=${s//"$__dh_g"/}; s=${s//"$__dh_h"/}; if [[ $s ]]; then builtin printf '%s\n' "$s"; fi; else ` +
	`if [[ $1 == -- ]]; then builtin shift; fi; if [[ $# -lt 2 || ! $1 || $1 == -* ]]; then builtin trap "$@" 2>&9 || k=$?; else ` +
	`for s in "${@:2}"; do case ${s^^} in DEBUG|SIGDEBUG) __dh_R=; if [[ $1 == *return* ]]; then __dh_R='source:*'; fi; builtin trap -- "$__dh_g$1$__dh_h" "$s";; ` +
	`RETURN|SIGRETURN) builtin trap -- "$__dh_g$1$__dh_h" "$s";; ` +
	`*) builtin trap -- "$1" "$s" 2>&9;; esac || k=$?; done; fi; __dh_D=$(builtin trap -p DEBUG); fi; } 9>&2 2>/dev/null; builtin return "$k"; }; ` +
	`__dh_g='` + bashGuard + `' __dh_h=$'\n;; esac||__dh_k #__dh_'; declare -ft __dh_t; ` +
	`__dh_k() { local k=$?; if [[ $BASH_COMMAND == trap\ * ]]; then k=0; elif builtin shopt -q extdebug; then __dh_K=k; fi; builtin return "$k"; }; ` +
	`__dh_u() { builtin set +o vi; builtin set +o emacs; if [[ $__dh_x && $__dh_x != *__dh_* ]]; then builtin eval "__dh_t ${__dh_x#trap }"; else __dh_D=$__dh_x; fi; }; ` +
	`__dh_a() { if ! builtin declare -F trap >/dev/null; then trap() { __dh_t "$@"; }; builtin declare -ft trap; fi; }`

// zshTrap is the same for a zsh, which has no RETURN.
const zshTrap = `zmodload zsh/parameter; __dh_g='` + zshGuard + `' __dh_h=$(printf '\n;; esac #__dh_'); trap() { if (( $# == 0 )); then __dh_y=$(builtin trap); ` +
	`__dh_y=${__dh_y//"$__dh_g"/}; __dh_y=${__dh_y//"$__dh_h"/}; case $__dh_y in ?*) builtin print -r -- "$__dh_y";; esac; return; fi; ` +
	`case $1 in --) shift;; esac; case $#$1 in 1*|[2-9]|[2-9]-*) builtin trap "$@"; return;; esac; __dh_j=$1; shift; ` +
	`for __dh_k in "$@"; do case $__dh_k in DEBUG|SIGDEBUG) builtin trap -- "$__dh_g$__dh_j$__dh_h" DEBUG;; *) builtin trap -- "$__dh_j" "$__dh_k";; esac; done; }`

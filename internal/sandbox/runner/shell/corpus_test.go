package shell

import (
	"strings"
	"testing"

	"deckhand/internal/sandbox"
	"deckhand/internal/soak"
)

// unfinished are texts that a shell cannot parse. Typed at a prompt, most of them
// would have it wait for the rest.
var unfinished = []string{
	`echo "abc`, `echo 'it's'`, `echo $((`, `echo $((1+`, "echo `true", `echo $(true`, `echo "${x`, "echo \"abc\ndef", "echo ok; echo \"abc",
	"case x in", "case x in\nx) echo y", "if true", "if true; then", "if true; then echo x", "for i in 1 2; do echo $i", "while true; do", "until",
	"{", "{ echo x", "( echo x", "f() {", "f() { echo x", "fi", "done", ")", ";;", "echo a; )", "&& echo", "echo |",
}

// rough are commands that change what a shell is spoken to with. None of them may
// keep the next command from running.
var rough = []struct {
	text   string
	ends   bool   // the shell
	either bool   // the shell may end or not
	loud   bool   // more than the next command's output may follow
	only   string // in this shell, "" for all
}{
	{text: "exec 2>&-"}, {text: "exec >&-"}, {text: "exec 1>&- 2>&-"}, {text: "exec 0<&-"}, {text: "exec </dev/null"}, {text: "exec 8<&-; exec 9<&-"},
	{text: "stty -echo"}, {text: "stty raw -echo"},
	{text: "PS1=x PS2=y PS4=z PROMPT_COMMAND='echo pc'"}, {text: "readonly PS1=foo PROMPT_COMMAND=:", loud: true},
	{text: "set -e; false", ends: true}, {text: "set -e; ! true"}, {text: "exit 3", ends: true}, {text: "exec true", ends: true},
	{text: "trap '' INT"}, {text: "trap 'echo bye' EXIT"}, {text: "trap 'echo failed' ERR"}, {text: "trap 'echo next' DEBUG", loud: true},
	{text: "set -x", loud: true}, {text: "set -v", loud: true}, {text: "set -u; echo $nope"}, {text: "set -f; IFS=_"}, {text: "set -o noclobber"},
	{text: "printf() { :; }; echo() { :; }; test() { :; }; cd() { :; }; read() { :; }; local() { :; }"},
	{text: "eval() { :; }"}, {text: "unset() { :; }"}, {text: "set() { :; }"},
	{text: "alias printf=false eval=false read=false; alias exec=false"},
	{text: "set -v\necho \"abc", loud: true}, {text: "set -x\necho \"abc", loud: true}, {text: "set -xv\nfalse", loud: true}, {text: "set -ev; true", loud: true},
	{text: "kill -STOP $$; echo on"}, {text: "suspend", only: "bash"}, {text: "suspend", only: "zsh"},
	{text: "set -o vi; echo V"}, {text: "set -o emacs"}, {text: "set +o vi; set +o emacs"}, {text: "shopt -so vi", only: "bash"},
	{text: "for i in 10 255; do eval \"exec $i>&-\"; done", only: "bash"}, {text: "for i in $(seq 3 255); do eval \"exec $i>&-\"; done", only: "bash"},
	{text: "exec 3>&- 4>&-"}, {text: "exec 10<&- 11<&-", only: "bash"}, {text: "trap : USR1; exec 10<&- 11<&-", only: "bash"}, {text: "fd=10; eval :; exec {fd}>&-", only: "bash"},
	{text: "exec 255>&-", only: "bash"}, {text: "exec 256<&-", only: "bash", ends: true},
	{text: "for f in /proc/$$/fd/*; do f=${f##*/}; if [ $f -gt 2 ]; then eval \"exec $f<&-\"; fi; done", only: "bash", ends: true, loud: true},
	{text: "enable -n printf", only: "bash"}, {text: "enable -n eval", only: "bash"}, {text: "enable -n read", only: "bash"}, {text: "enable -n trap", only: "bash"},
	{text: "enable -n : command exec printf return set unset", only: "bash"}, {text: "enable -n builtin", only: "bash"},
	{text: "enable -n enable builtin", only: "bash", ends: true}, {text: "exec 2>/dev/null; enable -n enable builtin printf", only: "bash", ends: true},
	{text: "disable printf", only: "zsh", either: true}, {text: "disable enable printf", only: "zsh", either: true}, {text: "disable read", only: "zsh", either: true}, {text: "disable eval exec set trap unset :", only: "zsh", either: true},
	{text: "exec 10<&-", only: "busybox", either: true}, {text: "exec 10>&- 11>&- 12>&-", only: "busybox", ends: true},
	{text: "readonly IFS"}, {text: "IFS=0123456789; readonly IFS"}, {text: "readonly PS1 PS2 PS4"}, {text: "IFS=./; readonly IFS"},
	{text: "cat <<E\nbody"}, {text: "cat <<'E'"}, {text: "unset PATH"}, {text: "return 3"}, {text: "break"},
	{text: `eval 'echo "abc'`}, {text: "trap : ERR; eval 'echo \"abc'"}, {text: "trap : ERR; eval 'echo $('"}, {text: "eval 'echo $('"},
	{text: "unset __dh_n", only: "bash"}, {text: "unset $(compgen -v __dh_) 2>/dev/null", only: "bash", loud: true}, {text: "set -u; unset $(compgen -v __dh_) 2>/dev/null", only: "bash", loud: true},
	{text: "unset -f $(compgen -A function) 2>/dev/null", only: "bash"}, {text: "trap 'echo next' DEBUG; unset -v $(compgen -v __dh_) 2>/dev/null", only: "bash", loud: true}, {text: "trap 'echo next' DEBUG; unset -f $(compgen -A function) 2>/dev/null", only: "bash", loud: true},
	{text: `\`}, {text: "\\\n"}, {text: "echo a\n\\"}, {text: "\\\n\\"}, {text: `echo a \`}, {text: "set -e\n\\"},
}

// TestCorpus runs each text twice in a shell of its own: as its first command,
// and as one that follows others.
func TestCorpus(t *testing.T) {
	t.Parallel()
	for _, sh := range []string{"bash", "dash", "busybox", "zsh"} {
		t.Run(sh, func(t *testing.T) {
			t.Parallel()
			var b *box
			if sh == "bash" {
				b = open(t)
			} else {
				soak.NotShort(t, "bash is tried")
				b = plainBox(t, sh)
			}
			for _, text := range unfinished {
				for range 2 {
					r := b.corpus(text, false)
					if r.Exit == 0 || r.NewShell || strings.TrimSpace(r.Output) == "" {
						t.Errorf("%q gave %+v", text, r)
					}
				}
				b.do(sandbox.Command{Shell: text, Text: "exit"}, nil)
			}
			for _, c := range rough {
				if c.only != "" && c.only != sh {
					continue
				}
				for range 2 {
					// zsh tells of its redirections.
					r := b.corpus(c.text, c.loud || sh == "zsh")
					if r.NewShell != c.ends && !c.either || c.only != "" && r.NewShell && !strings.Contains(r.Output, brokenShell) {
						t.Errorf("%q gave %+v", c.text, r)
					}
				}
				b.do(sandbox.Command{Shell: c.text, Text: "exit"}, nil)
			}
		})
	}
}

// corpus runs a text in the shell that is named after it, and then a command.
func (b *box) corpus(text string, loud bool) sandbox.Result {
	b.t.Helper()
	r := b.do(sandbox.Command{Shell: text, Text: text, Hard: hung}, nil)
	next := b.do(sandbox.Command{Shell: text, Text: "command echo alive", Hard: hung}, nil)
	for _, r := range []sandbox.Result{r, next} {
		if r.Wait != "" || r.Refused != "" || strings.Contains(r.Output, "__dh") || strings.Contains(r.Output, "]5379") || strings.Contains(r.Output, "+ . ") {
			b.t.Errorf("%q: %+v", text, r)
		}
	}
	if !loud && (next.Exit != 0 || next.Output != "alive\n") || !strings.Contains(next.Output, "alive\n") {
		b.t.Errorf("after %q: %+v", text, next)
	}
	return r
}

package shell

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
)

// again ends the shells and continues them in others, as a new runner does.
func (b *box) again(t *testing.T) {
	t.Helper()
	saved := b.save(t)
	b.shells.Close()
	b.shells = b.make(b.config)
	b.shells.Warm() // as a runner that is started for a command
	b.shells.Restore(saved)
	b.Sandbox = connect(t, b.shells)
}

func (b *box) save(t *testing.T) []Saved {
	t.Helper()
	for late := time.Now().Add(time.Minute); ; {
		saved, err := b.shells.Save(t.Context())
		if p, _ := b.inside(); err != nil && (p == nil || !p.quiet()) {
			continue // it is on its way to its prompt
		}
		if errors.Is(err, rpc.ErrBusy) && time.Now().Before(late) {
			continue // a process of a shell that was closed is still ending
		}
		if err != nil {
			t.Fatal(err)
		}
		return saved
	}
}

// What commands did to their shell is there after it was suspended. Each line is a command; the
// last one looks, and must see the same without the suspension.
func TestSuspendedShellContinues(t *testing.T) {
	for name, commands := range map[string][]string{
		"nothing":            {`:`, `pwd`},
		"directory":          {`mkdir -p a/b; cd a; cd b`, `pwd; echo $OLDPWD $PWD; cd -`},
		"linked directory":   {`mkdir real; ln -s real link; cd link`, `pwd; pwd -P`},
		"odd directory":      {"mkdir $'x\\ny \\'\"'; cd $'x\\ny \\'\"'", `pwd`},
		"directory stack":    {`mkdir p 'q r'; pushd p; pushd "../q r"`, `dirs -l; popd; pwd; popd; pwd`},
		"variables":          {`a=1 b="two words" c=; export d=4 e; readonly f=6; declare -i g=7; declare -l h=ABC; unset HOME`, `declare -p a b c d e f g h; echo ${HOME-none}; env | grep ^d=; g=g+1; echo $g; h=XYZ; echo $h; f=1; echo $f`},
		"unset environment":  {`unset LANG TERM; export PATH=$PATH:/nowhere`, `echo ${LANG-none} ${TERM-none}; echo $PATH; env | sort | grep -v '^_='`},
		"values":             {`a=$'line\nline\ttab\'quote"double\\back$dollar\x60tick\x60\x01\x7f\xff\xfe'; b=$'\e[31mred\n'; c='!x'; d=$'\n'; e='é€😀'; export a`, `for x in "$a" "$b" "$c" "$d" "$e"; do printf %s "$x" | od -An -c; done; printenv a | od -An -c`},
		"arrays":             {`a=(x "y z" $'n\nl' ''); a[9]=nine; declare -A m=([k]=v ["a b"]=$'c\nd' [']']=x); declare -a empty; readonly a`, `declare -p a empty; for k in 'a b' k ']'; do echo "$k=${m[$k]}"; done; a[0]=w; echo ${a[0]}`},
		"references":         {`t=1; declare -n r=t; r=2`, `declare -p r; echo $t; r=3; echo $t`},
		"long value":         {`a=$(seq 1 60000); export b=$(seq 1 9000)`, `echo "$a" | cksum; echo "$b" | cksum; printenv b | cksum`},
		"functions":          {"f() { local x=$1; cat <<E\nhere $x\nE\n}; g-h() { case $1 in a|b) echo ab;; *) (echo sub);; esac; }; export -f f; h() { [[ $1 == +(a) ]]; }; readonly -f h", `f 1; g-h a; g-h c; bash -c 'f 2'; h aaa && echo yes; h() { :; }; declare -F`},
		"alias and function": {`f() { ll x; }; alias ll='echo aliased' "x=echo it's"`, `f 2>&1 | grep -c aliased; ll 1; x; alias`},
		"umask":              {`umask 027`, `umask; touch f; stat -c %a f; umask -S`},
		"options":            {`set -uf -o pipefail +B; shopt -s nullglob dotglob extglob; shopt -u sourcepath`, `set +o; shopt; echo *; false | true; echo $?; echo {a,b}`},
		"errexit":            {`set -e`, `echo $-; ! true; echo still`},
		"trace":              {`set -x`, `echo traced`, `set +x`},
		"verbose":            {`set -v`, `echo shown`, `set +v`},
		"traps":              {`trap "echo it\\'s" USR1; trap "" USR2; trap 'echo bye' TERM`, `trap -p; kill -USR1 $$; kill -USR2 $$; false`},
		"exit code":          {`(exit 7)`, `echo $?`},
		"exit code and e":    {`set +e; (exit 3); set -o nounset; (exit 5)`, `echo $?`},
		"arguments":          {`set -- a 'b c' '' $'d\ne'`, `echo $#; printf '[%s]' "$@"`},
		"limits":             {`ulimit -n 77; ulimit -c 0; ulimit -Ss 4096; ulimit -v 9000000`, `ulimit -Sa; ulimit -Ha`},
		"alias of a keyword": {`alias for='echo not a loop'`, `alias`},
		"background":         {`(exit 9) & sleep 0.1; true`, `wait $!; echo $?; jobs`},
		"input field":        {`IFS=,`, `x=a,b; printf '%s|' $x; declare -p IFS`},
		"hidden builtins":    {`printf() { echo mine; }; declare() { echo mine; }; alias set='echo mine'`, `printf x; declare x; type -t printf`},
		"secret":             {`export KEY=s3cr3t`, `echo $KEY`},
		"posix":              {`set -o posix; a=1`, `shopt -o posix; echo $a`},
		"locale":             {`export LC_ALL=C; a=$'\xc3\xa9'`, `echo ${#a} $LC_ALL`},
		"sourced file":       {`echo 'deactivate() { unset VENV; }; VENV=1; PATH=/x:$PATH; hash -r' > activate; . ./activate`, `echo $VENV ${PATH%%:*}; deactivate; echo ${VENV-none}; eval 'y=1'; echo $y`},
		"own declare":        {`declare() { builtin declare "$@"; }; hv=kept; export xv=1; f() { :; }; export -f f`, `echo "[$hv][$xv]"; env | grep ^xv; bash -c 'type -t f'`},
		"shown functions":    {`f() { echo one; }`, `declare -f f`},
	} {
		t.Run(name, func(t *testing.T) {
			var outputs [2]string
			for i, suspended := range []bool{false, true} {
				b := open(t)
				for _, text := range commands[:len(commands)-1] {
					b.run(text)
					if suspended {
						b.again(t)
					}
				}
				r := b.run(commands[len(commands)-1])
				b.shells.Close() // what it started would count as running
				// Each box has a folder of its own.
				outputs[i] = strings.ReplaceAll(r.Output, filepath.Dir(b.workspace), "")
				if r.NewShell {
					t.Errorf("the shell ended: %q", r.Output)
				}
			}
			if outputs[0] != outputs[1] {
				t.Errorf("suspended\n%s\nnot suspended\n%s", outputs[1], outputs[0])
			}
		})
	}
}

// A shell in which something would be lost is not suspended.
func TestSaveRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"job":              `sleep 1000 &`,
		"stopped job":      `sleep 1000 & kill -STOP $!`,
		"daemon":           `setsid sh -c 'echo $$ >daemon; exec sleep 1000' </dev/null >/dev/null 2>&1 & disown; until [ -s daemon ]; do :; done`,
		"open file":        `exec 5</etc/passwd`,
		"redirected":       `exec 2>errors`,
		"known child":      `(exit 3) & pid=$!; sleep 0.1`,
		"coprocess":        `coproc cat`,
		"folder deleted":   `mkdir x; cd x; rmdir ../x`,
		"guarded trap":     `trap 'c=$((c+1))' DEBUG`,
		"unreadable state": `enable -n umask`,
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t)
			b.run(text)
			p, _ := b.inside()
			for !p.quiet() {
				continue
			}
			if _, err := b.shells.Save(t.Context()); !errors.Is(err, rpc.ErrBusy) {
				t.Errorf("%v", err)
			}
			if r := b.run(`echo $?; x=1`); !strings.HasSuffix(r.Output, "0\n") {
				t.Errorf("the shell is not as it was: %q", r.Output)
			}
			if now, _ := b.inside(); now != p {
				t.Error("it is another shell")
			}
			b.run(`kill -9 $(cat daemon 2>/dev/null) 2>/dev/null; true`)
			b.shells.Close()
		})
	}
}

// A folder that was deleted while the shell was suspended is said, and the nearest one is used.
func TestSuspendedFolderIsDeleted(t *testing.T) {
	b := open(t)
	b.run(`mkdir -p a/b/c; cd a/b/c; x=1`)
	saved := b.save(t)
	b.shells.Close()
	if err := os.RemoveAll(filepath.Join(b.workspace, "a/b")); err != nil {
		t.Fatal(err)
	}
	b.shells = b.make(b.config)
	b.shells.Restore(saved)
	b.Sandbox = connect(t, b.shells)
	r := b.run(`pwd; echo $x`)
	if want := filepath.Join(b.workspace, "a"); !strings.HasSuffix(r.Output, want+"\n1\n") || !strings.Contains(r.Output, "a/b/c does not exist any more") || r.Dir != want {
		t.Errorf("%q in %q", r.Output, r.Dir)
	}
}

// Output that no call has got, and how its command ended, is there after a suspension, in each shell.
func TestSuspendedOutputIsRead(t *testing.T) {
	b := open(t)
	b.do(sandbox.Command{Shell: "other", Text: "x=other", Hard: hung}, nil)
	b.begin(sandbox.Command{Text: "mkfifo p; echo begun; read x <p; echo late; (exit 4)"}, "begun")
	b.do(sandbox.Command{Shell: "other", Text: "echo go >p", Hard: hung}, nil)
	for _, job := b.inside(); job != nil; _, job = b.inside() {
		continue
	}
	b.again(t)
	r := b.do(sandbox.Command{}, nil)
	if r.Output != "late\n" || r.Exit != 4 || !r.Previous {
		t.Errorf("%+v", r)
	}
	b.gives("echo $x", 0, "go\n")
	if r := b.do(sandbox.Command{Shell: "other", Text: "echo $x", Hard: hung}, nil); r.Output != "other\n" {
		t.Errorf("%+v", r)
	}
}

// A shell that cannot be restored is not taken for one that was.
func TestSuspendedShellIsDamaged(t *testing.T) {
	b := open(t)
	b.run("x=1")
	saved := b.save(t)
	b.shells.Close()
	saved[0].State.Functions = "f() { ("
	b.shells = b.make(b.config)
	b.shells.Restore(saved)
	b.Sandbox = connect(t, b.shells)
	if r := b.run("echo here"); !strings.Contains(r.Output, notRestored) || !strings.HasSuffix(r.Output, "here\n") {
		t.Errorf("%q", r.Output)
	}
}

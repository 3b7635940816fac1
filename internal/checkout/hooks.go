package checkout

import (
	"context"
	"io"
	"strings"

	"deckhand/internal/sandbox"
)

// commitScript is the repository's script that runs before each commit.
const commitScript = ".openhands/pre-commit.sh"

// ours identifies hooks that Deckhand wrote.
const ours = "# Written by Deckhand."

// approved is the file next to the hook with the approved script.
const approved = "pre-commit.approved"

// preCommit runs the repository's script and then the previous hook. A script that differs
// from the approved one is not run: it may come from another branch.
const preCommit = `#!/bin/sh
` + ours + ` It runs ` + commitScript + ` if it is still ` + approved + `, and then pre-commit.local, the hook that was here before.
script=$(git rev-parse --show-toplevel)/` + commitScript + `
if ! [ -f "$script" ]; then
    :
elif [ "$(git hash-object --no-filters "$script")" != "$(git hash-object --no-filters "$(dirname "$0")/` + approved + `")" ]; then
    echo "deckhand: ` + commitScript + ` changed since it was cloned or approved, and was not run" >&2
elif [ -x "$script" ]; then
    "$script" "$@" || exit
else
    if command -v bash >/dev/null; then bash "$script" "$@"; else sh "$script" "$@"; fi || exit
fi
before=$(dirname "$0")/pre-commit.local
if [ -x "$before" ]; then
    exec "$before" "$@"
fi
`

// install installs a hook and keeps an existing one next to it. Exit code 3 means that
// the repository keeps its hooks elsewhere.
const install = `set -e
cd "$1"
hooks=$(git rev-parse --git-path hooks)
case $hooks in .git/hooks|"$PWD/.git/hooks") ;; *) exit 3 ;; esac
mkdir -p "$hooks"
if [ -e "$hooks/$2" ] && ! grep -q '^` + ours + `' "$hooks/$2"; then mv -f "$hooks/$2" "$hooks/$2.local"; fi
cat > "$hooks/$2.new"
chmod 755 "$hooks/$2.new"
mv -f "$hooks/$2.new" "$hooks/$2"
`

// elsewhere is the exit code of install if the repository configures its own hooks
// folder.
const elsewhere = 3

// running matches the names of git settings that run a program or include other settings.
// Some are deprecated or specific to a few commands.
const running = `^(core\.(hookspath|fsmonitor|sshcommand|editor|pager|askpass|gitproxy|alternaterefscommand)|` +
	`(include|includeif|filter|hook|pager|protocol)\..*|diff\.external|init\.templatedir|sequence\.editor|interactive\.difffilter|` +
	`uploadpack\.packobjectshook|.*\.(command|cmd|textconv|driver|program|helper|uploadpack|receivepack|vcs|defaultkeycommand))$`

// disable reverts what a script did to make git run programs: hooks other than ours are
// renamed, and settings that run programs are removed, in the repository, its submodules
// and the home folder. The original files are kept with the suffix .untrusted. The
// standard hooks of Git LFS are kept.
const disable = `cd "$1" || exit
standard() {
    case $1=$2 in
    filter.lfs.clean='git-lfs clean -- %f'|filter.lfs.smudge='git-lfs smudge -- %f'|filter.lfs.smudge='git-lfs smudge --skip -- %f') return 0 ;;
    filter.lfs.process='git-lfs filter-process'|filter.lfs.process='git-lfs filter-process --skip'|filter.lfs.required=true) return 0 ;;
    esac
    return 1
}
tidy() {
    [ -f "$1" ] || return 0
    {
        git config --file "$1" --no-includes --name-only --get-regexp '` + running + `'
        git config --file "$1" --no-includes --name-only --get-regexp '^(alias\..*|submodule\..*\.update)$' '^[[:space:]]*[!-]'
    } 2>/dev/null | while IFS= read -r key; do
        if standard "$key" "$(git config --file "$1" --no-includes --get-all "$key")"; then continue; fi
        [ -e "$1.untrusted" ] || cp "$1" "$1.untrusted"
        git config --file "$1" --unset-all "$key"
    done
}
rename() {
    for hook in "$1"/*; do
        case $hook in *.untrusted|*.sample|*/'*') continue ;; esac
        if ! grep -q '^` + ours + `' "$hook"; then mv -f "$hook" "$hook.untrusted"; fi
    done
}
for file in /etc/gitconfig "$HOME/.gitconfig" "${XDG_CONFIG_HOME:-$HOME/.config}/git/config" .git/config .git/config.worktree; do tidy "$file"; done
[ ! -d .git/hooks ] || rename .git/hooks
[ -d .git/modules ] || exit 0
find .git/modules -type d \( -name refs -o -name logs -o -name objects \) -prune -o -type f \( -name config -o -name config.worktree \) -print |
    while IFS= read -r file; do tidy "$file"; done
find .git/modules -type d \( -name refs -o -name logs -o -name objects \) -prune -o -type d -name hooks -print |
    while IFS= read -r dir; do rename "$dir"; done
`

// hooks installs the commit script and reports whether it could. Only a script with this
// text is run; nil keeps the approved one. A repository that keeps its hooks elsewhere is
// left unchanged.
func (w *work) hooks(ctx context.Context, dir string, text []byte) (bool, error) {
	w.tell(sandbox.Progress{Step: sandbox.Hooks})
	if len(text) > maxScript { // too long to review
		var err error
		if text, err = w.upTo(ctx, dir, commitScript, maxHook); err != nil {
			return false, err
		}
	}
	if text != nil {
		if done, err := w.hook(ctx, dir, approved, string(text)); err != nil || !done {
			return done, err
		}
	}
	return w.hook(ctx, dir, "pre-commit", preCommit)
}

// maxHook is the maximum size of a commit script.
const maxHook = 8 << 20

// unhook disables git hooks and settings that a script of an untrusted repository left.
func (w *work) unhook(ctx context.Context, dir string) error {
	if _, err := w.sh(ctx, disable, nil, dir); err != nil || !w.src.Template {
		return w.refused(err)
	}
	return w.template(ctx, "afresh") // its folder is searched for programs
}

// sh runs one of our scripts, without network access.
func (w *work) sh(ctx context.Context, script string, stdin io.Reader, args ...string) (sandbox.ProcessResult, error) {
	return w.box.Run(ctx, sandbox.Process{Args: append([]string{"sh", "-c", script, "sh"}, args...), Env: environment, Own: true, Offline: true}, stdin)
}

func (w *work) hook(ctx context.Context, dir, name, text string) (bool, error) {
	r, err := w.sh(ctx, install, strings.NewReader(text), dir, name)
	if err == nil && r.Exit != 0 && r.Exit != elsewhere {
		return false, w.no(cloneFailed, "its "+name+" hook cannot be written: "+last(string(r.Stderr)))
	}
	return r.Exit == 0, w.refused(err)
}

package checkout

import (
	"context"
	"io"
	"strings"

	"deckhand/internal/sandbox"
)

// commitScript is what a repository wants to be run before each commit.
const commitScript = ".openhands/pre-commit.sh"

// Coauthor is the variable in the sandbox's environment that names the user in
// commits: NAME <EMAIL>.
const Coauthor = "DECKHAND_COAUTHOR"

// Template is the folder in the sandbox's home with the hooks of repositories that are
// made there with git init, as git's configuration spells it.
const Template = "~/.deckhand/git-template"

// ours is in every hook of ours, so that it is known again.
const ours = "# Written by Deckhand."

// approved is beside the hook: the script that may run.
const approved = "pre-commit.approved"

// preCommit runs the repository's script and then the hook that was there before. Another
// script than the approved one is not run: it may have come with a branch of somebody else.
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

// prepareMessage adds the user to a message, and runs the hook that was there before.
const prepareMessage = `#!/bin/sh
` + ours + ` It adds the user as a co-author, and runs prepare-commit-msg.local, the hook that was here before.
before=$(dirname "$0")/prepare-commit-msg.local
if [ -x "$before" ]; then
    "$before" "$@" || exit
fi
if [ -n "$` + Coauthor + `" ]; then
    git interpret-trailers --in-place --if-exists addIfDifferent --trailer "Co-authored-by: $` + Coauthor + `" "$1"
fi
`

// install puts a hook into its place. One of somebody else's is kept beside it.
// Exit code 3 says that the repository keeps its hooks elsewhere.
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

// template writes the hooks that git init copies into new repositories. A sandbox
// without git needs none.
const template = `set -e
command -v git >/dev/null || exit 0
hooks=$HOME/.deckhand/git-template/hooks
mkdir -p "$hooks"
cat > "$hooks/prepare-commit-msg.new"
chmod 755 "$hooks/prepare-commit-msg.new"
mv -f "$hooks/prepare-commit-msg.new" "$hooks/prepare-commit-msg"
`

func (w *work) template(ctx context.Context) error {
	r, err := w.sh(ctx, template, strings.NewReader(prepareMessage))
	if err == nil && r.Exit != 0 {
		return w.no(cloneFailed, "the hooks of new repositories cannot be written: "+last(string(r.Stderr)))
	}
	return w.refused(err)
}

// elsewhere is how install ends where a repository has chosen what runs.
const elsewhere = 3

// running matches the names of settings that make git run a program, or read more settings.
// Some of them are old names, or those of a few commands only.
const running = `^(core\.(hookspath|fsmonitor|sshcommand|editor|pager|askpass|gitproxy|alternaterefscommand)|` +
	`(include|includeif|filter|hook|pager|protocol)\..*|diff\.external|init\.templatedir|sequence\.editor|interactive\.difffilter|` +
	`uploadpack\.packobjectshook|.*\.(command|cmd|textconv|driver|program|helper|uploadpack|receivepack|vcs|defaultkeycommand))$`

// disable takes back what a script did to have programs run by git: hooks other than ours
// are renamed, and settings that run something are removed, in the repository, in its
// submodules and in the home folder. The files as they were stay beside, as .untrusted.
// Git LFS as it installs itself is left alone.
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

// sign has commits name the user.
func (w *work) sign(ctx context.Context, dir string) error {
	if !w.src.Coauthored {
		return nil
	}
	_, err := w.hook(ctx, dir, "prepare-commit-msg", prepareMessage)
	return err
}

// hooks installs the script for commits, and says whether it could. Only the script with
// this text is run; nil leaves the one that was approved before. A repository that keeps
// its hooks elsewhere has chosen what runs, and is left alone.
func (w *work) hooks(ctx context.Context, dir string, text []byte) (bool, error) {
	w.tell(sandbox.Progress{Step: sandbox.Hooks})
	if len(text) > maxScript { // it is longer than a person would read
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

// maxHook is how long a script for commits may be.
const maxHook = 8 << 20

// unhook disables hooks and settings of git that a script of a repository without trust left.
func (w *work) unhook(ctx context.Context, dir string) error {
	_, err := w.sh(ctx, disable, nil, dir)
	return w.refused(err)
}

// sh runs a script of ours with arguments. It needs no network, so it has none.
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

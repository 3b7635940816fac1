package checkout

import (
	"context"
)

// Coauthor is the environment variable in the sandbox with the co-author of commits: NAME
// <EMAIL>.
const Coauthor = "DECKHAND_COAUTHOR"

// Template is the folder in the sandbox's home with the hooks for git init, as written in
// git's configuration. Programs is the folder with our program git, see gitProgram.
const (
	Template = "~/.deckhand/git-template"
	Programs = "~/.deckhand/bin"
)

// withoutOurs gives the repository's hooks the environment from before our program git.
const withoutOurs = `{ if [ -n "$DECKHAND_CONFIG_COUNT" ]; then GIT_CONFIG_COUNT=$DECKHAND_CONFIG_COUNT; else unset GIT_CONFIG_COUNT; fi; unset DECKHAND_HOOKS DECKHAND_CONFIG_COUNT; }`

// prepareMessage adds the co-author to a message, and runs the previous hook. It is in the
// hooks folder of a repository, and in the folder that gitProgram makes.
const prepareMessage = `#!/bin/sh
` + ours + ` It adds the user as a co-author, and runs prepare-commit-msg.local, the hook that was here before.
case $0 in
*/deckhand-hooks/*) before=$DECKHAND_HOOKS/prepare-commit-msg ;;
*) before=${0%/*}/prepare-commit-msg.local ;;
esac
if [ -x "$before" ]; then
    (` + withoutOurs + `; exec "$before" "$@") || exit
fi
# git refuses an empty message, and merge writes one without an end of line.
if [ -n "$` + Coauthor + `" ] && [ -n "$(git stripspace --strip-comments < "$1")" ]; then
    [ -z "$(tail -c 1 "$1")" ] || echo >> "$1"
    git interpret-trailers --in-place --if-exists addIfDifferent --trailer "Co-authored-by: $` + Coauthor + `" "$1"
fi
`

// ownHook stands for any other hook of the repository in the folder that gitProgram makes.
const ownHook = `#!/bin/sh
` + ours + ` It runs the repository's hook of this name.
own=$DECKHAND_HOOKS/${0##*/}
` + withoutOurs + `
exec "$own" "$@"
`

// gitProgram is found before git. A repository may have a prepare-commit-msg hook other than
// ours, or keep its hooks elsewhere, as husky does: then commands that make commits get a folder of
// hooks in which ours is next to those of the repository. Only these commands get it, because tools that install
// hooks ask git where they are. The environment is the one place for it that settings of the repository do
// not replace; an option -c of the command does.
const gitProgram = `#!/bin/sh
` + ours + ` It runs git, and lets commits name the user as a co-author.
set -f
IFS=:
for dir in $PATH; do
    if [ -f "$dir/git" ] && [ -x "$dir/git" ] && ! [ "$dir/git" -ef "$0" ]; then
        real=$dir/git
        break
    fi
done
unset IFS
set +f
if [ -z "$real" ]; then
    echo "git: command not found" >&2
    exit 127
fi
n=0 skip= options= command=
for arg; do
    n=$((n + 1))
    case $skip$arg in
    -C|-c|--git-dir|--work-tree|--namespace|--config-env|--attr-source) skip=value ;;
    value*|-*) skip= ;;
    *) command=$arg; break ;;
    esac
    options="$options \"\${$n}\""
done
case $command in
commit|merge|pull|cherry-pick|revert|rebase|am) [ -n "$` + Coauthor + `" ] || exec "$real" "$@" ;;
*) exec "$real" "$@" ;;
esac
at=$(eval "\"\$real\"$options rev-parse --path-format=absolute --git-path hooks --git-path deckhand-hooks" 2>/dev/null)
own=${at%%
*} at=${at##*
} count=${GIT_CONFIG_COUNT:-0} hooks=${0%/*}/../hooks
case $own:$at:$count in
*:*:*[!0-9]*) exec "$real" "$@" ;;
/*:/*/deckhand-hooks:*) ;;
*) exec "$real" "$@" ;;
esac
if grep -qs '^` + ours + `' "$own/prepare-commit-msg" || ! mkdir -p "$at"; then
    exec "$real" "$@"
fi
for hook in "$at"/*; do
    if ! [ -x "$own/${hook##*/}" ]; then rm -f "$hook"; fi
done
for hook in "$own"/*; do
    case $hook in *.sample|*/prepare-commit-msg) continue ;; esac
    if [ -f "$hook" ] && [ -x "$hook" ]; then ln -sf "$hooks/own" "$at/${hook##*/}"; fi
done
ln -sf "$hooks/prepare-commit-msg" "$at/prepare-commit-msg"
export DECKHAND_HOOKS="$own" DECKHAND_CONFIG_COUNT="$GIT_CONFIG_COUNT"
export "GIT_CONFIG_KEY_$count=core.hooksPath" "GIT_CONFIG_VALUE_$count=$at" "GIT_CONFIG_COUNT=$((count + 1))"
exec "$real" "$@"
`

// template writes the hooks that git init copies into new repositories, and our program git
// with its hooks. With a fourth argument it removes first what is there. It does nothing without git.
const template = `set -e
command -v git >/dev/null || exit 0
cd "$HOME"
[ -z "$4" ] || rm -rf .deckhand
mkdir -p .deckhand/git-template/hooks .deckhand/hooks .deckhand/bin
put() {
    printf %s "$2" > "$1.new"
    chmod 755 "$1.new"
    mv -f "$1.new" "$1"
}
put .deckhand/git-template/hooks/prepare-commit-msg "$1"
put .deckhand/hooks/prepare-commit-msg "$1"
put .deckhand/hooks/own "$2"
put .deckhand/bin/git "$3"
`

func (w *work) template(ctx context.Context, afresh ...string) error {
	r, err := w.sh(ctx, template, nil, append([]string{prepareMessage, ownHook, gitProgram}, afresh...)...)
	if err == nil && r.Exit != 0 {
		return w.no(cloneFailed, "the hooks of new repositories cannot be written: "+last(string(r.Stderr)))
	}
	return w.refused(err)
}

// sign makes commits name the user.
func (w *work) sign(ctx context.Context, dir string) error {
	if !w.src.Coauthored {
		return nil
	}
	_, err := w.hook(ctx, dir, "prepare-commit-msg", prepareMessage)
	return err
}

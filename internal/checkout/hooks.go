package checkout

import (
	"context"
	"path"
	"strings"

	"deckhand/internal/sandbox"
)

// commitScript is what a repository wants to be run before each commit.
const commitScript = ".openhands/pre-commit.sh"

// Coauthor is the variable in the sandbox's environment that names the user in
// commits: NAME <EMAIL>.
const Coauthor = "DECKHAND_COAUTHOR"

// ours is in every hook of ours, so that it is known again.
const ours = "# Written by Deckhand."

// preCommit runs the repository's script and then the hook that was there before.
const preCommit = `#!/bin/sh
` + ours + ` It runs ` + commitScript + `, and then pre-commit.local, the hook that was here before.
script=$(git rev-parse --show-toplevel)/` + commitScript + `
if [ -x "$script" ]; then
    "$script" "$@" || exit
elif [ -f "$script" ]; then
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
const install = `set -e
cd "$1"
hooks=$(git rev-parse --git-path hooks)
case $hooks in .git/hooks|"$PWD/.git/hooks") ;; *) exit 0 ;; esac
mkdir -p "$hooks"
if [ -e "$hooks/$2" ] && ! grep -q '^` + ours + `' "$hooks/$2"; then mv -f "$hooks/$2" "$hooks/$2.local"; fi
cat > "$hooks/$2.new"
chmod 755 "$hooks/$2.new"
mv -f "$hooks/$2.new" "$hooks/$2"
`

// hooks installs those that commits need. A repository that keeps its hooks
// elsewhere has chosen what runs, and is left alone.
func (w *work) hooks(ctx context.Context, dir string) error {
	has, err := w.has(ctx, path.Join(dir, commitScript))
	if err != nil {
		return err
	}
	if has {
		w.tell(sandbox.Progress{Step: sandbox.Hooks})
		if err := w.hook(ctx, dir, "pre-commit", preCommit); err != nil {
			return err
		}
	}
	if w.src.Coauthored {
		return w.hook(ctx, dir, "prepare-commit-msg", prepareMessage)
	}
	return nil
}

func (w *work) hook(ctx context.Context, dir, name, text string) error {
	r, err := w.box.Run(ctx, sandbox.Process{Args: []string{"sh", "-c", install, "sh", dir, name}}, strings.NewReader(text))
	if err == nil && r.Exit != 0 {
		return w.no(cloneFailed, "its "+name+" hook cannot be written: "+last(string(r.Stderr)))
	}
	return w.refused(err)
}

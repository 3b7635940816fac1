package gitview

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
	"deckhand/internal/sandbox/runner/files"
)

// target is a file to revert.
type target struct {
	rel, from string // from is the old path of a renamed file
	etag      string
}

// Revert reverts files to the base of the range. All are checked before the first is
// written: if one has changed since it was shown, none is reverted.
func (v *View) Revert(ctx context.Context, p sandbox.GitRevertParams) error {
	if p.Kind == sandbox.RangeStaged {
		return fmt.Errorf("%w: staged changes cannot be reverted; unstage them instead", rpc.ErrInvalid)
	}
	root, tree, err := v.open()
	if err != nil {
		return err
	}
	defer root.Close()
	order, targets, err := v.targets(tree, p.Files)
	if err != nil {
		return err
	}
	var todo []func() error
	for _, r := range order {
		do, err := v.reversal(ctx, root, tree, r, p.GitRange, targets[r.dir])
		if err != nil {
			return err
		}
		todo = append(todo, do)
	}
	for _, do := range todo {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// targets groups files by repository.
func (v *View) targets(tree files.Tree, in []sandbox.GitRevertFile) (order []repo, by map[string][]target, err error) {
	by = map[string][]target{}
	for _, f := range in {
		name, err := tree.Place(f.Path)
		if err != nil {
			return nil, nil, err
		}
		r, rel, err := v.at(tree, name)
		if err != nil {
			return nil, nil, err
		}
		t := target{rel: rel, from: rel, etag: f.ETag}
		if len(f.From) > 0 {
			if t.from, err = v.sameRepo(tree, r, f.From); err != nil {
				return nil, nil, err
			}
		}
		if by[r.dir] == nil {
			order = append(order, r)
		}
		by[r.dir] = append(by[r.dir], t)
	}
	return order, by, nil
}

// reversal checks the files of one repository and returns what reverts them.
func (v *View) reversal(ctx context.Context, root *os.Root, tree files.Tree, r repo, in sandbox.GitRange, all []target) (func() error, error) {
	var names []string
	for _, t := range all {
		names = append(names, t.from)
		if t.rel != t.from {
			names = append(names, t.rel)
		}
	}
	old, err := v.sources(ctx, tree, r, in, names...)
	if err != nil {
		return nil, err
	}
	for _, t := range all {
		if t.etag != etag(old[t.from].id, signature(tree, r.prefix+t.rel)) {
			return nil, fmt.Errorf("%q: %w", r.prefix+t.rel, rpc.ErrChanged)
		}
		if t.rel != t.from && signature(tree, r.prefix+t.from) != "-" {
			return nil, fmt.Errorf("%q: %w", r.prefix+t.from, rpc.ErrChanged)
		}
	}
	var restore, remove []string
	for _, name := range names {
		if old[name].id != "" {
			restore = append(restore, name)
		} else {
			remove = append(remove, name)
		}
	}
	args := []string{"restore", "--worktree"}
	if in.Kind != sandbox.RangeUnstaged {
		branch, err := v.branch(ctx, r)
		if err != nil {
			return nil, err
		}
		base, err := v.resolve(ctx, tree, r, branch, in)
		if err != nil {
			return nil, err
		}
		args = append(args, "--staged", "--source="+base)
	}
	return func() error {
		if len(restore) > 0 {
			if _, err := v.text(ctx, r, list(restore), 1<<20, append(args, "--pathspec-from-file=-", "--pathspec-file-nul")...); err != nil {
				return err
			}
		}
		if len(remove) == 0 {
			return nil
		}
		if in.Kind != sandbox.RangeUnstaged {
			if _, err := v.text(ctx, r, list(remove), 1<<20, "update-index", "--force-remove", "-z", "--stdin"); err != nil {
				return err
			}
		}
		for _, name := range remove {
			if err := tree.Remove([]byte(r.prefix + name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			for _, d := range folders(name) {
				if root.Remove(r.prefix+d) != nil {
					break // the folder is not empty
				}
			}
		}
		return nil
	}, nil
}

// Stage stages files, or unstages them by resetting them in the index to the last commit.
func (v *View) Stage(ctx context.Context, p sandbox.GitStageParams) error {
	root, tree, err := v.open()
	if err != nil {
		return err
	}
	defer root.Close()
	var named []sandbox.GitRevertFile
	for _, path := range p.Paths {
		named = append(named, sandbox.GitRevertFile{Path: path})
	}
	order, targets, err := v.targets(tree, named)
	if err != nil {
		return err
	}
	for _, r := range order {
		var names []string
		for _, t := range targets[r.dir] {
			names = append(names, t.rel)
		}
		if err := v.stage(ctx, r, names, p.Staged); err != nil {
			return err
		}
	}
	return nil
}

func (v *View) stage(ctx context.Context, r repo, names []string, staged bool) error {
	args := []string{"update-index", "-z", "--add", "--remove", "--stdin"}
	if !staged {
		base, err := v.head(ctx, r)
		if err != nil {
			return err
		}
		old, err := v.stored(ctx, r, base, names...)
		if err != nil {
			return err
		}
		var restore []string
		remove := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			if old[name].id == "" {
				return false
			}
			restore = append(restore, name)
			return true
		})
		if len(restore) > 0 {
			if _, err := v.text(ctx, r, list(restore), 1<<20, "restore", "--staged", "--source="+base, "--pathspec-from-file=-", "--pathspec-file-nul"); err != nil {
				return err
			}
		}
		names, args = remove, []string{"update-index", "--force-remove", "-z", "--stdin"}
	}
	if len(names) == 0 {
		return nil
	}
	_, err := v.text(ctx, r, list(names), 1<<20, args...)
	return err
}

// Commit commits in one repository. Neither hooks nor signing programs run.
func (v *View) Commit(ctx context.Context, p sandbox.GitCommitParams) (sandbox.GitCommitted, error) {
	var out sandbox.GitCommitted
	root, tree, err := v.open()
	if err != nil {
		return out, err
	}
	defer root.Close()
	r := repo{dir: v.config.Workspace}
	if name := string(p.Repo); name != "" {
		if strings.Contains(name, "/") || name == "." || name == ".." {
			return out, fmt.Errorf("%w: a repository must be the workspace or one of its top-level folders", rpc.ErrInvalid)
		}
		r = v.inside(name)
	}
	if !isRepo(tree, r.prefix) {
		return out, rpc.ErrNoRepo
	}
	if strings.TrimSpace(p.Message) == "" {
		return out, fmt.Errorf("%w: the commit message is empty", rpc.ErrInvalid)
	}
	r.env = []string{"GIT_AUTHOR_NAME=" + p.Name, "GIT_AUTHOR_EMAIL=" + p.Email, "GIT_COMMITTER_NAME=" + p.Name, "GIT_COMMITTER_EMAIL=" + p.Email}
	if err := v.prepare(ctx, tree, r, p); err != nil {
		return out, err
	}
	if out.Branch, err = v.onBranch(ctx, r, p.Branch); err != nil {
		return out, err
	}
	_, err = v.text(ctx, r, p.Message, 1<<20, "-c", "commit.gpgSign=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "core.editor=true",
		"commit", "-q", "--no-verify", "--cleanup=whitespace", "-F", "-")
	if err != nil {
		return out, err
	}
	id, err := v.text(ctx, r, "", 1<<10, "rev-parse", "--verify", "HEAD")
	out.Commit = strings.TrimSpace(string(id))
	return out, err
}

// prepare stages the changes to commit, and refuses if there are none.
func (v *View) prepare(ctx context.Context, tree files.Tree, r repo, p sandbox.GitCommitParams) error {
	unmerged, err := v.text(ctx, r, "", 1<<20, "ls-files", "-z", "-u")
	if err != nil && !errors.Is(err, rpc.ErrTooBig) {
		return err
	}
	if len(unmerged) > 0 {
		return fmt.Errorf("%w: the workspace has merge conflicts; resolve them first", rpc.ErrInvalid)
	}
	if !p.StagedOnly {
		names, err := v.dirty(ctx, tree, r)
		if err == nil && len(names) > 0 {
			err = v.stage(ctx, r, names, true)
		}
		if err != nil {
			return err
		}
	}
	base, err := v.head(ctx, r)
	if err != nil {
		return err
	}
	_, err = v.text(ctx, r, "", 1<<10, "diff-index", "--cached", "--quiet", "--no-ext-diff", base, "--")
	switch {
	case err == nil && p.StagedOnly:
		return fmt.Errorf("%w: no changes are staged", rpc.ErrInvalid)
	case err == nil:
		return fmt.Errorf("%w: there are no changes to commit", rpc.ErrInvalid)
	case code(err) == 1:
		return nil
	}
	return err
}

// onBranch creates and checks out a branch, unless it is checked out already or "".
func (v *View) onBranch(ctx context.Context, r repo, name string) (string, error) {
	now, err := v.branch(ctx, r)
	if err != nil || name == "" || name == now {
		return now, err
	}
	if _, err := v.text(ctx, r, "", 1<<10, "check-ref-format", "refs/heads/"+name); err != nil || strings.HasPrefix(name, "-") {
		return "", fmt.Errorf("%w: %q is not a valid branch name", rpc.ErrInvalid, name)
	}
	if _, err := v.text(ctx, r, "", 1<<10, "rev-parse", "-q", "--verify", "refs/heads/"+name); code(err) == 0 {
		if err != nil {
			return "", err
		}
		return "", fmt.Errorf("%w: the branch %q already exists", rpc.ErrInvalid, name)
	}
	head, err := v.text(ctx, r, "", 1<<10, "rev-parse", "-q", "--verify", "HEAD^{commit}")
	if code(err) == 0 { // there is a commit that the branch begins at
		if err != nil {
			return "", err
		}
		if _, err := v.text(ctx, r, "", 1<<10, "update-ref", "refs/heads/"+name, strings.TrimSpace(string(head)), ""); err != nil {
			return "", err
		}
	}
	_, err = v.text(ctx, r, "", 1<<10, "symbolic-ref", "HEAD", "refs/heads/"+name)
	return name, err
}

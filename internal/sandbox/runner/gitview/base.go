package gitview

import (
	"context"
	"encoding/hex"
	"strings"

	"deckhand/internal/sandbox/runner/files"
)

// origin is where the remote branches are.
const origin = "refs/remotes/origin/"

// branch is the name of the branch that is checked out, "" if there is none.
func (v *View) branch(ctx context.Context, r repo) (string, error) {
	out, err := v.text(ctx, r, "", 64<<10, "symbolic-ref", "-q", "HEAD")
	if code(err) == 1 {
		return "", nil
	}
	name, ok := strings.CutPrefix(strings.TrimSuffix(string(out), "\n"), "refs/heads/")
	if err != nil || !ok {
		return "", err
	}
	return name, nil
}

// base is what the work is compared with: the first that exists of the branch
// at origin, where the work left the default branch of origin, the default
// branch of origin; "" if there is none. head is the commit the work is at, "" if
// there is none yet.
func (v *View) base(ctx context.Context, r repo, branch string) (base, head string, err error) {
	names := []string{"HEAD", origin + branch, origin + "HEAD", origin + "main", origin + "master"}
	out, err := v.text(ctx, r, strings.Join(names, "^{commit}\n")+"^{commit}\n", 1<<20, "cat-file", "--batch-check=%(objectname)")
	if err != nil {
		return "", "", err
	}
	ids := make([]string, len(names))
	for i, line := range strings.SplitN(string(out), "\n", len(names)+1)[:min(len(names), strings.Count(string(out), "\n"))] {
		if isID(line) {
			ids[i] = line
		}
	}
	head = ids[0]
	if branch != "" && ids[1] != "" {
		return ids[1], head, nil
	}
	for _, id := range ids[2:] {
		if id == "" {
			continue
		}
		if head == "" {
			return id, head, nil
		}
		left, err := v.text(ctx, r, "", 1<<10, "merge-base", head, id)
		if code(err) == 1 { // they have nothing in common
			return id, head, nil
		}
		return strings.TrimSpace(string(left)), head, err
	}
	return "", head, nil
}

// upstream is base, and in a repository without a remote the start of the conversation, where the work left the default
// branch, or the last commit.
func (v *View) upstream(ctx context.Context, tree files.Tree, r repo, branch string) (string, error) {
	base, head, err := v.base(ctx, r, branch)
	if err != nil || base != "" {
		return base, err
	}
	if m, ok := readMarks(tree, r); ok {
		if _, err := v.text(ctx, r, "", 1<<10, "cat-file", "-e", m.Start+"^{tree}"); err == nil {
			return m.Start, nil
		}
	}
	if head == "" {
		return v.nothing(ctx, r)
	}
	for _, name := range []string{"refs/heads/main", "refs/heads/master"} {
		left, err := v.text(ctx, r, "", 1<<10, "merge-base", head, name)
		if code(err) == 0 {
			return strings.TrimSpace(string(left)), err
		}
	}
	return head, nil
}

// nothing is the tree without files. Its name depends on the repository's kind.
func (v *View) nothing(ctx context.Context, r repo) (string, error) {
	out, err := v.text(ctx, r, "", 1<<10, "hash-object", "-t", "tree", "--stdin")
	return strings.TrimSpace(string(out)), err
}

// isID is true for names of objects, and nothing that could be an option.
func isID(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil && (len(s) == 40 || len(s) == 64)
}

package gitview

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
	"deckhand/internal/sandbox/runner/files"
)

// marks are the trees of a repository before the agent's first call, and before the first
// call of the current turn. They are stored in the repository, so that a copy of the
// workspace has them too. No ref holds the trees: git keeps loose objects for two weeks.
type marks struct {
	Start string `json:"start"`
	Turn  string `json:"turn"`
	At    int64  `json:"at"`
	// Of is the conversation that Start belongs to. A folder of the user may have several, one after the other.
	Of string `json:"of,omitempty"`
}

const (
	marksFile = ".git/deckhand-marks"
	// maxMarked and maxMarkedSize limit what is stored for a turn. A turn that begins with
	// more changes is not marked.
	maxMarked     = 10_000
	maxMarkedSize = 64 << 20
)

func readMarks(tree files.Tree, r repo) (marks, bool) {
	var m marks
	f, about, err := tree.Open([]byte(r.prefix + marksFile))
	if err != nil {
		return m, false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 4<<10))
	if err != nil || about.Size > 4<<10 || json.Unmarshal(b, &m) != nil || !isID(m.Start) || !isID(m.Turn) {
		return marks{}, false
	}
	return m, true
}

// Mark records the files of all repositories at the start of a turn. If the turn was recorded before, only repositories that
// were created since are recorded.
func (v *View) Mark(ctx context.Context, p sandbox.GitMarkParams) error {
	v.mu.Lock()
	before := v.marked
	v.marked = max(v.marked, p.Turn)
	v.mu.Unlock()
	root, tree, err := v.open()
	if err != nil {
		return err
	}
	defer root.Close()
	repos, err := v.repos(tree)
	if err != nil {
		return err
	}
	for _, r := range repos {
		m, known := readMarks(tree, r)
		if known && p.First && m.Of != p.Conversation { // of an earlier conversation in this folder
			m, known = marks{}, false
		}
		if !isFolder(tree, r.prefix+".git") || known && m.At == p.Turn {
			continue
		}
		begin := func() (string, error) { return v.snapshot(ctx, tree, r) }
		if !known && p.Turn <= before { // it was created during this turn
			begin = func() (string, error) { return v.created(ctx, r) }
		}
		id, err := begin()
		start := id
		if err == nil && !known && (!p.First || before > 0) { // it was created during an earlier turn
			start, err = v.created(ctx, r)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil { // an old mark would show an earlier turn
			_ = root.Remove(r.prefix + marksFile)
			continue
		}
		if !known {
			m.Start, m.Of = start, p.Conversation
		}
		m.Turn, m.At = id, p.Turn
		b, err := json.Marshal(m)
		if err != nil {
			return err
		}
		if err := replace(root, r.prefix+marksFile, b); err != nil {
			return err
		}
	}
	return nil
}

// created returns the base tree for a repository that was created during the conversation: the tree of origin, or the empty tree.
func (v *View) created(ctx context.Context, r repo) (string, error) {
	base, _, err := v.base(ctx, r, "")
	if err == nil && base == "" {
		return v.nothing(ctx, r)
	}
	return base, err
}

// replace writes a file atomically.
func replace(root *os.Root, name string, b []byte) error {
	_ = root.Remove(name + ".new")
	f, err := root.OpenFile(name+".new", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return root.Rename(name+".new", name)
}

// snapshot stores all files that git does not ignore as a tree.
func (v *View) snapshot(ctx context.Context, tree files.Tree, r repo) (string, error) {
	s, drop, err := v.scratch(ctx, tree, r, false)
	if err != nil {
		return "", err
	}
	defer drop()
	names, err := v.dirty(ctx, tree, s)
	if err != nil {
		return "", err
	}
	var size int64
	for _, name := range names {
		if f, err := tree.Stat([]byte(r.prefix + name)); err == nil && f.Mode.IsRegular() {
			size += f.Size
		}
	}
	if len(names) > maxMarked || size > maxMarkedSize {
		return "", rpc.ErrTooBig
	}
	if len(names) > 0 {
		if _, err := v.text(ctx, s, list(names), 1<<20, "update-index", "-z", "--add", "--remove", "--stdin"); err != nil {
			return "", err
		}
	}
	out, err := v.text(ctx, s, "", 1<<10, "write-tree")
	return strings.TrimSpace(string(out)), err
}

// resolve returns the tree that a range compares with.
func (v *View) resolve(ctx context.Context, tree files.Tree, r repo, branch string, in sandbox.GitRange) (string, error) {
	switch in.Kind {
	case "", sandbox.RangeUpstream:
		return v.upstream(ctx, tree, r, branch)
	case sandbox.RangeStart, sandbox.RangeTurn:
		if m, ok := readMarks(tree, r); ok {
			id := m.Start
			if in.Kind == sandbox.RangeTurn {
				id = m.Turn
			}
			if _, err := v.text(ctx, r, "", 1<<10, "cat-file", "-e", id+"^{tree}"); err == nil {
				return id, nil
			}
		}
		return v.created(ctx, r) // the merge base with the default branch
	case sandbox.RangeHead, sandbox.RangeStaged, sandbox.RangeUnstaged:
		return v.head(ctx, r)
	case sandbox.RangeBranch:
		return v.left(ctx, r, in.Branch)
	}
	return "", fmt.Errorf("%w: unknown range %q", rpc.ErrInvalid, in.Kind)
}

// head returns the last commit, or the empty tree.
func (v *View) head(ctx context.Context, r repo) (string, error) {
	out, err := v.text(ctx, r, "", 1<<10, "rev-parse", "-q", "--verify", "HEAD^{commit}")
	if code(err) != 0 {
		return v.nothing(ctx, r)
	}
	return strings.TrimSpace(string(out)), err
}

// left returns the merge base with a branch of this repository or of origin.
func (v *View) left(ctx context.Context, r repo, branch string) (string, error) {
	for _, ref := range []string{origin + branch, "refs/heads/" + branch} {
		out, err := v.text(ctx, r, "", 1<<10, "rev-parse", "-q", "--verify", ref+"^{commit}")
		if code(err) != 0 {
			continue
		}
		if err != nil {
			return "", err
		}
		id := strings.TrimSpace(string(out))
		both, err := v.text(ctx, r, "", 64<<10, "merge-base", "HEAD", id)
		if code(err) != 0 { // nothing in common, or no commit yet
			return id, nil
		}
		return strings.TrimSpace(string(both)), err
	}
	return "", fmt.Errorf("%w: there is no branch %q", rpc.ErrInvalid, branch)
}

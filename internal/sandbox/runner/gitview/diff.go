package gitview

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
	"deckhand/internal/sandbox/runner/edit/text"
	"deckhand/internal/sandbox/runner/files"
)

// maxDiff is the size up to which a file is compared.
const maxDiff = 1 << 20

// errNever says that a file is in neither version.
var errNever = fmt.Errorf("%w: there is none, and there was none", fs.ErrNotExist)

// Diff is a file of the workspace before and now.
func (v *View) Diff(ctx context.Context, p []byte) (sandbox.GitDiff, error) {
	var d sandbox.GitDiff
	root, tree, err := v.open()
	if err != nil {
		return d, err
	}
	defer root.Close()
	before, now, _, err := v.compare(ctx, tree, sandbox.GitCompareParams{Path: p})
	if err != nil {
		return d, fmt.Errorf("%q: %w", p, err)
	}
	if d.Original, err = decode(before); err == nil {
		d.Modified, err = decode(now)
	}
	if err != nil {
		return sandbox.GitDiff{}, fmt.Errorf("%q: %w", p, err)
	}
	return d, nil
}

// blob is a file as the base has it.
type blob struct {
	content []byte // nil if there is none
	module  bool   // it is a commit of another repository
}

func (b blob) none() bool { return b.content == nil }

func module(commit string) []byte { return []byte("Subproject commit " + commit + "\n") }

// now reads a file of the workspace. A link is the text of where it leads, as
// it is in git. nil is no file.
func (v *View) now(ctx context.Context, tree files.Tree, name string, before blob) ([]byte, error) {
	f, err := tree.Stat([]byte(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case f.Mode.Type() == fs.ModeSymlink:
		return f.Link, nil
	case f.IsDir() && before.module && isRepo(tree, name+"/"):
		head, err := v.text(ctx, repo{dir: path.Join(v.config.Workspace, name)}, "", 1<<10, "rev-parse", "--verify", "HEAD")
		if code(err) != 0 {
			return nil, nil // nothing is checked out
		}
		return module(strings.TrimSpace(string(head))), err
	case !f.Mode.IsRegular() && before.none():
		return nil, fmt.Errorf("%w: it is not a file", rpc.ErrInvalid)
	case !f.Mode.IsRegular():
		return nil, nil // something else is in its place
	}
	var b bytes.Buffer
	if f.Size > maxDiff {
		return nil, rpc.ErrTooBig
	}
	file, _, err := tree.Exact().Open([]byte(name))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := b.ReadFrom(io.LimitReader(file, maxDiff+1)); err != nil {
		return nil, fmt.Errorf("it cannot be read: %w", errors.Unwrap(err))
	}
	if b.Len() > maxDiff {
		return nil, rpc.ErrTooBig
	}
	return append([]byte{}, b.Bytes()...), nil
}

// decode makes a text of a file; nil stays nil.
func decode(b []byte) (*string, error) {
	if b == nil {
		return nil, nil
	}
	s, _, err := text.Decode(b)
	if err != nil {
		return nil, rpc.ErrBinary
	}
	return &s, nil
}

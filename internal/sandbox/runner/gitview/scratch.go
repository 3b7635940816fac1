package gitview

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"deckhand/internal/sandbox/rpc"
	"deckhand/internal/sandbox/runner/files"
)

// maxIndex is the maximum size of an index that is copied.
const maxIndex = 512 << 20

// scratch returns the repository with a copy of its index, which git may change. With
// apart, new objects are stored next to the copy. The function removes both.
func (v *View) scratch(ctx context.Context, tree files.Tree, r repo, apart bool) (repo, func(), error) {
	dir, err := os.MkdirTemp(v.config.Temp, "deckhand-git-")
	if err != nil {
		return r, nil, err
	}
	drop := func() { _ = os.RemoveAll(dir) }
	index, objects := filepath.Join(dir, "index"), filepath.Join(dir, "objects")
	s := r
	s.env = append(s.env, "GIT_INDEX_FILE="+index)
	if apart {
		found, err := v.text(ctx, r, "", 64<<10, "rev-parse", "--git-path", "objects")
		if err == nil {
			err = os.Mkdir(objects, 0o700)
		}
		if err != nil {
			drop()
			return r, nil, err
		}
		s.env = append(s.env, "GIT_OBJECT_DIRECTORY="+objects, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+quote(strings.TrimSuffix(string(found), "\n")))
	}
	switch err = copyIndex(tree, r, index); {
	case err == nil, errors.Is(err, fs.ErrNotExist) && isFolder(tree, r.prefix+".git"):
		return s, drop, nil // a repository without an index is empty
	case errors.Is(err, rpc.ErrTooBig):
		drop()
		return r, nil, err
	}
	// The index is elsewhere, as in a linked work tree.
	if _, err := v.text(ctx, s, "", 1<<10, "read-tree", "HEAD"); err != nil && code(err) == 0 {
		drop()
		return r, nil, err
	}
	return s, drop, nil
}

// quote is a path in a list of paths.
func quote(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}

func isFolder(tree files.Tree, name string) bool {
	f, err := tree.Stat([]byte(name))
	return err == nil && f.IsDir()
}

func copyIndex(tree files.Tree, r repo, to string) error {
	from, about, err := tree.Open([]byte(r.prefix + ".git/index"))
	if err != nil {
		return err
	}
	defer from.Close()
	if about.Size > maxIndex {
		return fmt.Errorf("%w: the index of the repository", rpc.ErrTooBig)
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(from, maxIndex))
	// From the age of the index, git knows which files may have changed after they were checked.
	return errors.Join(err, out.Close(), os.Chtimes(to, about.Time, about.Time))
}

// dirty lists the paths that git add would stage: those that differ from the index, including
// new ones. Repositories in the repository are left out.
func (v *View) dirty(ctx context.Context, tree files.Tree, r repo) ([]string, error) {
	var names []string
	seen := map[string]bool{}
	err := v.run(ctx, r, "", func(out io.Reader) error {
		return fields(out, func(name string) error {
			if seen[name] || strings.HasSuffix(name, "/") || v.nested(tree, r, name) {
				return nil
			}
			if len(names) == maxChanges {
				return tooMany()
			}
			seen[name] = true
			names = append(names, name)
			return nil
		})
	}, "ls-files", "-z", "-o", "-m", "-d", "--exclude-standard")
	return names, err
}

// nested is true for paths of the workspace's own repository that are in another one.
func (v *View) nested(tree files.Tree, r repo, name string) bool {
	first, _, below := strings.Cut(name, "/")
	return r.prefix == "" && below && isRepo(tree, first+"/")
}

// list is names as git reads them from its input.
func list(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return strings.Join(names, "\x00") + "\x00"
}

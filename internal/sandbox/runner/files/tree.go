package files

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"deckhand/internal/sandbox/rpc"
)

const (
	// maxPath is the longest path that the system takes.
	maxPath = 4096
	// maxDepth is how many folders may be nested. Each costs an open file during a walk, and
	// real trees are not this deep.
	maxDepth = 250
	// maxLinks and maxSteps bound how long a path may lead around.
	maxLinks = 40
	maxSteps = 1000
)

// Tree is a folder with all that is below it. The os.Root keeps every operation inside, whatever
// is swapped concurrently; the name is the folder's path as programs in the sandbox see it, so
// that their absolute paths and links are understood.
type Tree struct {
	root *os.Root
	name string
	// exact trees follow no link.
	exact bool
}

// At makes the tree of a folder that is called name where its files are used.
func At(root *os.Root, name string) Tree { return Tree{root: root, name: path.Clean("/" + name)} }

// Resolve follows all symbolic links of a path and returns it relative to the
// tree ("." for the tree itself). What does not exist has no links.
func (t Tree) Resolve(p []byte) (string, error) { return t.resolve(p, true) }

// Place follows all symbolic links of a path but the last, which is meant itself.
func (t Tree) Place(p []byte) (string, error) { return t.resolve(p, false) }

// Exact is the same tree for paths that Resolve gave: no link is followed any more. A caller
// that decided by the resolved path gets that very file or none.
func (t Tree) Exact() Tree {
	t.exact = true
	return t
}

// ofRunner says whether a path leads to what /proc shows of this process, under
// any of its names and those of its threads, or of the first process.
func ofRunner(parts []string) bool {
	if len(parts) < 2 || parts[0] != "proc" {
		return false
	}
	switch name := parts[1]; name {
	case "self", "thread-self", "1":
		return true
	default:
		_, err := os.Lstat("/proc/self/task/" + name)
		return err == nil
	}
}

// reserved is the folder of the runner in a container. The runner may write there, but not for its callers.
const reserved = ".deckhand"

// writable refuses to change the runner's folder, by a path without links.
func (t Tree) writable(rel string) error {
	if parts := names(rel); t.name == "/" && len(parts) > 0 && parts[0] == reserved {
		return errOfRunner
	}
	return nil
}

// errOfRunner refuses what the kernel shows of the runner itself.
var errOfRunner = fmt.Errorf("%w: it is about the sandbox itself", fs.ErrPermission)

// resolve follows the links of a path, the last one only if it is asked to.
//
// Afterwards no link is followed any more, so replacing a part by a link concurrently has no
// effect. An os.Root alone would not do: it refuses every absolute link, also those that stay
// inside.
func (t Tree) resolve(p []byte, last bool) (string, error) {
	todo, err := t.parts(string(p))
	if err != nil {
		return "", fail("open", p, err)
	}
	if t.exact {
		if slices.Contains(todo, "..") {
			return "", fail("open", p, rpc.ErrInvalid)
		}
		if t.name == "/" && ofRunner(todo) {
			return "", fail("open", p, errOfRunner)
		}
		return join(todo), nil
	}
	var done []string
	for links, steps := 0, 0; len(todo) > 0; steps++ {
		if steps > maxSteps || len(done) > maxDepth {
			return "", fail("open", p, syscall.ENAMETOOLONG)
		}
		part := todo[0]
		todo = todo[1:]
		if part == ".." {
			if len(done) == 0 && t.name != "/" {
				return "", fail("open", p, rpc.ErrEscapes)
			}
			done = done[:max(0, len(done)-1)]
			continue
		}
		at := append(done[:len(done):len(done)], part)
		if t.name == "/" && ofRunner(at) {
			return "", fail("open", p, errOfRunner)
		}
		here := join(at)
		if len(todo) == 0 && !last {
			return here, nil
		}
		info, err := t.root.Lstat(here)
		switch {
		case errors.Is(err, fs.ErrNotExist) && !slices.Contains(todo, ".."):
			return join(append(append(done, part), todo...)), nil
		case err != nil:
			return "", fail("open", p, err)
		case info.Mode().Type() != fs.ModeSymlink:
			done = append(done, part)
			continue
		}
		if links++; links > maxLinks {
			return "", fail("open", p, syscall.ELOOP)
		}
		target, err := t.root.Readlink(here)
		if err != nil {
			return "", fail("open", p, err)
		}
		more, err := t.parts(target)
		if err != nil {
			return "", fail("open", p, err)
		}
		if strings.HasPrefix(target, "/") {
			done = nil
		}
		todo = append(more, todo...)
	}
	return join(done), nil
}

// parts cuts a path, relative to the tree or absolute, into its names.
func (t Tree) parts(p string) ([]string, error) {
	if strings.ContainsRune(p, 0) {
		return nil, fmt.Errorf("%w: a path cannot contain a NUL", rpc.ErrInvalid)
	}
	if len(p) > maxPath {
		return nil, syscall.ENAMETOOLONG
	}
	parts := names(p)
	if !strings.HasPrefix(p, "/") {
		return parts, nil
	}
	mine := names(t.name)
	if len(parts) < len(mine) || !slices.Equal(parts[:len(mine)], mine) {
		return nil, rpc.ErrEscapes
	}
	return parts[len(mine):], nil
}

// names cuts at slashes and leaves out what means nothing.
func names(p string) []string {
	return slices.DeleteFunc(strings.Split(p, "/"), func(s string) bool { return s == "" || s == "." })
}

func join(parts []string) string {
	if len(parts) == 0 {
		return "."
	}
	return strings.Join(parts, "/")
}

// fail says what went wrong with a path in the caller's words. The name by
// which this machine knows the file is left out: it would tell where the
// workspaces lie.
func fail(op string, p []byte, err error) error {
	var ours *failure
	if err == nil || errors.As(err, &ours) {
		return err
	}
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		err = pe.Err
	case errors.As(err, &le):
		err = le.Err
	}
	switch {
	case err.Error() == "path escapes from parent": // of os.Root, which does not export it
		err = rpc.ErrEscapes
	case errors.Is(err, syscall.ENOTDIR):
		err = fmt.Errorf("%w: a part of the path is not a folder", fs.ErrNotExist)
	case isAny(err, syscall.EINVAL, syscall.ESTALE): // such as reading a link that is a folder by now
		err = fmt.Errorf("%w: it was changed at the same time", fs.ErrNotExist)
	case isAny(err, syscall.ELOOP, syscall.ENAMETOOLONG, syscall.EISDIR, syscall.ENXIO):
		err = fmt.Errorf("%w: %w", rpc.ErrInvalid, err)
	}
	return &failure{op, bytes.Clone(p), err}
}

func isAny(err error, any ...error) bool {
	return slices.ContainsFunc(any, func(e error) bool { return errors.Is(err, e) })
}

// failure is an error that names the path as it was asked for.
type failure struct {
	op   string
	path []byte
	err  error
}

func (f *failure) Error() string { return fmt.Sprintf("%s %q: %v", f.op, f.path, f.err) }
func (f *failure) Unwrap() error { return f.err }

// invalid is a failure of the request itself.
func invalid(op string, p []byte, why string) error {
	return &failure{op, bytes.Clone(p), fmt.Errorf("%w: %s", rpc.ErrInvalid, why)}
}

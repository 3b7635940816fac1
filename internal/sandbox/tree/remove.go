//go:build linux

package tree

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// deep is how far Remove goes down before it moves what is below to the top.
const deep = 100

// Remove removes a folder with all that is in it, however deep and whatever its
// mode. Links are removed, not followed. What does not exist is removed.
func Remove(path string) error {
	parent, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return &os.PathError{Op: "open", Path: filepath.Dir(path), Err: err}
	}
	defer unix.Close(parent)
	name := filepath.Base(path)
	err = unix.Unlinkat(parent, name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	root, _, err := openFolder(parent, name)
	if err != nil {
		return &os.PathError{Op: "remove", Path: path, Err: err}
	}
	defer unix.Close(root)
	r := remover{root: root}
	for again := true; again; {
		if again, err = r.empty(root, 0); err != nil {
			return fmt.Errorf("removing %s: %w", path, err)
		}
	}
	if err := unix.Unlinkat(parent, name, unix.AT_REMOVEDIR); err != nil && !errors.Is(err, unix.ENOENT) {
		return &os.PathError{Op: "remove", Path: path, Err: err}
	}
	return nil
}

type remover struct {
	root int
	n    int
}

// empty removes what is in a folder. It says whether it moved something to the
// root, which then is to be emptied again.
func (r *remover) empty(dir, depth int) (again bool, err error) {
	names, err := list(dir)
	if err != nil {
		return false, err
	}
	for _, name := range names {
		moved, err := r.one(dir, name, depth)
		if err != nil {
			return again, err
		}
		again = again || moved
	}
	return again, nil
}

// one removes one name.
func (r *remover) one(dir int, name string, depth int) (moved bool, err error) {
	err = unix.Unlinkat(dir, name, 0)
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) {
		err = unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
	}
	if err == nil || errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if !errors.Is(err, unix.ENOTEMPTY) {
		return false, &os.PathError{Op: "remove", Path: name, Err: err}
	}
	fd, _, err := openFolder(dir, name)
	if err != nil {
		return false, &os.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(fd)
	if depth >= deep {
		return true, r.lift(dir, name)
	}
	if moved, err = r.empty(fd, depth+1); err != nil {
		return moved, err
	}
	if err := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR); err != nil && !errors.Is(err, unix.ENOENT) {
		return moved, &os.PathError{Op: "remove", Path: name, Err: err}
	}
	return moved, nil
}

// lift moves a folder to the root, under a name that is free there.
func (r *remover) lift(dir int, name string) error {
	for {
		r.n++
		err := unix.Renameat2(dir, name, r.root, fmt.Sprintf("lifted-%d", r.n), unix.RENAME_NOREPLACE)
		if errors.Is(err, unix.EEXIST) {
			continue
		}
		if err != nil {
			return &os.PathError{Op: "move", Path: name, Err: err}
		}
		return nil
	}
}

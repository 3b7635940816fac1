package checkpoint

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox/tree"
)

// applier carries out changes.
type applier struct {
	s *Store
	w Workspace
	// root is the workspace; dir is the most recently used folder, at its path.
	root, dir int
	at        string
	// closed is the original mode of dir if that denies writing to its owner; it is set again when dir is left.
	closed uint32
	packs  map[int]*os.File
	kept   []string
	tmp    string
	n      int
	// reads is true if nothing is written, so that the modes of folders do not change.
	reads bool
}

func (s *Store) apply(w Workspace, changes []change) ([]string, error) {
	root, err := tree.OpenRoot(w.Dir)
	if err != nil {
		return nil, err
	}
	a := &applier{s: s, w: w, root: root, dir: -1, packs: map[int]*os.File{}, tmp: ".deckhand-restore-" + rand.Text()}
	defer a.close()
	// Removals come first, and folders after their contents: something else may take their place.
	for _, c := range slices.Backward(changes) {
		if c.from != nil && (c.to == nil || c.to.kind != c.from.kind) {
			if err := a.remove(c.from); err != nil {
				return a.kept, err
			}
		}
	}
	var folders []*entry
	for _, c := range changes {
		if c.to == nil {
			continue
		}
		if c.to.kind == folder {
			folders = append(folders, c.to)
		}
		if err := a.put(c); err != nil {
			return a.kept, err
		}
	}
	for _, e := range slices.Backward(folders) { // a mode may make a folder read-only, so modes come last
		if err := a.finishFolder(e); err != nil {
			return a.kept, err
		}
	}
	return a.kept, nil
}

func (a *applier) close() {
	for _, f := range a.packs {
		f.Close()
	}
	a.leave()
	unix.Close(a.root)
}

func (a *applier) leave() {
	if a.dir < 0 {
		return
	}
	if a.closed != 0 {
		_ = unix.Fchmod(a.dir, a.closed)
	}
	unix.Close(a.dir)
	a.dir, a.closed = -1, 0
}

// parent opens the folder of a path, one name after the other and never through a link.
func (a *applier) parent(p string) (dir int, name string, err error) {
	a.s.step()
	at, name := path.Split(p)
	if a.dir >= 0 && a.at == at {
		return a.dir, name, nil
	}
	a.leave()
	dir, err = unix.FcntlInt(uintptr(a.root), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1, "", err
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(at, "/"), "/") {
		if part == "" {
			continue
		}
		if part == "." || part == ".." {
			unix.Close(dir)
			return -1, "", fmt.Errorf("%w: the path %q", ErrCorrupt, p)
		}
		next, err := tree.OpenFolder(dir, part)
		unix.Close(dir)
		if err != nil {
			return -1, "", &os.PathError{Op: "open", Path: p, Err: err}
		}
		dir = next
	}
	if name == "" || name == "." || name == ".." {
		unix.Close(dir)
		return -1, "", fmt.Errorf("%w: the path %q", ErrCorrupt, p)
	}
	a.dir, a.at = dir, at
	var st unix.Stat_t
	if err := unix.Fstat(dir, &st); err == nil && !a.reads && st.Mode&0o300 != 0o300 {
		a.closed = st.Mode & 0o7777
		_ = unix.Fchmod(dir, a.closed|0o700)
	}
	return dir, name, nil
}

func (a *applier) remove(e *entry) error {
	dir, name, err := a.parent(e.path)
	if gone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	flags := 0
	if e.kind == folder {
		flags = unix.AT_REMOVEDIR
	}
	err = unix.Unlinkat(dir, name, flags)
	if gone(err) {
		return nil
	}
	if e.kind == folder && (errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST)) {
		return nil // it contains something that is in no checkpoint
	}
	if err != nil {
		return &os.PathError{Op: "remove", Path: e.path, Err: err}
	}
	return nil
}

func gone(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) }

// put creates the entry of a checkpoint at its path.
func (a *applier) put(c change) error {
	e := c.to
	dir, name, err := a.parent(e.path)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOENT) {
		a.kept = append(a.kept, e.path)
		return nil
	}
	if err != nil {
		return err
	}
	switch e.kind {
	case folder:
		if err := unix.Mkdirat(dir, name, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
			return &os.PathError{Op: "mkdir", Path: e.path, Err: err}
		}
		return nil
	case file:
		if f := c.from; f != nil && f.kind == file && f.size == e.size && f.blob.hash == e.blob.hash {
			return a.finish(dir, name, e)
		}
		err = a.place(dir, name, e, a.file)
	case link:
		err = a.place(dir, name, e, func(dir int, tmp string, e *entry) error { return unix.Symlinkat(e.target, dir, tmp) })
	case pipe:
		err = a.place(dir, name, e, func(dir int, tmp string, _ *entry) error { return unix.Mkfifoat(dir, tmp, 0o600) })
	default:
		return fmt.Errorf("%w: kind %q", ErrCorrupt, e.kind)
	}
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) {
		a.kept = append(a.kept, e.path)
		return nil
	}
	if err != nil {
		return &os.PathError{Op: "restore", Path: e.path, Err: err}
	}
	return nil
}

// place creates an entry under a temporary name and renames it, so that it is never seen incomplete.
func (a *applier) place(dir int, name string, e *entry, make func(dir int, tmp string, e *entry) error) error {
	a.n++
	tmp := fmt.Sprintf("%s-%d", a.tmp, a.n)
	err := make(dir, tmp, e)
	if err == nil && e.kind != file { // files got their owner and mode while open
		err = a.finish(dir, tmp, e)
	}
	if err == nil {
		a.s.step()
		err = unix.Renameat(dir, tmp, dir, name)
	}
	if err != nil {
		_ = unix.Unlinkat(dir, tmp, 0)
	}
	return err
}

// file writes a file from the store.
func (a *applier) file(dir int, tmp string, e *entry) error {
	fd, err := unix.Openat(dir, tmp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	parts := e.blob.extents
	if parts == nil {
		parts = []extent{{0, e.blob.len}}
	}
	from := e.blob.off
	for _, x := range parts {
		if x.len == 0 {
			continue
		}
		pack, err := a.pack(e.blob.pack)
		if err == nil {
			err = copyRange(fd, pack, x, from)
		}
		if err != nil {
			return err
		}
		from += x.len
	}
	if e.size > e.blob.len || e.blob.extents != nil {
		if err := unix.Ftruncate(fd, e.size); err != nil {
			return err
		}
	}
	if a.w.First != 0 {
		if err := unix.Fchown(fd, int(a.w.First+e.uid), int(a.w.First+e.gid)); err != nil {
			return err
		}
	}
	return unix.Fchmod(fd, e.mode&0o7777)
}

func (a *applier) pack(n int) (*os.File, error) {
	if f := a.packs[n]; f != nil {
		return f, nil
	}
	f, err := os.Open(a.s.data(n))
	if err != nil {
		return nil, err
	}
	a.packs[n] = f
	return f, nil
}

// copyRange copies a part of a data file to its offset in a file.
func copyRange(fd int, pack *os.File, x extent, from int64) error {
	at, left := x.off, x.len
	buf := make([]byte, min(left, 256<<10))
	for left > 0 {
		n, err := pack.ReadAt(buf[:min(int64(len(buf)), left)], from)
		if n == 0 {
			return fmt.Errorf("%w: contents are missing: %w", ErrCorrupt, cmp.Or(err, io.ErrUnexpectedEOF))
		}
		for done := 0; done < n; {
			m, err := unix.Pwrite(fd, buf[done:n], at)
			if err != nil {
				return err
			}
			done += m
			at += int64(m)
		}
		from += int64(n)
		left -= int64(n)
	}
	return nil
}

// finish sets the owner and mode of an entry by its name.
func (a *applier) finish(dir int, name string, e *entry) error {
	if a.w.First != 0 {
		if err := unix.Fchownat(dir, name, int(a.w.First+e.uid), int(a.w.First+e.gid), unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return &os.PathError{Op: "chown", Path: e.path, Err: err}
		}
	}
	if e.kind == link {
		return nil
	}
	if err := tree.Chmod(dir, name, e.mode); err != nil {
		return &os.PathError{Op: "chmod", Path: e.path, Err: err}
	}
	return nil
}

func (a *applier) finishFolder(e *entry) error {
	dir, name, err := a.parent(e.path)
	if err == nil {
		err = a.finish(dir, name, e)
	}
	if gone(err) || errors.Is(err, unix.ELOOP) {
		return nil
	}
	return err
}

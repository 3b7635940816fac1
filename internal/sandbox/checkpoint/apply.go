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

	"deckhand/internal/sandbox/checkpoint/record"
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
		if c.from != nil && (c.to == nil || c.to.Kind != c.from.Kind) {
			if err := a.remove(c.from); err != nil {
				return a.kept, err
			}
		}
	}
	var folders []*record.Entry
	for _, c := range changes {
		if c.to == nil {
			continue
		}
		if c.to.Kind == record.Folder {
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

func (a *applier) remove(e *record.Entry) error {
	dir, name, err := a.parent(e.Path)
	if gone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	flags := 0
	if e.Kind == record.Folder {
		flags = unix.AT_REMOVEDIR
	}
	err = unix.Unlinkat(dir, name, flags)
	if gone(err) {
		return nil
	}
	if e.Kind == record.Folder && (errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST)) {
		return nil // it contains something that is in no checkpoint
	}
	if err != nil {
		return &os.PathError{Op: "remove", Path: e.Path, Err: err}
	}
	return nil
}

func gone(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) }

// put creates the entry of a checkpoint at its path.
func (a *applier) put(c change) error {
	e := c.to
	dir, name, err := a.parent(e.Path)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOENT) {
		a.kept = append(a.kept, e.Path)
		return nil
	}
	if err != nil {
		return err
	}
	switch e.Kind {
	case record.Folder:
		err := unix.Mkdirat(dir, name, 0o700)
		if errors.Is(err, unix.EEXIST) && unlinkSpecial(dir, name) {
			err = unix.Mkdirat(dir, name, 0o700)
		}
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return &os.PathError{Op: "mkdir", Path: e.Path, Err: err}
		}
		return nil
	case record.File:
		if f := c.from; f != nil && f.Kind == record.File && f.Size == e.Size && f.Blob.Hash == e.Blob.Hash {
			return a.finish(dir, name, e)
		}
		err = a.place(dir, name, e, a.file)
	case record.Link:
		err = a.place(dir, name, e, func(dir int, tmp string, e *record.Entry) error { return unix.Symlinkat(e.Target, dir, tmp) })
	case record.Pipe:
		err = a.place(dir, name, e, func(dir int, tmp string, _ *record.Entry) error { return unix.Mkfifoat(dir, tmp, 0o600) })
	default:
		return fmt.Errorf("%w: kind %q", ErrCorrupt, e.Kind)
	}
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) {
		a.kept = append(a.kept, e.Path)
		return nil
	}
	if err != nil {
		return &os.PathError{Op: "restore", Path: e.Path, Err: err}
	}
	return nil
}

// unlinkSpecial removes a socket or device, which checkpoints do not store.
func unlinkSpecial(dir int, name string) bool {
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return false
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFSOCK, unix.S_IFCHR, unix.S_IFBLK:
		return unix.Unlinkat(dir, name, 0) == nil
	}
	return false
}

// place creates an entry under a temporary name and renames it, so that it is never seen incomplete.
func (a *applier) place(dir int, name string, e *record.Entry, make func(dir int, tmp string, e *record.Entry) error) error {
	a.n++
	tmp := fmt.Sprintf("%s-%d", a.tmp, a.n)
	err := make(dir, tmp, e)
	if err == nil && e.Kind != record.File { // files got their owner and mode while open
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
func (a *applier) file(dir int, tmp string, e *record.Entry) error {
	fd, err := unix.Openat(dir, tmp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	parts := e.Blob.Extents
	if parts == nil {
		parts = []record.Extent{{Off: 0, Len: e.Blob.Len}}
	}
	from := e.Blob.Off
	for _, x := range parts {
		if x.Len == 0 {
			continue
		}
		pack, err := a.pack(e.Blob.Pack)
		if err == nil {
			err = copyRange(fd, pack, x, from)
		}
		if err != nil {
			return err
		}
		from += x.Len
	}
	if e.Size > e.Blob.Len || e.Blob.Extents != nil {
		if err := unix.Ftruncate(fd, e.Size); err != nil {
			return err
		}
	}
	if a.w.First != 0 {
		if err := unix.Fchown(fd, int(a.w.First+e.UID), int(a.w.First+e.GID)); err != nil {
			return err
		}
	}
	return unix.Fchmod(fd, e.Mode&0o7777)
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
func copyRange(fd int, pack *os.File, x record.Extent, from int64) error {
	at, left := x.Off, x.Len
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
func (a *applier) finish(dir int, name string, e *record.Entry) error {
	if a.w.First != 0 {
		if err := unix.Fchownat(dir, name, int(a.w.First+e.UID), int(a.w.First+e.GID), unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return &os.PathError{Op: "chown", Path: e.Path, Err: err}
		}
	}
	if e.Kind == record.Link {
		return nil
	}
	if err := tree.Chmod(dir, name, e.Mode); err != nil {
		return &os.PathError{Op: "chmod", Path: e.Path, Err: err}
	}
	return nil
}

func (a *applier) finishFolder(e *record.Entry) error {
	dir, name, err := a.parent(e.Path)
	if err == nil {
		err = a.finish(dir, name, e)
	}
	if gone(err) || errors.Is(err, unix.ELOOP) {
		return nil
	}
	return err
}

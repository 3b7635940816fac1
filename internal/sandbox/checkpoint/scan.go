package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"deckhand/internal/gitignore"
	"deckhand/internal/sandbox/checkpoint/gitindex"
	"deckhand/internal/sandbox/checkpoint/record"
	"deckhand/internal/sandbox/checkpoint/watch"
	"deckhand/internal/sandbox/tree"
)

// racyTime is the minimum age of a file's last change at which its times reveal the next change: the kernel's clock
// for files has a coarse resolution.
const racyTime = 20 * time.Millisecond

// maxUnwatched is the number of files up to which a workspace is scanned each time: that costs as little as asking a watcher.
const maxUnwatched = 32

// scanner reads the state of a workspace.
type scanner struct {
	ctx   context.Context
	w     Workspace
	known record.State
	// also is another state whose folders are read even if they are ignored.
	also  record.State
	found record.State
	start int64
	// read fills in the content of a file that is not known.
	read func(f *os.File, size int64) (record.Blob, error)
	// watch reports changes to each folder from the moment it is read; nil if it cannot.
	watch *watch.Watcher
	// linked are files with several hard links: a change under one name is not reported for the others.
	linked map[string]bool
	// bytes and leftOut count the files, reread those that had to be read.
	bytes   int64
	leftOut int
	reread  int64

	root    int
	prefix  string
	prefixs []string
	ignores []ignore
}

// ignore is a .gitignore file of a repository, and its folder.
type ignore struct {
	prefix string
	list   *gitignore.List
	// tracked are the folders with files that git tracks, if the folder is that of a repository; nil before they are needed.
	repository bool
	tracked    map[string]bool
}

// scan reads a workspace. A workspace in which folders are moved around is read again a few times.
func (s *scanner) scan() error {
	root, err := tree.OpenRoot(s.w.Dir)
	if err != nil {
		return err
	}
	defer unix.Close(root)
	s.root = root
	for range 5 {
		s.found, s.start = make(record.State, len(s.known)), time.Now().UnixNano()
		s.bytes, s.leftOut, s.reread, s.prefix, s.prefixs, s.ignores = 0, 0, 0, "", nil, nil
		s.watch.Close()
		s.watch, s.linked = nil, map[string]bool{}
		if len(s.known) > maxUnwatched {
			s.watch = watch.New()
		}
		s.observe(root)
		s.enterRepository(root)
		err = tree.Walk(root, tree.Visitor{File: s.file, Enter: s.enter, Leave: s.leave, Skip: s.skip})
		if !errors.Is(err, tree.ErrMoved) {
			return err
		}
	}
	return err
}

func (s *scanner) add(name string, k record.Kind, st *unix.Stat_t) (*record.Entry, error) {
	if err := ended(s.ctx, len(s.found)); err != nil {
		return nil, err
	}
	if len(s.found) >= MaxFiles {
		return nil, fmt.Errorf("%w: it has more than %d files", ErrTooLarge, MaxFiles)
	}
	e := &record.Entry{Path: s.prefix + name, Kind: k, Mode: st.Mode & 0o7777, UID: s.id(st.Uid), GID: s.id(st.Gid)}
	s.found[e.Path] = e
	return e, nil
}

// observe adds a folder to the watcher.
func (s *scanner) observe(dir int) {
	if s.watch != nil && !s.watch.Add(dir, s.prefix) {
		s.watch.Close()
		s.watch = nil
	}
}

// look reads only the given paths. It reports false if one of them is a folder.
func (s *scanner) look(paths map[string]bool) (bool, error) {
	root, err := tree.OpenRoot(s.w.Dir)
	if err != nil {
		return false, err
	}
	a := &applier{root: root, dir: -1, s: &Store{step: func() {}}, reads: true}
	defer a.close()
	s.found, s.start = record.State{}, time.Now().UnixNano()
	for p := range paths {
		dir, name, err := a.parent(p)
		if err != nil {
			return false, nil // a folder is gone or unreadable: do a full scan
		}
		s.prefix = strings.TrimSuffix(p, name)
		var st unix.Stat_t
		err = unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil || st.Mode&unix.S_IFMT == unix.S_IFDIR || st.Nlink > 1 && !s.linked[p] {
			return false, nil
		}
		if err := s.file(dir, name, &st); err != nil {
			return false, err
		}
	}
	return true, nil
}

// id returns a user ID relative to the first one of the workspace.
func (s *scanner) id(id uint32) uint32 {
	if s.w.First == 0 || id < s.w.First || id-s.w.First >= s.w.Size {
		return 0
	}
	return id - s.w.First
}

func (s *scanner) file(dir int, name string, st *unix.Stat_t) error {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return s.regular(dir, name, st)
	case unix.S_IFLNK:
		buf := make([]byte, 4096)
		n, err := unix.Readlinkat(dir, name, buf)
		if err != nil {
			return nil // gone since it was listed
		}
		e, err := s.add(name, record.Link, st)
		if err == nil {
			e.Mode, e.Target = 0, string(buf[:n])
		}
		return err
	case unix.S_IFIFO:
		_, err := s.add(name, record.Pipe, st)
		return err
	case unix.S_IFSOCK:
		return nil // a socket is useless without its listener
	}
	s.leftOut++ // a device
	return nil
}

// keep records an entry that a restore does not touch.
func (s *scanner) keep(name string, st *unix.Stat_t) error {
	s.leftOut++
	_, err := s.add(name, record.Kept, st)
	return err
}

func (s *scanner) regular(dir int, name string, st *unix.Stat_t) error {
	if st.Nlink > 1 {
		s.linked[s.prefix+name] = true
	}
	if st.Size > MaxFile && st.Blocks*512 > MaxFile {
		return s.keep(name, st)
	}
	if s.bytes += min(st.Size, st.Blocks*512); s.bytes > MaxBytes {
		return fmt.Errorf("%w: its files are larger than %d GiB in total", ErrTooLarge, MaxBytes>>30)
	}
	e, err := s.add(name, record.File, st)
	if err != nil {
		return err
	}
	if old := s.known[e.Path]; old != nil && old.Kind == record.File && old.Ino == st.Ino && old.Size == st.Size &&
		old.Mtime == st.Mtim.Nano() && old.Ctime == st.Ctim.Nano() {
		e.Size, e.Ino, e.Mtime, e.Ctime, e.Blob = old.Size, old.Ino, old.Mtime, old.Ctime, old.Blob
		return nil
	}
	f, done, err := tree.OpenFile(dir, name)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ELOOP) {
		delete(s.found, e.Path)
		return nil // gone since it was listed
	}
	if err == nil {
		defer done()
		err = s.content(f, e)
	}
	var fault *storeError
	if errors.As(err, &fault) || s.ctx.Err() != nil {
		return err
	}
	if err != nil { // it cannot be read, or became something else since it was listed
		s.leftOut++
		e.Kind = record.Kept
	}
	return nil
}

// storeError is a failure of the store, not of the file that is read.
type storeError struct{ err error }

func (e *storeError) Error() string { return e.err.Error() }
func (e *storeError) Unwrap() error { return e.err }

// content reads an open file. If it changes while it is read, it is read again a few times; then the last result counts.
func (s *scanner) content(f *os.File, e *record.Entry) error {
	var before, after unix.Stat_t
	for range 3 {
		if err := unix.Fstat(int(f.Fd()), &before); err != nil {
			return err
		}
		if before.Mode&unix.S_IFMT != unix.S_IFREG {
			return unix.ENOENT
		}
		b, err := s.read(f, before.Size)
		if err != nil {
			return err
		}
		s.reread += b.Len
		if err := unix.Fstat(int(f.Fd()), &after); err != nil {
			return err
		}
		if e.Size, e.Blob = before.Size, b; b.Extents == nil {
			e.Size = b.Len
		}
		e.Ino, e.Mtime, e.Ctime = after.Ino, after.Mtim.Nano(), after.Ctim.Nano()
		if before.Size == after.Size && before.Mtim == after.Mtim && before.Ctim == after.Ctim {
			if e.Ctime > s.start-int64(racyTime) {
				e.Ino = 0
			}
			return nil
		}
	}
	e.Ino = 0
	return nil
}

func (s *scanner) enter(dir int, name string, st *unix.Stat_t) error {
	if _, err := s.add(name, record.Folder, st); err != nil {
		return err
	}
	s.prefixs = append(s.prefixs, s.prefix)
	s.prefix += name + "/"
	s.observe(dir)
	s.enterRepository(dir)
	return nil
}

func (s *scanner) leave(int) error {
	for n := len(s.ignores); n > 0 && s.ignores[n-1].prefix == s.prefix; n = len(s.ignores) {
		s.ignores = s.ignores[:n-1]
	}
	s.prefix = s.prefixs[len(s.prefixs)-1]
	s.prefixs = s.prefixs[:len(s.prefixs)-1]
	return nil
}

// maxIgnore is the number of bytes that are read of a .gitignore file.
const maxIgnore = 256 << 10

// enterRepository reads the .gitignore file of a folder that is a repository or inside one.
func (s *scanner) enterRepository(dir int) {
	repository := unix.Faccessat(dir, ".git", unix.F_OK, unix.AT_SYMLINK_NOFOLLOW) == nil
	if len(s.ignores) == 0 && !repository {
		return
	}
	l := ignore{prefix: s.prefix, list: &gitignore.List{}, repository: repository}
	if b := readFile(dir, ".gitignore", maxIgnore); b != nil {
		l.list = gitignore.Parse(string(b))
	} else if !repository {
		return
	}
	s.ignores = append(s.ignores, l)
}

// readFile returns at most the given number of bytes of a file, nil if it cannot be read.
func readFile(dir int, name string, most int64) []byte {
	f, done, err := tree.OpenFile(dir, name)
	if err != nil {
		return nil
	}
	defer done()
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil
	}
	buf := make([]byte, min(st.Size, most))
	n, _ := f.ReadAt(buf, 0)
	return buf[:n]
}

// skip leaves out the folders that the repository ignores, unless git tracks files in them. A folder in a checkpoint
// stays in later ones: the agent must not be able to hide its changes with a new line in .gitignore.
func (s *scanner) skip(_ int, name string, st *unix.Stat_t) (bool, error) {
	path := s.prefix + name
	if name == ".git" || s.known[path].Stored() || s.also[path].Stored() {
		return false, nil
	}
	for i := range s.ignores {
		if s.ignores[i].list.Hides(strings.TrimPrefix(path, s.ignores[i].prefix), true) {
			if s.tracks(path) {
				return false, nil
			}
			_, err := s.add(name, record.Kept, st)
			return true, err
		}
	}
	return false, nil
}

// tracks reports whether git tracks a file in a folder.
func (s *scanner) tracks(path string) bool {
	for i := range s.ignores {
		l := &s.ignores[i]
		if !l.repository {
			continue
		}
		if l.tracked == nil {
			l.tracked = s.readIndex(l.prefix)
		}
		if l.tracked[strings.TrimPrefix(path, l.prefix)] {
			return true
		}
	}
	return false
}

// readIndex returns the folders with tracked files of a repository. An index that cannot be read has none.
func (s *scanner) readIndex(prefix string) map[string]bool {
	a := &applier{root: s.root, dir: -1, s: &Store{step: func() {}}, reads: true}
	defer a.leave()
	dir, name, err := a.parent(prefix + ".git/index")
	if err != nil {
		return map[string]bool{}
	}
	x, _ := gitindex.Parse(readFile(dir, name, MaxFile))
	return x.Folders()
}

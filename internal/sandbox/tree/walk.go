//go:build linux

package tree

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// ErrMoved says that a folder was moved away while it was being walked through.
var ErrMoved = errors.New("the folder was moved while it was read")

// Visitor is told what a walk meets. dir is the open folder that holds name;
// it is the visitor's to use, not to close.
type Visitor struct {
	// File is called for everything that is no folder.
	File func(dir int, name string, st *unix.Stat_t) error
	// Enter is called with each opened folder, Leave when all in it was met. The
	// root is not told of. Both may be nil.
	Enter func(dir int, name string, st *unix.Stat_t) error
	Leave func(dir int) error
	// Skip reports whether a folder is not entered; may be nil.
	Skip func(dir int, name string, st *unix.Stat_t) (bool, error)
	// Sorted makes the walk meet the names of a folder in the order of their bytes.
	Sorted bool
}

// frame is a folder on the way down. It is not kept open, so it is recognised
// by its inode on the way up.
type frame struct {
	dev, ino uint64
	mode     uint32
	locked   bool // its mode was changed to get in, and is changed back
	names    []string
}

// Walk goes through all that is below root, which stays open and is not
// crossed into other file systems.
func Walk(root int, v Visitor) error {
	var st unix.Stat_t
	if err := unix.Fstat(root, &st); err != nil {
		return err
	}
	dir, err := unix.FcntlInt(uintptr(root), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { unix.Close(dir) }()
	names, err := v.list(dir)
	if err != nil {
		return err
	}
	stack := []frame{{dev: st.Dev, ino: st.Ino, names: names}}
	for {
		top := &stack[len(stack)-1]
		if len(top.names) == 0 {
			if len(stack) == 1 {
				return nil
			}
			if dir, err = up(dir, v, stack); err != nil {
				return err
			}
			stack = stack[:len(stack)-1]
			continue
		}
		name := top.names[0]
		top.names = top.names[1:]
		next, f, err := step(dir, name, top.dev, v)
		if err != nil {
			return err
		}
		if f != nil {
			unix.Close(dir)
			dir = next
			stack = append(stack, *f)
		}
	}
}

// step meets one name. It returns the frame of a folder that was entered.
func step(dir int, name string, dev uint64, v Visitor) (int, *frame, error) {
	var st unix.Stat_t
	err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return -1, nil, nil // gone since it was listed
	}
	if err != nil {
		return -1, nil, &os.PathError{Op: "stat", Path: name, Err: err}
	}
	if st.Dev != dev {
		return -1, nil, nil
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return -1, nil, v.File(dir, name, &st)
	}
	if v.Skip != nil {
		if skip, err := v.Skip(dir, name, &st); skip || err != nil {
			return -1, nil, err
		}
	}
	fd, locked, err := openFolder(dir, name)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return -1, nil, nil
	}
	if err != nil {
		return -1, nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	mode := st.Mode & 0o7777
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return -1, nil, err
	}
	if locked {
		st.Mode = st.Mode&^0o7777 | mode
	}
	if v.Enter != nil { // before it is listed: a visitor that watches it misses nothing
		err = v.Enter(fd, name, &st)
	}
	var names []string
	if err == nil {
		names, err = v.list(fd)
	}
	if err != nil {
		unix.Close(fd)
		return -1, nil, err
	}
	return fd, &frame{dev: st.Dev, ino: st.Ino, mode: mode, locked: locked, names: names}, nil
}

// up leaves a folder for the one above, and makes sure that it is that one: if
// it was moved, what is above may be anything.
func up(dir int, v Visitor, stack []frame) (int, error) {
	if v.Leave != nil {
		if err := v.Leave(dir); err != nil {
			return dir, err
		}
	}
	above, err := unix.Openat(dir, "..", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return dir, err
	}
	if f := stack[len(stack)-1]; f.locked {
		_ = unix.Fchmod(dir, f.mode)
	}
	unix.Close(dir)
	var st unix.Stat_t
	if err := unix.Fstat(above, &st); err != nil {
		return above, err
	}
	if f := stack[len(stack)-2]; st.Ino != f.ino || st.Dev != f.dev {
		return above, ErrMoved
	}
	return above, nil
}

// openFolder opens a folder in a folder. If its mode keeps even its owner out,
// the mode is changed; locked says so.
func openFolder(dir int, name string) (fd int, locked bool, err error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err = unix.Openat(dir, name, flags, 0)
	if err == nil && unix.Faccessat(fd, ".", unix.X_OK, 0) == nil {
		return fd, false, nil
	}
	if err == nil {
		unix.Close(fd)
	} else if !errors.Is(err, unix.EACCES) {
		return -1, false, err
	}
	if err := unlock(dir, name); err != nil {
		return -1, false, err
	}
	fd, err = unix.Openat(dir, name, flags, 0)
	return fd, true, err
}

// unlock gives the owner all rights to a file or folder. The name is resolved
// once, without following a link, and what was found is changed.
func unlock(dir int, name string) error {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFDIR && kind != unix.S_IFREG {
		return unix.EACCES
	}
	return unix.Chmod(own(fd), st.Mode&0o7777|0o700)
}

// own returns a path to the file of an open descriptor.
func own(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

func (v Visitor) list(fd int) ([]string, error) {
	names, err := list(fd)
	if v.Sorted {
		slices.Sort(names)
	}
	return names, err
}

// list reads all names in a folder.
func list(fd int) ([]string, error) {
	if _, err := unix.Seek(fd, 0, 0); err != nil {
		return nil, err
	}
	var names []string
	buf := make([]byte, 16<<10)
	for {
		n, err := unix.ReadDirent(fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading a folder: %w", err)
		}
		if n == 0 {
			return names, nil
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}

// OpenRoot opens a folder by its path, without following a link.
func OpenRoot(path string) (int, error) { return openRoot(path) }

// OpenFolder opens a folder in an open folder, without following a link. If its mode keeps even its
// owner out, the owner gets all rights to it.
func OpenFolder(dir int, name string) (int, error) {
	fd, _, err := openFolder(dir, name)
	return fd, err
}

// OpenFile opens a file in an open folder for reading, without following a link and without waiting
// for the other end of a pipe. If its mode keeps even its owner out, the mode is changed until done is called.
func OpenFile(dir int, name string) (f *os.File, done func(), err error) {
	const flags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := unix.Openat(dir, name, flags, 0)
	if err == nil {
		f = os.NewFile(uintptr(fd), name)
		return f, func() { f.Close() }, nil
	}
	if !errors.Is(err, unix.EACCES) {
		return nil, nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil, nil, err
	}
	if err := unlock(dir, name); err != nil {
		return nil, nil, err
	}
	if fd, err = unix.Openat(dir, name, flags, 0); err != nil {
		return nil, nil, err
	}
	f = os.NewFile(uintptr(fd), name)
	return f, func() { _ = unix.Fchmod(fd, st.Mode&0o7777); f.Close() }, nil
}

// Chmod changes the mode of a file or folder in an open folder, never of what a link leads to.
func Chmod(dir int, name string, mode uint32) error {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return unix.ELOOP
	}
	return unix.Chmod(own(fd), mode&0o7777)
}

// openRoot opens a folder by its path, without following a link.
func openRoot(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

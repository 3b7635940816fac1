//go:build linux

package tree

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// IDs says who owns a copy: users and groups From, From+1, … become To, To+1, … IDs outside of
// that range become To. A Size of 0 leaves owners alone, for processes that may not change them.
type IDs struct{ From, To, Size uint32 }

func (i IDs) shift(id uint32) int {
	if id < i.From || id-i.From >= i.Size {
		return int(i.To)
	}
	return int(id - i.From + i.To)
}

// Copy copies a folder, with links, holes, times, modes and user attributes, to
// one that must not exist. Sockets are left out: nothing listens on a copy.
func Copy(from, to string, ids IDs) error {
	src, err := openRoot(from)
	if err != nil {
		return err
	}
	defer unix.Close(src)
	var st unix.Stat_t
	if err := unix.Fstat(src, &st); err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	dst, err := openRoot(to)
	if err != nil {
		return err
	}
	c := &copier{dst: dst, ids: ids, links: map[[2]uint64]string{}, folders: []unix.Stat_t{st}}
	defer func() { unix.Close(c.dst) }()
	firsts := to + ".links"
	if err := os.Mkdir(firsts, 0o700); err != nil {
		return err
	}
	defer Remove(firsts)
	if c.firsts, err = openRoot(firsts); err != nil {
		return err
	}
	defer unix.Close(c.firsts)
	if err := Walk(src, Visitor{File: c.file, Enter: c.enter, Leave: c.leave}); err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	if err := attributes(src, c.dst); err != nil {
		return err
	}
	return c.finish(c.dst, &st)
}

type copier struct {
	dst     int // the folder that is filled
	ids     IDs
	folders []unix.Stat_t // from the root down to dst
	// links are the inodes with several names, by the name that the first copy
	// has in the folder firsts, until the end.
	links  map[[2]uint64]string
	firsts int
}

func (c *copier) enter(dir int, name string, st *unix.Stat_t) error {
	if err := unix.Mkdirat(c.dst, name, 0o700); err != nil {
		return &os.PathError{Op: "mkdir", Path: name, Err: err}
	}
	fd, err := unix.Openat(c.dst, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: name, Err: err}
	}
	unix.Close(c.dst)
	c.dst = fd
	c.folders = append(c.folders, *st)
	return attributes(dir, fd)
}

// leave sets what a folder can have only when it is filled.
func (c *copier) leave(int) error {
	above, err := unix.Openat(c.dst, "..", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	err = c.finish(c.dst, &c.folders[len(c.folders)-1])
	unix.Close(c.dst)
	c.dst = above
	c.folders = c.folders[:len(c.folders)-1]
	return err
}

// finish gives an open copy its owner, mode and times.
func (c *copier) finish(fd int, st *unix.Stat_t) error {
	if c.ids.Size > 0 {
		if err := unix.Fchown(fd, c.ids.shift(st.Uid), c.ids.shift(st.Gid)); err != nil {
			return err
		}
	}
	if err := unix.Fchmod(fd, st.Mode&0o7777); err != nil {
		return err
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, own(fd), []unix.Timespec{st.Atim, st.Mtim}, 0)
}

func (c *copier) file(dir int, name string, st *unix.Stat_t) error {
	kind := st.Mode & unix.S_IFMT
	if kind == unix.S_IFSOCK {
		return nil
	}
	if st.Nlink > 1 {
		key := [2]uint64{st.Dev, st.Ino}
		if first, ok := c.links[key]; ok {
			return wrapPath("link", name, unix.Linkat(c.firsts, first, c.dst, name, 0))
		}
	}
	var err error
	switch kind {
	case unix.S_IFREG:
		err = c.regular(dir, name, st)
	case unix.S_IFLNK:
		err = c.link(dir, name, st)
	default:
		// Pipes, and the marks with which an overlay remembers what was removed.
		if err = unix.Mknodat(c.dst, name, st.Mode, int(st.Rdev)); err == nil {
			err = c.nameless(name, st)
		}
	}
	if errors.Is(err, unix.ENOENT) {
		return nil // gone since it was listed
	}
	return wrapPath("copy", name, err)
}

func wrapPath(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: op, Path: name, Err: err}
}

func (c *copier) link(dir int, name string, st *unix.Stat_t) error {
	buf := make([]byte, 4096)
	n, err := unix.Readlinkat(dir, name, buf)
	if err != nil {
		return err
	}
	if err := unix.Symlinkat(string(buf[:n]), c.dst, name); err != nil {
		return err
	}
	return c.nameless(name, st)
}

// nameless gives owner and times to what cannot be opened.
func (c *copier) nameless(name string, st *unix.Stat_t) error {
	if c.ids.Size > 0 {
		if err := unix.Fchownat(c.dst, name, c.ids.shift(st.Uid), c.ids.shift(st.Gid), unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
	}
	return unix.UtimesNanoAt(c.dst, name, []unix.Timespec{st.Atim, st.Mtim}, unix.AT_SYMLINK_NOFOLLOW)
}

func (c *copier) regular(dir int, name string, st *unix.Stat_t) error {
	in, done, err := OpenFile(dir, name)
	if err != nil {
		if errors.Is(err, unix.ELOOP) {
			return unix.ENOENT // it became a link since it was listed
		}
		return err
	}
	defer done()
	fd, err := unix.Openat(c.dst, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	out := os.NewFile(uintptr(fd), name)
	defer out.Close()
	if err := content(out, in); err != nil {
		return err
	}
	if err := attributes(int(in.Fd()), fd); err != nil {
		return err
	}
	if st.Nlink > 1 {
		first := strconv.Itoa(len(c.links))
		if err := unix.Linkat(c.dst, name, c.firsts, first, 0); err != nil {
			return err
		}
		c.links[[2]uint64{st.Dev, st.Ino}] = first
	}
	return c.finish(fd, st)
}

// content copies bytes: shared with the original where the file system can,
// else without filling holes.
func content(out, in *os.File) error {
	if unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) == nil {
		return nil
	}
	info, err := in.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	for at := int64(0); at < size; {
		start, err := unix.Seek(int(in.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break
		}
		end := size
		if err != nil {
			start = at
		} else if end, err = unix.Seek(int(in.Fd()), start, unix.SEEK_HOLE); err != nil {
			end = size
		}
		if _, err := io.Copy(io.NewOffsetWriter(out, start), io.NewSectionReader(in, start, end-start)); err != nil {
			return err
		}
		at = end
	}
	return out.Truncate(size)
}

// attributes copies the attributes of users, where an overlay keeps its notes.
func attributes(from, to int) error {
	buf := make([]byte, 64<<10)
	n, err := unix.Flistxattr(from, buf)
	if errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(string(buf[:n]), "\x00") {
		if !strings.HasPrefix(name, "user.") {
			continue
		}
		value := make([]byte, 64<<10)
		m, err := unix.Fgetxattr(from, name, value)
		if errors.Is(err, unix.ENODATA) {
			continue
		}
		if err != nil {
			return err
		}
		if err := unix.Fsetxattr(to, name, value[:m], 0); err != nil {
			return err
		}
	}
	return nil
}

package backup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox/tree"
)

// unpacker makes a tree of entries. It goes from an open folder to a name in it, never through a link, and never replaces anything, so
// no entry can reach what is outside of the tree.
type unpacker struct {
	in     *bufio.Reader
	dir    int
	open   []entry // from the root down to dir
	firsts int     // a folder with the files that have several names, by their numbers
	links  map[int]bool
	print  *print
	root   bool // owners can be restored
}

// unpack makes the folder path, which must not exist, from a stream. It returns the print that the folder must have.
func unpack(in io.Reader, path string) (Hash, error) {
	u := &unpacker{in: bufio.NewReaderSize(in, 256<<10), dir: -1, links: map[int]bool{}, print: newPrint(), root: os.Geteuid() == 0}
	firsts := path + ".links"
	for _, dir := range []string{firsts, path} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return Hash{}, err
		}
	}
	defer tree.Remove(firsts)
	var err error
	if u.firsts, err = tree.OpenRoot(firsts); err != nil {
		return Hash{}, err
	}
	defer unix.Close(u.firsts)
	if u.dir, err = tree.OpenRoot(path); err != nil {
		return Hash{}, err
	}
	defer func() { unix.Close(u.dir) }()
	if err := u.run(); err != nil {
		return Hash{}, fmt.Errorf("restoring %s: %w", path, err)
	}
	return Hash(u.print.sum.Sum(nil)), nil
}

func (u *unpacker) run() error {
	for first := true; first || len(u.open) > 0; first = false {
		e, err := readEntry(u.in)
		if err != nil {
			return err
		}
		if !u.root {
			e.UID, e.GID = uint32(os.Geteuid()), uint32(os.Getegid())
		} else if e.UID == 0 || e.GID == 0 {
			e.Mode &^= unix.S_ISUID | unix.S_ISGID // no sandbox makes such a file
		}
		for name := range e.Attributes {
			if !strings.HasPrefix(name, "user.") {
				return fmt.Errorf("refused the attribute %s of %q", name, e.Name)
			}
		}
		if first && e.Op != opEnter {
			return errors.New("the stream does not begin with a folder")
		}
		if e.Op == opLeave {
			u.print.entry(entry{Op: opLeave})
		} else {
			u.print.entry(e)
		}
		if err := u.one(e, first); err != nil {
			return &os.PathError{Op: "restore", Path: string(e.Name), Err: err}
		}
	}
	if _, err := u.in.ReadByte(); err != io.EOF { // also checks the hash of the stream
		return errors.Join(errors.New("the stream goes on after its end"), err)
	}
	return nil
}

func (u *unpacker) one(e entry, first bool) error {
	name := string(e.Name)
	switch e.Op {
	case opEnter:
		if !first {
			if err := u.enter(name); err != nil {
				return err
			}
		}
		u.open = append(u.open, e)
		return setAttributes(u.dir, e)
	case opLeave:
		return u.leave()
	case opFile:
		return u.file(name, e)
	case opAgain:
		if !u.links[e.Link] {
			return errors.New("refused a link to a file that the stream does not contain")
		}
		return unix.Linkat(u.firsts, strconv.Itoa(e.Link), u.dir, name, 0)
	case opLink:
		if err := unix.Symlinkat(string(e.Target), u.dir, name); err != nil {
			return err
		}
	case opPipe:
		if err := unix.Mkfifoat(u.dir, name, 0o600); err != nil {
			return err
		}
		if err := tree.Chmod(u.dir, name, e.Mode); err != nil {
			return err
		}
	case opGone:
		if err := unix.Mknodat(u.dir, name, unix.S_IFCHR|e.Mode, 0); err != nil {
			return err
		}
	default:
		return fmt.Errorf("unknown kind of entry %q", e.Op)
	}
	if u.root {
		if err := unix.Fchownat(u.dir, name, int(e.UID), int(e.GID), unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
	}
	return unix.UtimesNanoAt(u.dir, name, times(e), unix.AT_SYMLINK_NOFOLLOW)
}

func (u *unpacker) enter(name string) error {
	if err := unix.Mkdirat(u.dir, name, 0o700); err != nil {
		return err
	}
	fd, err := unix.Openat(u.dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	unix.Close(u.dir)
	u.dir = fd
	return nil
}

// leave sets what a folder can have only when it is filled.
func (u *unpacker) leave() error {
	e := u.open[len(u.open)-1]
	u.open = u.open[:len(u.open)-1]
	above := -1
	if len(u.open) > 0 {
		var err error
		if above, err = unix.Openat(u.dir, "..", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
			return err
		}
	}
	err := u.finish(u.dir, e)
	if above >= 0 {
		unix.Close(u.dir)
		u.dir = above
	}
	return err
}

// finish gives an open file or folder its owner, mode and time.
func (u *unpacker) finish(fd int, e entry) error {
	if u.root {
		if err := unix.Fchown(fd, int(e.UID), int(e.GID)); err != nil {
			return err
		}
	}
	if err := unix.Fchmod(fd, e.Mode); err != nil {
		return err
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), times(e), 0)
}

func times(e entry) []unix.Timespec {
	t := unix.NsecToTimespec(e.Time)
	return []unix.Timespec{t, t}
}

func (u *unpacker) file(name string, e entry) error {
	fd, err := unix.Openat(u.dir, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	if err := u.content(f, e); err != nil {
		return err
	}
	if err := setAttributes(fd, e); err != nil {
		return err
	}
	if e.Link > 0 {
		if err := unix.Linkat(u.dir, name, u.firsts, strconv.Itoa(e.Link), 0); err != nil {
			return err
		}
		u.links[e.Link] = true
	}
	return u.finish(fd, e)
}

func (u *unpacker) content(f *os.File, e entry) error {
	if err := f.Truncate(e.Size); err != nil {
		return err
	}
	b := u.print.content()
	defer b.flush()
	buf := make([]byte, 256<<10)
	for _, x := range e.Extents {
		for at, end := x[0], x[0]+x[1]; at < end; {
			part := buf[:min(int64(len(buf)), end-at)]
			if _, err := io.ReadFull(u.in, part); err != nil {
				return err
			}
			b.write(at, part)
			if _, err := f.WriteAt(part, at); err != nil {
				return err
			}
			at += int64(len(part))
		}
	}
	return nil
}

func setAttributes(fd int, e entry) error {
	for name, value := range e.Attributes {
		if err := unix.Fsetxattr(fd, name, value, 0); err != nil {
			return fmt.Errorf("attribute %s: %w", name, err)
		}
	}
	return nil
}

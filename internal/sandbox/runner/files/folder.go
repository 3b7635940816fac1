package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
)

// folder is an open folder. Its operations take single names and follow no link, so nothing that
// is swapped concurrently can lead them elsewhere.
type folder struct{ f *os.File }

// folder opens a folder of the tree by a path without links. Asking for a folder
// is also what keeps it from waiting for the other end of a pipe.
func (t Tree) folder(rel string) (*folder, error) {
	d, missing, err := t.deepest(rel)
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		d.close()
		return nil, fs.ErrNotExist
	}
	return d, nil
}

// deepest opens the lowest folder of a path that exists, and names those that
// are missing below it.
func (t Tree) deepest(rel string) (*folder, []string, error) {
	top, err := t.root.OpenFile(".", os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	d := &folder{top}
	parts := names(rel)
	for i, part := range parts {
		next, err := d.folder(part)
		if errors.Is(err, fs.ErrNotExist) {
			return d, parts[i:], nil
		}
		d.close()
		if err != nil {
			return nil, nil, err
		}
		d = next
	}
	return d, nil, nil
}

// parent opens the folder that a file lies in, and names the file in it.
func (t Tree) parent(rel string) (*folder, string, error) {
	d, err := t.folder(path.Dir(rel))
	return d, path.Base(rel), err
}

func (d *folder) close() { d.f.Close() }

func (d *folder) fd() int { return int(d.f.Fd()) }

// self is the folder's own entry.
func (d *folder) self() (unix.Stat_t, error) {
	var st unix.Stat_t
	err := retry(func() error { return unix.Fstat(d.fd(), &st) })
	return st, err
}

func (d *folder) lstat(name string) (unix.Stat_t, error) {
	var st unix.Stat_t
	err := retry(func() error { return unix.Fstatat(d.fd(), name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	return st, err
}

func (d *folder) readlink(name string) ([]byte, error) {
	buf := make([]byte, maxPath+1) // the system makes none longer than maxPath
	var n int
	err := retry(func() (err error) { n, err = unix.Readlinkat(d.fd(), name, buf); return })
	return buf[:max(n, 0)], err
}

func (d *folder) open(name string, flags int, mode uint32) (*os.File, error) {
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Openat(d.fd(), name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, mode)
		return
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// folder opens a folder in this one.
func (d *folder) folder(name string) (*folder, error) {
	f, err := d.open(name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	return &folder{f}, nil
}

// errIrregular says that a file has no content that could be read.
var errIrregular = fmt.Errorf("%w: it is not a regular file", rpc.ErrInvalid)

// file opens a regular file. It looks before it opens, since opening alone does
// things to some devices, and after, since it may have been swapped.
func (d *folder) file(name string) (*os.File, unix.Stat_t, error) {
	st, err := d.lstat(name)
	if err != nil {
		return nil, st, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, st, errIrregular
	}
	f, err := d.open(name, unix.O_RDONLY, 0)
	if err != nil {
		return nil, st, err
	}
	err = retry(func() error { return unix.Fstat(int(f.Fd()), &st) })
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = errIrregular
	}
	if err != nil {
		f.Close()
		return nil, st, err
	}
	return f, st, nil
}

// entry tells of a file in the folder.
func (d *folder) entry(name string) (sandbox.File, error) {
	st, err := d.lstat(name)
	if err != nil {
		return sandbox.File{}, err
	}
	f := describe(name, &st)
	if f.Mode.Type() == fs.ModeSymlink {
		f.Link, err = d.readlink(name)
	}
	return f, err
}

// some gives the next names, none at the end.
func (d *folder) some() ([]string, error) {
	names, err := d.f.Readdirnames(1024)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, err
}

// all gives the names in order, each once: a folder that changes while it is
// read may show one twice. More than budget bytes of them are ErrTooBig.
func (d *folder) all(budget int) ([]string, error) {
	var all []string
	for {
		names, err := d.some()
		if err != nil {
			return nil, err
		}
		if len(names) == 0 {
			slices.Sort(all)
			return slices.Compact(all), nil
		}
		for _, n := range names {
			if budget -= weight(n); budget < 0 {
				return nil, fmt.Errorf("%w: the folder has too many files", rpc.ErrTooBig)
			}
		}
		all = append(all, names...)
	}
}

// weight is about what a name takes up in memory.
func weight(name string) int { return len(name) + 32 }

// describe translates what the system says of a file.
func describe(name string, st *unix.Stat_t) sandbox.File {
	mode := fs.FileMode(st.Mode & 0o777)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	case unix.S_IFIFO:
		mode |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		mode |= fs.ModeSocket
	case unix.S_IFBLK:
		mode |= fs.ModeDevice
	case unix.S_IFCHR:
		mode |= fs.ModeDevice | fs.ModeCharDevice
	}
	if st.Mode&unix.S_ISUID != 0 {
		mode |= fs.ModeSetuid
	}
	if st.Mode&unix.S_ISGID != 0 {
		mode |= fs.ModeSetgid
	}
	if st.Mode&unix.S_ISVTX != 0 {
		mode |= fs.ModeSticky
	}
	return sandbox.File{Name: []byte(name), Size: st.Size, Mode: mode, Time: time.Unix(st.Mtim.Unix())}
}

// retry does it again as long as a signal comes in between.
func retry(f func() error) error {
	for {
		if err := f(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

package privatefiles

import (
	"bytes"
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

// entry is one of a folder.
type entry struct {
	name string
	dir  bool
	mode uint32
	size int64
}

// direntName is where the name begins in a struct linux_dirent64: after inode, offset, length and type.
const direntName = 8 + 8 + 2 + 1

// entries calls each for the regular files and folders in a folder. There are a hundred thousand
// of them in a system's folders, so it does not allocate memory for what os.ReadDir and Lstat would return.
func (w *Watch) entries(folder string, each func(entry)) error {
	fd, err := retried(func() (int, error) {
		return unix.Open(folder, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if w.buf == nil {
		w.buf = make([]byte, 32<<10)
	}
	for {
		n, err := retried(func() (int, error) { return unix.Getdents(fd, w.buf) })
		if err != nil || n <= 0 {
			return err
		}
		for rest := w.buf[:n]; len(rest) >= direntName; {
			length := int(binary.NativeEndian.Uint16(rest[16:]))
			if length < direntName || length > len(rest) {
				return unix.EIO
			}
			kind, name := rest[18], rest[direntName:length]
			rest = rest[length:]
			if kind != unix.DT_REG && kind != unix.DT_DIR && kind != unix.DT_UNKNOWN {
				continue
			}
			if end := bytes.IndexByte(name, 0); end >= 0 {
				name = name[:end]
			}
			if e, ok := entryOf(fd, string(name)); ok && e.name != "." && e.name != ".." {
				each(e)
			}
		}
	}
}

// entryOf looks at one. It is false for what is gone, and neither a file nor a folder.
func entryOf(fd int, name string) (e entry, ok bool) {
	var st unix.Stat_t
	if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return e, false
	}
	kind := st.Mode & unix.S_IFMT
	return entry{name: name, dir: kind == unix.S_IFDIR, mode: st.Mode, size: st.Size}, kind == unix.S_IFDIR || kind == unix.S_IFREG
}

// retried repeats a system call that a signal has interrupted.
func retried(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

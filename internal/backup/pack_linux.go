package backup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox/tree"
)

// packer writes a tree as entries.
type packer struct {
	out   io.Writer
	depth int
	links map[[2]uint64]int
	// asIs keeps notes about processes: a tree that is compared was written without them.
	asIs  bool
	print *print // nil unless it is to be compared
}

// pack writes a folder as a stream. Files may change while they are read: each has a content that it had at some time, or zeros
// where it was cut off.
func pack(path string, out io.Writer) error {
	p := &packer{out: out, links: map[[2]uint64]int{}}
	return p.run(path)
}

// printOf returns the print of a folder.
func printOf(path string) (Hash, error) {
	p := &packer{out: io.Discard, links: map[[2]uint64]int{}, asIs: true, print: newPrint()}
	err := p.run(path)
	return Hash(p.print.sum.Sum(nil)), err
}

func (p *packer) run(path string) error {
	root, err := tree.OpenRoot(path)
	if err != nil {
		return err
	}
	defer unix.Close(root)
	var st unix.Stat_t
	if err := unix.Fstat(root, &st); err != nil {
		return err
	}
	if err := p.enter(root, "workspace", &st); err != nil {
		return err
	}
	if err := tree.Walk(root, tree.Visitor{File: p.file, Enter: p.enter, Leave: p.leave, Sorted: true}); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	return p.leave(root)
}

func (p *packer) write(e entry) error {
	if p.print != nil {
		p.print.entry(e)
	}
	return e.write(p.out)
}

func entryOf(op, name string, st *unix.Stat_t) entry {
	return entry{Op: op, Name: []byte(name), Mode: st.Mode & 0o7777, UID: st.Uid, GID: st.Gid, Time: st.Mtim.Nano()}
}

func (p *packer) enter(dir int, name string, st *unix.Stat_t) error {
	p.depth++
	e := entryOf(opEnter, name, st)
	var err error
	if e.Attributes, err = attributes(dir); err != nil {
		return err
	}
	return p.write(e)
}

func (p *packer) leave(int) error {
	p.depth--
	return p.write(entry{Op: opLeave})
}

// processFile is what the driver without a sandbox remembers of its process, and metaFile what the local driver does.
const (
	processFile = "process.json"
	metaFile    = "meta.json"
)

func (p *packer) file(dir int, name string, st *unix.Stat_t) error {
	top := p.depth == 1 && !p.asIs
	if top && name == processFile {
		return nil
	}
	var err error
	switch kind := st.Mode & unix.S_IFMT; {
	case kind == unix.S_IFREG:
		err = p.regular(dir, name, st, top && name == metaFile)
	case kind == unix.S_IFLNK:
		buf := make([]byte, unix.PathMax)
		n, readErr := unix.Readlinkat(dir, name, buf)
		if err = readErr; err == nil {
			e := entryOf(opLink, name, st)
			e.Mode, e.Target = 0, buf[:n]
			return p.write(e)
		}
	case kind == unix.S_IFIFO:
		return p.write(entryOf(opPipe, name, st))
	case kind == unix.S_IFCHR && st.Rdev == 0:
		e := entryOf(opGone, name, st)
		e.Mode = 0
		return p.write(e)
	default:
		return nil // a socket or a device
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EINVAL) && st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return nil // gone or replaced since it was listed
	}
	if err != nil {
		return &os.PathError{Op: "read", Path: name, Err: err}
	}
	return nil
}

func (p *packer) regular(dir int, name string, st *unix.Stat_t, meta bool) error {
	e := entryOf(opFile, name, st)
	key := [2]uint64{st.Dev, st.Ino}
	if e.Link = p.links[key]; e.Link > 0 {
		e.Op = opAgain
		return p.write(e)
	}
	f, done, err := tree.OpenFile(dir, name)
	if err != nil {
		return err
	}
	defer done()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fs.ErrNotExist
	}
	if e.Attributes, err = attributes(int(f.Fd())); err != nil {
		return err
	}
	if st.Nlink > 1 {
		e.Link = len(p.links) + 1
		p.links[key] = e.Link
	}
	if meta {
		return p.meta(e, f)
	}
	e.Size = info.Size()
	e.Extents = extents(f, e.Size)
	if err := p.write(e); err != nil {
		return err
	}
	return p.content(f, e)
}

// content writes the extents of a file, with zeros for what was cut off since they were found.
func (p *packer) content(f *os.File, e entry) error {
	var b *blocks
	if p.print != nil {
		b = p.print.content()
		defer b.flush()
	}
	buf := make([]byte, 256<<10)
	for _, x := range e.Extents {
		for at, end := x[0], x[0]+x[1]; at < end; {
			part := buf[:min(int64(len(buf)), end-at)]
			n, err := f.ReadAt(part, at)
			if err != nil && err != io.EOF {
				return err
			}
			clear(part[n:])
			if b != nil {
				b.write(at, part)
			}
			if _, err := p.out.Write(part); err != nil {
				return err
			}
			at += int64(len(part))
		}
	}
	return nil
}

// meta writes what is remembered of a sandbox without its process, which is of this machine: a server that is started on a restored
// copy must not take the process for its own.
func (p *packer) meta(e entry, f *os.File) error {
	b, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(b, &fields) == nil {
		for _, name := range []string{"pid", "started", "boot", "groups"} {
			delete(fields, name)
		}
		b, _ = json.Marshal(fields) // of what was just read
	}
	e.Size, e.Extents = int64(len(b)), [][2]int64{{0, int64(len(b))}}
	if err := p.write(e); err != nil {
		return err
	}
	_, err = p.out.Write(b)
	return err
}

// extents finds what is not a hole.
func extents(f *os.File, size int64) (out [][2]int64) {
	for at := int64(0); at < size; {
		start, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break
		}
		end := size
		if err != nil {
			start = at
		} else if hole, err := unix.Seek(int(f.Fd()), start, unix.SEEK_HOLE); err == nil {
			end = min(hole, size)
		}
		if start >= end {
			break
		}
		if out = append(out, [2]int64{start, end - start}); len(out) == maxExtents {
			out[len(out)-1][1] = size - start // the rest, with its holes
			break
		}
		at = end
	}
	return out
}

// maxExtents keeps entries small.
const maxExtents = 10_000

// attributes are those of users, where an overlay keeps its notes.
func attributes(fd int) (map[string][]byte, error) {
	buf := make([]byte, 64<<10)
	n, err := unix.Flistxattr(fd, buf)
	if errors.Is(err, unix.ENOTSUP) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out map[string][]byte
	for name := range strings.SplitSeq(string(buf[:n]), "\x00") {
		if !strings.HasPrefix(name, "user.") {
			continue
		}
		value := make([]byte, 64<<10)
		m, err := unix.Fgetxattr(fd, name, value)
		if errors.Is(err, unix.ENODATA) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if out == nil {
			out = map[string][]byte{}
		}
		out[name] = value[:m]
	}
	return out, nil
}

// moved reports whether a folder could not be read because another was moved.
func moved(err error) bool { return errors.Is(err, tree.ErrMoved) }

// syncTree makes everything on the disk of a folder durable.
func syncTree(path string) error {
	fd, err := tree.OpenRoot(path)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Syncfs(fd)
}

package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
)

// The functions on an os.Root take it for the workspace of a sandbox.

// Stat tells of a file, without following a last symbolic link.
func Stat(root *os.Root, p []byte) (sandbox.File, error) { return At(root, sandbox.Workspace).Stat(p) }

// List tells what is in a folder, sorted by name.
func List(root *os.Root, p []byte) ([]sandbox.File, error) {
	return At(root, sandbox.Workspace).List(p)
}

// Read copies a file, or a part of it, to w.
func Read(root *os.Root, p sandbox.ReadParams, w io.Writer) (sandbox.File, error) {
	return At(root, sandbox.Workspace).Read(p, w)
}

// Usage is what the workspace takes up on disk.
func Usage(ctx context.Context, root *os.Root) (int64, error) {
	return At(root, sandbox.Workspace).Usage(ctx)
}

// Stat tells of a file, without following a last symbolic link.
func (t Tree) Stat(p []byte) (sandbox.File, error) {
	rel, err := t.resolve(p, false)
	if err != nil {
		return sandbox.File{}, err
	}
	if rel == "." {
		d, err := t.folder(".")
		if err != nil {
			return sandbox.File{}, fail("stat", p, err)
		}
		defer d.close()
		st, err := d.self()
		return describe(".", &st), fail("stat", p, err)
	}
	d, name, err := t.parent(rel)
	if err != nil {
		return sandbox.File{}, fail("stat", p, err)
	}
	defer d.close()
	f, err := d.entry(name)
	return f, fail("stat", p, err)
}

// maxList bounds a listing, so that its JSON is an answer that can be sent.
const maxList = 20 << 20

// List tells what is in a folder, sorted by name. What is no folder is
// ErrInvalid, a folder with too many files for one answer ErrTooBig.
func (t Tree) List(p []byte) ([]sandbox.File, error) {
	rel, err := t.resolve(p, true)
	if err != nil {
		return nil, err
	}
	d, err := t.folder(rel)
	if err != nil {
		if info, e := t.root.Lstat(rel); e == nil && !info.IsDir() {
			return nil, invalid("list", p, "it is not a folder")
		}
		return nil, fail("list", p, err)
	}
	defer d.close()
	names, err := d.all(maxList)
	if err != nil {
		return nil, fail("list", p, err)
	}
	files := make([]sandbox.File, 0, len(names))
	size := 0
	for _, name := range names {
		f, err := d.entry(name)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EINVAL) {
			continue // it went away, or is no link any more
		}
		if err != nil {
			return nil, fail("list", p, err)
		}
		if size += 128 + (len(f.Name)+len(f.Link))*4/3; size > maxList {
			return nil, fail("list", p, fmt.Errorf("%w: the folder has too many files", rpc.ErrTooBig))
		}
		files = append(files, f)
	}
	return files, nil
}

// Open opens a regular file to be read. It never waits.
func (t Tree) Open(p []byte) (*os.File, sandbox.File, error) {
	rel, err := t.resolve(p, true)
	if err != nil {
		return nil, sandbox.File{}, err
	}
	if rel == "." {
		return nil, sandbox.File{}, fail("read", p, errIrregular)
	}
	d, name, err := t.parent(rel)
	if err != nil {
		return nil, sandbox.File{}, fail("read", p, err)
	}
	defer d.close()
	f, st, err := d.file(name)
	if err != nil {
		return nil, sandbox.File{}, fail("read", p, err)
	}
	return f, describe(name, &st), nil
}

// Read copies a file, or a part of it, to w. It ends where the file ended when
// it was opened, so that a file that grows does not keep it forever.
func (t Tree) Read(p sandbox.ReadParams, w io.Writer) (sandbox.File, error) {
	if p.Offset < 0 || p.Length < 0 {
		return sandbox.File{}, invalid("read", p.Path, "offset and length cannot be negative")
	}
	f, info, err := t.Open(p.Path)
	if err != nil {
		return info, err
	}
	defer f.Close()
	length := max(0, info.Size-p.Offset)
	if p.Length > 0 {
		length = min(length, p.Length)
	}
	part := io.NewSectionReader(f, p.Offset, length)
	if _, err := io.CopyBuffer(w, plain{part}, make([]byte, 64<<10)); err != nil {
		return info, fail("read", p.Path, err)
	}
	return info, nil
}

// plain hides all but Read, so that CopyBuffer uses our buffer.
type plain struct{ io.Reader }

// maxSeen bounds how many files with several names are remembered while usage
// is counted. Beyond, each name counts: too much is the safer mistake.
const maxSeen = 1 << 20

// usage adds up what files take.
type usage struct {
	ctx   context.Context
	dev   uint64
	mount uint64
	seen  map[[2]uint64]struct{}
	bytes int64
	// missed is the first thing that could not be counted.
	missed error
}

// Usage adds up what the files of the tree take up on disk. A file with several
// names counts once; other mounts do not count. If something could not be
// looked into, what was counted is returned with the error.
func (t Tree) Usage(ctx context.Context) (int64, error) {
	d, err := t.folder(".")
	if err != nil {
		return 0, fail("measure", nil, err)
	}
	defer d.close()
	st, err := d.self()
	if err != nil {
		return 0, fail("measure", nil, err)
	}
	u := &usage{ctx: ctx, dev: uint64(st.Dev), seen: map[[2]uint64]struct{}{}}
	u.mount, _ = mountID(d.fd(), "")
	u.bytes = st.Blocks * 512
	if err := u.add(d, nil, 0); err != nil {
		return u.bytes, err
	}
	return u.bytes, u.missed
}

// add counts what is in a folder.
func (u *usage) add(d *folder, at []byte, depth int) error {
	for {
		if err := u.ctx.Err(); err != nil {
			return err
		}
		names, err := d.some()
		if err != nil {
			u.miss(at, err)
			return nil
		}
		if len(names) == 0 {
			return nil
		}
		for _, name := range names {
			if err := u.one(d, name, at, depth); err != nil {
				return err
			}
		}
	}
}

func (u *usage) one(d *folder, name string, at []byte, depth int) error {
	st, err := d.lstat(name)
	if err != nil {
		u.miss(at, err)
		return nil
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		if st.Nlink > 1 {
			key := [2]uint64{uint64(st.Dev), st.Ino}
			if _, ok := u.seen[key]; ok {
				return nil
			}
			if len(u.seen) < maxSeen {
				u.seen[key] = struct{}{}
			}
		}
		u.bytes += st.Blocks * 512
		return nil
	}
	if !u.sameMount(d, name, &st) {
		return nil
	}
	u.bytes += st.Blocks * 512
	at = append(append(bytes.Clone(at), name...), '/')
	if depth >= maxDepth {
		u.miss(at[:min(len(at), 200)], fmt.Errorf("%w: folders are nested too deep to be counted", rpc.ErrTooBig))
		return nil
	}
	sub, err := d.folder(name)
	if err != nil {
		u.miss(at, err)
		return nil
	}
	defer sub.close()
	return u.add(sub, at, depth+1)
}

// sameMount is true for folders of the mount we began in. A subvolume has a
// device number of its own and still is of the same mount.
func (u *usage) sameMount(d *folder, name string, st *unix.Stat_t) bool {
	if uint64(st.Dev) == u.dev {
		return true
	}
	id, ok := mountID(d.fd(), name)
	return ok && id == u.mount
}

// miss remembers what could not be counted; what went away needs no counting.
func (u *usage) miss(at []byte, err error) {
	if u.missed == nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) && !errors.Is(err, syscall.ELOOP) {
		u.missed = fail("measure", at, err)
	}
}

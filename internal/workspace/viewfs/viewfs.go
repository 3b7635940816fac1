// Package viewfs shows a workspace as a file system.
package viewfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"time"

	"deckhand/internal/sandbox"
)

// maxWhole bounds a file that is read at once, because the caller keeps it in memory.
const maxWhole = 16 << 20

// View is a workspace that can be looked into.
type View interface {
	Stat(ctx context.Context, path string) (sandbox.File, error)
	List(ctx context.Context, path string) ([]sandbox.File, error)
	// ReadPart copies a part of a file to w.
	ReadPart(ctx context.Context, p sandbox.ReadParams, w io.Writer) (sandbox.File, error)
}

// New returns a view as a file system, until ctx ends or the view is closed.
func New(ctx context.Context, v View) fs.FS { return &viewFS{ctx: ctx, v: v} }

// viewFS keeps ctx because the methods of io/fs take none.
type viewFS struct {
	ctx context.Context
	v   View
}

// Open implements fs.FS.
func (f *viewFS) Open(name string) (fs.File, error) {
	info, err := f.find("open", name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return &viewFolder{fs: f, name: name, info: info}, nil
	}
	return &viewFile{fs: f, name: name, info: info}, nil
}

// Stat implements fs.StatFS.
func (f *viewFS) Stat(name string) (fs.FileInfo, error) { return f.find("stat", name) }

// ReadDir implements fs.ReadDirFS. Links in the folder are listed as links.
func (f *viewFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrInvalid}
	}
	found, err := f.v.List(f.ctx, name)
	if err != nil {
		return nil, fault("readdir", name, err)
	}
	out := make([]fs.DirEntry, len(found))
	for i, file := range found {
		out[i] = fs.FileInfoToDirEntry(viewInfo{string(file.Name), file})
	}
	return out, nil
}

// ReadFile implements fs.ReadFileFS.
func (f *viewFS) ReadFile(name string) ([]byte, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrInvalid}
	}
	var b bytes.Buffer
	if _, err := f.read(name, 0, maxWhole+1, &b); err != nil {
		return nil, fault("read", name, err)
	}
	if b.Len() > maxWhole {
		return nil, fault("read", name, fmt.Errorf("%w: the file has more than %d bytes", sandbox.ErrTooBig, maxWhole))
	}
	return b.Bytes(), nil
}

func (f *viewFS) read(name string, offset, length int64, w io.Writer) (sandbox.File, error) {
	return f.v.ReadPart(f.ctx, sandbox.ReadParams{PathParams: sandbox.InWorkspace(name), Offset: offset, Length: length}, w)
}

// find tells of a file, or of that to which a link leads.
func (f *viewFS) find(op, name string) (viewInfo, error) {
	if !fs.ValidPath(name) {
		return viewInfo{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	info := viewInfo{name: path.Base(name)}
	var err error
	if info.file, err = f.v.Stat(f.ctx, name); err != nil {
		return viewInfo{}, fault(op, name, err)
	}
	if info.file.Mode.Type() != fs.ModeSymlink {
		return info, nil
	}
	// The workspace follows links when it reads, not when it looks: what can be
	// read is a file, and what can be listed a folder.
	link := info.file
	if info.file, err = f.read(name, 0, 1, io.Discard); errors.Is(err, sandbox.ErrInvalid) {
		if _, err = f.v.List(f.ctx, name); err == nil {
			info.file = sandbox.File{Mode: fs.ModeDir | 0o755, Time: link.Time}
		}
	}
	if err != nil {
		return viewInfo{}, fault(op, name, err)
	}
	return info, nil
}

// fault is an error as io/fs has it. Those of the workspace stay below it.
func fault(op, name string, err error) error {
	if errors.Is(err, sandbox.ErrEscapes) {
		err = fmt.Errorf("%w: %w", fs.ErrPermission, err)
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// viewInfo implements fs.FileInfo.
type viewInfo struct {
	name string
	file sandbox.File
}

func (i viewInfo) Name() string       { return i.name }
func (i viewInfo) Size() int64        { return i.file.Size }
func (i viewInfo) Mode() fs.FileMode  { return i.file.Mode }
func (i viewInfo) ModTime() time.Time { return i.file.Time }
func (i viewInfo) IsDir() bool        { return i.file.IsDir() }
func (i viewInfo) Sys() any           { return nil }

// viewFile is an open file: a name and how far it was read.
type viewFile struct {
	fs     *viewFS
	name   string
	info   viewInfo
	offset int64
	ended  bool
	closed bool
}

func (f *viewFile) Stat() (fs.FileInfo, error) { return f.info, nil }

func (f *viewFile) Read(b []byte) (int, error) {
	switch {
	case f.closed:
		return 0, &fs.PathError{Op: "read", Path: f.name, Err: fs.ErrClosed}
	case f.ended:
		return 0, io.EOF
	case len(b) == 0:
		return 0, nil
	}
	var part into = b
	if _, err := f.fs.read(f.name, f.offset, int64(len(b)), &part); err != nil {
		return 0, fault("read", f.name, err)
	}
	n := len(b) - len(part)
	f.offset += int64(n)
	f.ended = n < len(b) // less than was asked for is the end; no need to ask again
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (f *viewFile) Close() error { f.closed = true; return nil }

// into is what is left of the caller's buffer.
type into []byte

func (i *into) Write(b []byte) (int, error) {
	n := copy(*i, b)
	*i = (*i)[n:]
	if n < len(b) {
		return n, io.ErrShortWrite
	}
	return n, nil
}

// viewFolder is an open folder. It is listed when it is first read.
type viewFolder struct {
	fs     *viewFS
	name   string
	info   viewInfo
	rest   []fs.DirEntry
	listed bool
}

func (d *viewFolder) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *viewFolder) Close() error               { return nil }

func (d *viewFolder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.name, Err: errors.New("it is a folder")}
}

// ReadDir implements fs.ReadDirFile.
func (d *viewFolder) ReadDir(n int) ([]fs.DirEntry, error) {
	if !d.listed {
		var err error
		if d.rest, err = d.fs.ReadDir(d.name); err != nil {
			return nil, err
		}
		d.listed = true
	}
	if n <= 0 {
		n = len(d.rest)
	} else if len(d.rest) == 0 {
		return nil, io.EOF
	}
	out := d.rest[:min(n, len(d.rest))]
	d.rest = d.rest[len(out):]
	return out, nil
}

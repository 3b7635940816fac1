package files

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
)

const (
	// maxNames bounds the memory for the names of the folders that are open.
	maxNames = 64 << 20
	// maxContent bounds what an archive unpacks to: holes cost nothing on disk,
	// so a file may claim to be larger than all disks.
	maxContent = 64 << 30
	// maxZip bounds the files in a zip, whose table of contents is kept in memory
	// until the end.
	maxZip = 500_000
	// maxNotes bounds the note on what was left out.
	maxNotes = 64 << 10
	noteName = "LEFT-OUT.txt"
)

// Archive packs a folder of the workspace into w.
func Archive(ctx context.Context, root *os.Root, p sandbox.ArchiveParams, w io.Writer) error {
	return At(root, sandbox.Workspace).Archive(ctx, p, w)
}

// packer writes an archive. An error is one of the writer below.
type packer interface {
	folder(name string, f sandbox.File) error
	link(name string, f sandbox.File, target []byte) error
	// file packs f.Size bytes, or fewer if the format allows and there are fewer.
	file(name string, f sandbox.File, c *content) error
	finish() error
}

// Archive packs a folder into w. Links are packed as links; sockets, pipes and devices are left
// out. Files that change during packing are packed as read, cut or padded to their initial
// length. If something else could not be read, a file in the archive says so.
func (t Tree) Archive(ctx context.Context, p sandbox.ArchiveParams, w io.Writer) error {
	var out packer
	switch p.Format {
	case sandbox.Zip:
		out = newZip(w)
	case sandbox.Tar:
		out = &tarPacker{tar.NewWriter(w)}
	default:
		return invalid("pack", p.Path, fmt.Sprintf("there is no format %q; use zip or tar", p.Format))
	}
	rel, err := t.resolve(p.Path, true)
	if err != nil {
		return err
	}
	d, err := t.folder(rel)
	if err != nil {
		if info, e := t.root.Lstat(rel); e == nil && !info.IsDir() {
			return invalid("pack", p.Path, "it is not a folder")
		}
		return fail("pack", p.Path, err)
	}
	defer d.close()
	job := &packing{ctx: ctx, out: out, names: maxNames, content: maxContent, buf: make([]byte, 64<<10)}
	if err := job.folder(d, "", 0); err != nil {
		return fail("pack", p.Path, err)
	}
	if err := job.note(d); err != nil {
		return fail("pack", p.Path, err)
	}
	return fail("pack", p.Path, out.finish())
}

// packing is one archive being made.
type packing struct {
	ctx     context.Context
	out     packer
	names   int   // bytes of names that may still be held
	content int64 // bytes of files that may still come
	notes   bytes.Buffer
	buf     []byte
}

func (j *packing) folder(d *folder, prefix string, depth int) error {
	names, err := d.all(j.names)
	if err != nil {
		j.leave(prefix, err)
		return nil
	}
	held := 0
	for _, n := range names {
		held += weight(n)
	}
	j.names -= held
	defer func() { j.names += held }()
	for _, name := range names {
		if err := j.ctx.Err(); err != nil {
			return err
		}
		if err := j.entry(d, name, prefix+name, depth); err != nil {
			return err
		}
	}
	return nil
}

func (j *packing) entry(d *folder, name, full string, depth int) error {
	f, err := d.entry(name)
	if err != nil {
		j.leave(full, err)
		return nil
	}
	switch f.Mode.Type() {
	case fs.ModeSymlink:
		return j.out.link(full, f, f.Link)
	case fs.ModeDir:
		if err := j.out.folder(full, f); err != nil {
			return err
		}
		if depth >= maxDepth || len(full) > maxPath {
			j.leave(full, fmt.Errorf("%w: folders are nested too deep", rpc.ErrTooBig))
			return nil
		}
		sub, err := d.folder(name)
		if err != nil {
			j.leave(full, err)
			return nil
		}
		defer sub.close()
		return j.folder(sub, full+"/", depth+1)
	case 0:
		return j.file(d, name, full)
	}
	return nil
}

func (j *packing) file(d *folder, name, full string) error {
	src, st, err := d.file(name)
	if err != nil {
		if !errors.Is(err, errIrregular) {
			j.leave(full, err)
		}
		return nil
	}
	defer src.Close()
	f := describe(name, &st)
	if j.content -= f.Size; j.content < 0 {
		return fmt.Errorf("%w: the files have more than %d bytes; pack a part of them", rpc.ErrTooBig, int64(maxContent))
	}
	c := &content{ctx: j.ctx, src: src, left: f.Size, buf: j.buf}
	if err := j.out.file(full, f, c); err != nil {
		return err
	}
	if c.short != nil {
		j.leave(full, c.short)
	}
	return nil
}

// leave remembers what the archive lacks. What went away is not missed.
func (j *packing) leave(full string, err error) {
	if !errors.Is(err, fs.ErrNotExist) && j.notes.Len() < maxNotes {
		fmt.Fprintf(&j.notes, "%q: %v\n", full, err)
	}
}

// note packs what leave remembered, under a name that is free.
func (j *packing) note(top *folder) error {
	if j.notes.Len() == 0 {
		return nil
	}
	name := noteName
	for {
		if _, err := top.lstat(name); err != nil {
			break
		}
		name = "_" + name
	}
	text := append([]byte("These files could not be packed, or not as a whole:\n"), j.notes.Bytes()...)
	f := sandbox.File{Name: []byte(name), Size: int64(len(text)), Mode: 0o644, Time: time.Now()}
	return j.out.file(name, f, &content{ctx: j.ctx, src: bytes.NewReader(text), left: f.Size, buf: j.buf})
}

// content is a file while it is packed. It gives left bytes, or all there are,
// and remembers what went wrong instead of failing, so that the archive stays
// whole.
type content struct {
	ctx   context.Context
	src   io.Reader
	left  int64
	fill  bool // with zeros, if there are fewer
	buf   []byte
	short error
}

func (c *content) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	if c.left == 0 {
		return 0, io.EOF
	}
	b = b[:min(int64(len(b)), c.left)]
	if c.short == nil {
		n, err := c.src.Read(b)
		if n > 0 {
			c.left -= int64(n)
			return n, nil
		}
		if err == nil {
			return 0, nil
		}
		if c.short = err; errors.Is(err, io.EOF) {
			c.short = errors.New("it became shorter while it was packed")
		}
	}
	if !c.fill {
		return 0, io.EOF
	}
	clear(b)
	c.left -= int64(len(b))
	return len(b), nil
}

// copyTo copies everything. Only the writer and the context can fail it.
func (c *content) copyTo(w io.Writer) error {
	_, err := io.CopyBuffer(writeOnly{w}, c, c.buf)
	return err
}

// tarPacker writes the format of GNU tar, in which names are any bytes.
type tarPacker struct{ w *tar.Writer }

func (t *tarPacker) header(name string, kind byte, f sandbox.File) *tar.Header {
	return &tar.Header{Name: name, Typeflag: kind, Mode: int64(f.Mode.Perm()), ModTime: f.Time.Truncate(time.Second), Format: tar.FormatGNU}
}

func (t *tarPacker) folder(name string, f sandbox.File) error {
	return t.w.WriteHeader(t.header(name+"/", tar.TypeDir, f))
}

func (t *tarPacker) link(name string, f sandbox.File, target []byte) error {
	h := t.header(name, tar.TypeSymlink, f)
	h.Linkname = string(target)
	return t.w.WriteHeader(h)
}

// file fills up what is missing: the length was promised in the header.
func (t *tarPacker) file(name string, f sandbox.File, c *content) error {
	h := t.header(name, tar.TypeReg, f)
	h.Size, c.fill = f.Size, true
	if err := t.w.WriteHeader(h); err != nil {
		return err
	}
	return c.copyTo(t.w)
}

func (t *tarPacker) finish() error { return t.w.Close() }

// zipPacker writes a zip.
type zipPacker struct {
	w *zip.Writer
	n int
}

func newZip(w io.Writer) *zipPacker {
	z := &zipPacker{w: zip.NewWriter(w)}
	var one *flate.Writer // files are packed one after the other, and a new one costs a megabyte
	z.w.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		if one == nil {
			var err error
			one, err = flate.NewWriter(w, flate.BestSpeed)
			return one, err
		}
		one.Reset(w)
		return one, nil
	})
	return z
}

func (z *zipPacker) create(name string, f sandbox.File, mode fs.FileMode) (io.Writer, error) {
	if z.n++; z.n > maxZip {
		return nil, fmt.Errorf("%w: a zip can hold %d files here; use tar", rpc.ErrTooBig, maxZip)
	}
	h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: f.Time}
	h.SetMode(mode | f.Mode.Perm())
	return z.w.CreateHeader(h)
}

func (z *zipPacker) folder(name string, f sandbox.File) error {
	_, err := z.create(name+"/", f, fs.ModeDir)
	return err
}

func (z *zipPacker) link(name string, f sandbox.File, target []byte) error {
	w, err := z.create(name, f, fs.ModeSymlink)
	if err == nil {
		_, err = w.Write(target)
	}
	return err
}

func (z *zipPacker) file(name string, f sandbox.File, c *content) error {
	w, err := z.create(name, f, 0)
	if err != nil {
		return err
	}
	return c.copyTo(w)
}

func (z *zipPacker) finish() error { return z.w.Close() }

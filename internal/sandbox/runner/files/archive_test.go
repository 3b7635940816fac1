package files

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
)

// packed is an entry of an archive that was read back.
type packed struct {
	mode fs.FileMode
	text string // or where a link leads
}

func unpackTar(t *testing.T, r io.Reader) map[string]packed {
	t.Helper()
	out := map[string]packed{}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := out[h.Name]; ok {
			t.Errorf("%q is there twice", h.Name)
		}
		out[h.Name] = packed{h.FileInfo().Mode(), string(b) + h.Linkname}
	}
}

func unpackZip(t *testing.T, b []byte) map[string]packed {
	t.Helper()
	out := map[string]packed{}
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatalf("%q: %v", f.Name, err)
		}
		r.Close()
		if _, ok := out[f.Name]; ok {
			t.Errorf("%q is there twice", f.Name)
		}
		out[f.Name] = packed{f.Mode(), string(text)}
	}
	return out
}

// formats runs a test with both.
func formats(t *testing.T, f func(t *testing.T, p *place, pack func(path string, hook func([]byte)) (map[string]packed, error))) {
	for _, format := range []sandbox.Format{sandbox.Zip, sandbox.Tar} {
		t.Run(string(format), func(t *testing.T) {
			p := newPlace(t)
			f(t, p, func(path string, hook func([]byte)) (map[string]packed, error) {
				var b bytes.Buffer
				var w io.Writer = &b
				if hook != nil {
					w = writeFunc(func(part []byte) (int, error) { hook(part); return b.Write(part) })
				}
				err := Archive(t.Context(), p.root, sandbox.ArchiveParams{PathParams: sandbox.PathParams{Path: []byte(path)}, Format: format}, w)
				if err != nil {
					return nil, err
				}
				if format == sandbox.Zip {
					return unpackZip(t, b.Bytes()), nil
				}
				return unpackTar(t, &b), nil
			})
		})
	}
}

type writeFunc func([]byte) (int, error)

func (f writeFunc) Write(b []byte) (int, error) { return f(b) }

func TestArchive(t *testing.T) {
	formats(t, func(t *testing.T, p *place, pack func(string, func([]byte)) (map[string]packed, error)) {
		furnish(p)
		p.ok(os.Chmod(filepath.Join(p.dir, "file"), 0o755|fs.ModeSetuid))
		got, err := pack("", nil)
		p.ok(err)
		want := map[string]packed{
			"file": {0o755, "in"}, "dir/": {fs.ModeDir | 0o755, ""}, "dir/deep/": {fs.ModeDir | 0o755, ""}, "dir/deep/file": {0o644, "deep"},
			"empty/": {fs.ModeDir | 0o755, ""},
		}
		for name, target := range map[string]string{
			"relative": "dir", "absolute": "/workspace/dir/deep", "home": "/workspace", "dir/dots": "deep/../deep/file", "up": "../secret",
			"dir-up": "dir/../../secret", "host": filepath.Join(p.outer, "secret"), "sly": "/workspace/../secret", "sibling": "/workspace-other/x",
			"slash": "/", "folder-out": "../other", "dangling": "nothing", "loop": "loop2", "loop2": "loop",
		} {
			want[name] = packed{fs.ModeSymlink | 0o777, target}
		}
		if !maps.Equal(got, want) {
			t.Errorf("got %v\nwant %v", got, want)
		}
		if got, err := pack("absolute", nil); err != nil || got["file"].text != "deep" || len(got) != 1 {
			t.Errorf("got %v, %v", got, err)
		}
		for path, want := range map[string]error{"file": rpc.ErrInvalid, "pipe": rpc.ErrInvalid, "nothing": fs.ErrNotExist, "folder-out": rpc.ErrEscapes, "..": rpc.ErrEscapes} {
			if _, err := pack(path, nil); !errors.Is(err, want) {
				t.Errorf("%s: got %v, want %v", path, err, want)
			}
		}
	})
}

func TestArchiveAnyName(t *testing.T) {
	formats(t, func(t *testing.T, p *place, pack func(string, func([]byte)) (map[string]packed, error)) {
		var want []string
		for _, name := range append(everyName(), strings.Repeat("l", 255), "\xff/"+strings.Repeat("\xfe", 255), "..x/..\\..\\y") {
			p.put(name, name)
			want = append(want, name)
		}
		p.link(strings.Repeat("\xfd", 300), "link")
		got, err := pack("", nil)
		p.ok(err)
		for _, name := range want {
			if got[name].text != name {
				t.Errorf("%q has %q", name, got[name].text)
			}
		}
		if got["link"].text != strings.Repeat("\xfd", 300) {
			t.Errorf("the link leads to %q", got["link"].text)
		}
		if len(got) != len(want)+3 { // with two folders and the link
			t.Errorf("got %q", slices.Sorted(maps.Keys(got)))
		}
	})
}

// Whatever happens to a file while it is packed, the archive can be read.
func TestArchiveOfChangingFiles(t *testing.T) {
	text := strings.Repeat("noise that hardly packs 0123456789 ", 40<<10) // more than all buffers
	for what, c := range map[string]struct {
		do   func(p *place, full string)
		note bool
	}{
		"shrinks":  {func(p *place, full string) { p.ok(os.Truncate(full, 1000)) }, true},
		"empties":  {func(p *place, full string) { p.ok(os.Truncate(full, 0)) }, true},
		"grows":    {func(p *place, full string) { p.ok(os.Truncate(full, int64(2*len(text)))) }, false},
		"vanishes": {func(p *place, full string) { p.ok(os.Remove(full)) }, false},
	} {
		t.Run(what, func(t *testing.T) {
			formats(t, func(t *testing.T, p *place, pack func(string, func([]byte)) (map[string]packed, error)) {
				p.put("a", text)
				p.put("b", text)
				p.put("c", text)
				p.put(noteName, "mine")
				once := false
				got, err := pack("", func(part []byte) {
					if !once && len(part) >= 4096 { // this is of a
						once = true
						c.do(p, filepath.Join(p.dir, "a"))
						c.do(p, filepath.Join(p.dir, "b"))
					}
				})
				p.ok(err)
				if got["c"].text != text {
					t.Errorf("another file has %d bytes", len(got["c"].text))
				}
				if a := got["a"].text; len(a) > len(text) || len(a) == 0 {
					t.Errorf("the file has %d bytes", len(a))
				}
				if _, ok := got["b"]; ok == (what == "vanishes") {
					t.Errorf("the file that was not begun: %v", ok)
				}
				if note := got["_"+noteName].text; c.note != strings.Contains(note, `"a": it became shorter`) || got[noteName].text != "mine" {
					t.Errorf("the note is %q", note)
				}
			})
		})
	}
}

// An unreadable file must not keep the others from being packed. Root
// may read everything, but not a folder that is too full to be held.
func TestArchiveSaysWhatItLacks(t *testing.T) {
	formats(t, func(t *testing.T, p *place, pack func(string, func([]byte)) (map[string]packed, error)) {
		var b bytes.Buffer
		p.put("full/a", "a")
		p.put("full/b", "b")
		p.put("ok", "ok")
		d, err := At(p.root, "/workspace").folder(".")
		p.ok(err)
		defer d.close()
		job := &packing{ctx: t.Context(), out: &tarPacker{tar.NewWriter(&b)}, names: weight("full") + weight("ok") + weight("a"), content: maxContent, buf: make([]byte, 1024)}
		p.ok(job.folder(d, "", 0))
		p.ok(job.note(d))
		p.ok(job.out.finish())
		got := unpackTar(t, &b)
		if !strings.Contains(got[noteName].text, `"full/"`) || got["ok"].text != "ok" || len(got) != 3 {
			t.Errorf("got %v", got)
		}
		if os.Getuid() == 0 {
			return
		}
		p.ok(os.Chmod(filepath.Join(p.dir, "ok"), 0))
		if got, err := pack("", nil); err != nil || !strings.Contains(got[noteName].text, `"ok"`) {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

func TestArchiveLimits(t *testing.T) {
	formats(t, func(t *testing.T, p *place, pack func(string, func([]byte)) (map[string]packed, error)) {
		p.put("bomb", "")
		p.ok(os.Truncate(filepath.Join(p.dir, "bomb"), maxContent+1))
		if _, err := pack("", nil); !errors.Is(err, rpc.ErrTooBig) {
			t.Errorf("got %v", err)
		}
	})
	z := newZip(io.Discard)
	z.n = maxZip
	if err := z.folder("x", sandbox.File{}); !errors.Is(err, rpc.ErrTooBig) {
		t.Errorf("got %v", err)
	}
	p := newPlace(t)
	if err := Archive(t.Context(), p.root, sandbox.ArchiveParams{Format: "rar"}, io.Discard); !errors.Is(err, rpc.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

func TestArchiveEndsWithItsContext(t *testing.T) {
	p := newPlace(t)
	p.put("huge", "")
	p.ok(os.Truncate(filepath.Join(p.dir, "huge"), 32<<30))
	for _, format := range []sandbox.Format{sandbox.Zip, sandbox.Tar} {
		ctx, cancel := context.WithCancel(t.Context())
		w := writeFunc(func(b []byte) (int, error) { cancel(); return len(b), nil })
		if err := Archive(ctx, p.root, sandbox.ArchiveParams{Format: format}, w); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", format, err)
		}
		full := errors.New("no more")
		w = func([]byte) (int, error) { return 0, full }
		if err := Archive(t.Context(), p.root, sandbox.ArchiveParams{Format: format}, w); !errors.Is(err, full) {
			t.Errorf("%s: got %v", format, err)
		}
	}
}

func TestArchiveStreams(t *testing.T) {
	p := newPlace(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		p.put(name, "")
		p.ok(os.Truncate(filepath.Join(p.dir, name), 16<<20))
	}
	for _, format := range []sandbox.Format{sandbox.Zip, sandbox.Tar} {
		constant(t, func() {
			p.ok(Archive(t.Context(), p.root, sandbox.ArchiveParams{Format: format}, io.Discard))
		})
	}
}

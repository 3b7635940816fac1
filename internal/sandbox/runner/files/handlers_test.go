package files

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/sandbox"
)

// Through the client, with the workspace as border and without.
func TestHandlers(t *testing.T) {
	p := newPlace(t)
	furnish(p)
	s, _ := p.connect()
	ctx := t.Context()
	in := func(path string) sandbox.PathParams { return sandbox.InWorkspace(path) }
	anywhere := func(path string) sandbox.PathParams { return sandbox.PathParams{Path: []byte(path)} }

	var b bytes.Buffer
	if f, err := s.Read(ctx, sandbox.ReadParams{PathParams: in("/workspace/absolute/file")}, &b); err != nil || b.String() != "deep" || f.Size != 4 {
		t.Errorf("got %q, %v", b.String(), err)
	}
	if _, err := s.Read(ctx, sandbox.ReadParams{PathParams: in("up")}, &b); !errors.Is(err, sandbox.ErrEscapes) {
		t.Errorf("got %v", err)
	}
	for _, path := range []string{"/secret", "up", "../secret", "sly", "slash/secret", "/../../secret", "folder-out/../secret"} {
		b.Reset()
		if _, err := s.Read(ctx, sandbox.ReadParams{PathParams: anywhere(path)}, &b); err != nil || b.String() != secret {
			t.Errorf("%s: got %q, %v", path, b.String(), err)
		}
	}
	if _, err := s.Read(ctx, sandbox.ReadParams{PathParams: anywhere("host")}, &b); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a link is followed on the machine's own tree: %v", err)
	}
	if f, err := s.Write(ctx, sandbox.WriteParams{PathParams: in("w/\xff")}, strings.NewReader("hi")); err != nil || f.Size != 2 || p.get("w/\xff") != "hi" {
		t.Errorf("got %v, %v", f, err)
	}
	if _, err := s.Write(ctx, sandbox.WriteParams{PathParams: in("w/big"), Limit: 1 << 20}, strings.NewReader(strings.Repeat("x", 8<<20))); !errors.Is(err, sandbox.ErrTooBig) {
		t.Errorf("got %v", err)
	}
	if _, err := s.Write(ctx, sandbox.WriteParams{PathParams: in("w/\xff"), New: true}, strings.NewReader("no")); err == nil || p.get("w/\xff") != "hi" {
		t.Error("it was replaced")
	}
	if err := s.Mkdir(ctx, in("m/n")); err != nil {
		t.Error(err)
	}
	if files, err := s.List(ctx, in("m")); err != nil || len(files) != 1 || !files[0].IsDir() {
		t.Errorf("got %v, %v", files, err)
	}
	if err := s.Remove(ctx, in("m")); err != nil {
		t.Error(err)
	}
	if _, err := s.Stat(ctx, in("m")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	for _, path := range []string{"/", "/workspace", "", ".."} {
		if err := s.Remove(ctx, anywhere(path)); !errors.Is(err, sandbox.ErrInvalid) {
			t.Errorf("%q: got %v", path, err)
		}
	}
	b.Reset()
	if err := s.Archive(ctx, sandbox.ArchiveParams{PathParams: in("dir"), Format: sandbox.Zip}, &b); err != nil || unpackZip(t, b.Bytes())["deep/file"].text != "deep" {
		t.Error(err)
	}
	want, err := Usage(ctx, p.root)
	if got, e := s.Usage(ctx); err != nil || e != nil || got != want {
		t.Errorf("got %d, %v; want %d, %v", got, e, want, err)
	}
	p.untouched()
}

// A caller that goes away in the middle of its data has not written a file.
func TestHalfAnUpload(t *testing.T) {
	p := newPlace(t)
	s, _ := p.connect()
	ctx, cancel := context.WithCancel(t.Context())
	parts := 0
	r := readFunc(func(b []byte) (int, error) {
		if parts++; parts == 2 {
			cancel()
		}
		return copy(b, "half"), nil
	})
	if _, err := s.Write(ctx, sandbox.WriteParams{PathParams: sandbox.InWorkspace("f")}, r); err == nil {
		t.Error("half of it was taken for all")
	}
	p.disconnect()
	if _, err := os.Lstat(filepath.Join(p.dir, "f")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if all := p.everything(); all != "" {
		t.Errorf("left behind: %s", all)
	}
}

package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
)

func (p *place) write(name, text string, change func(*sandbox.WriteParams)) (sandbox.File, error) {
	w := sandbox.WriteParams{PathParams: sandbox.InWorkspace(name)}
	if change != nil {
		change(&w)
	}
	return Write(p.Context(), p.root, w, strings.NewReader(text))
}

// everything lists all names in the workspace.
func (p *place) everything() string {
	p.Helper()
	var all []string
	p.ok(filepath.WalkDir(p.dir, func(at string, _ fs.DirEntry, err error) error {
		all = append(all, strings.TrimPrefix(at, p.dir))
		return err
	}))
	return strings.Join(all, "\n")
}

func TestWrite(t *testing.T) {
	p := newPlace(t)
	f, err := p.write("new/folders/\xfffile", "hello", nil)
	if err != nil || f.Size != 5 || f.Mode != 0o644 || string(f.Name) != "\xfffile" {
		t.Errorf("got %+v, %v", f, err)
	}
	if got := p.get("new/folders/\xfffile"); got != "hello" {
		t.Errorf("got %q", got)
	}
	if f, err := p.write("new/folders/\xfffile", "", nil); err != nil || f.Size != 0 || p.get("new/folders/\xfffile") != "" {
		t.Errorf("got %+v, %v", f, err)
	}
}

func TestWriteKeepsWhatTheFileHas(t *testing.T) {
	p := newPlace(t)
	p.put("f", "old")
	full := filepath.Join(p.dir, "f")
	p.ok(os.Chmod(full, 0o751|fs.ModeSetuid))
	if os.Getuid() == 0 {
		p.ok(os.Chown(full, 1234, 5678))
		p.ok(os.Chmod(full, 0o751|fs.ModeSetuid))
	}
	if _, err := p.write("f", "new", nil); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	p.ok(unix.Stat(full, &st))
	if st.Mode&0o7777 != 0o751 {
		t.Errorf("the mode is %o", st.Mode)
	}
	if os.Getuid() == 0 && (st.Uid != 1234 || st.Gid != 5678) {
		t.Errorf("it belongs to %d:%d", st.Uid, st.Gid)
	}
	if f, err := p.write("f", "new", func(w *sandbox.WriteParams) { w.Mode = 0o600 }); err != nil || f.Mode != 0o600 {
		t.Errorf("got %v, %v", f.Mode, err)
	}
	if os.Getuid() == 0 { // new files get the owner of the folder
		p.ok(os.Chown(p.dir, 1234, 5678))
		_, err := p.write("x/y/z", "", nil)
		p.ok(err)
		for _, name := range []string{"x", "x/y", "x/y/z"} {
			p.ok(unix.Stat(filepath.Join(p.dir, name), &st))
			if st.Uid != 1234 || st.Gid != 5678 {
				t.Errorf("%s belongs to %d:%d", name, st.Uid, st.Gid)
			}
		}
	}
}

func TestWriteThroughLinks(t *testing.T) {
	p := newPlace(t)
	furnish(p)
	for _, name := range []string{"up", "host", "sly", "slash/x", "folder-out/file", "folder-out/new", "../x", "/etc/x", "dir-up", filepath.Join(p.outer, "x")} {
		if _, err := p.write(name, "bad", nil); !errors.Is(err, rpc.ErrEscapes) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for name, real := range map[string]string{"absolute/file": "dir/deep/file", "dir/dots": "dir/deep/file", "dangling": "nothing"} {
		if _, err := p.write(name, name, nil); err != nil || p.get(real) != name {
			t.Errorf("%s: %v", name, err)
		}
	}
	if f, err := Stat(p.root, []byte("dangling")); err != nil || f.Mode.Type() != fs.ModeSymlink {
		t.Errorf("the link was replaced: %v, %v", f, err)
	}
	for _, name := range []string{"pipe", "dir", "", "loop"} {
		if _, err := p.write(name, "bad", nil); !errors.Is(err, rpc.ErrInvalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := p.write("file/x", "bad", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	p.untouched()
}

func TestWriteDoesNotReachOtherNames(t *testing.T) {
	p := newPlace(t)
	p.ok(os.Link(filepath.Join(p.outer, "secret"), filepath.Join(p.dir, "hard")))
	if _, err := p.write("hard", "bad", nil); err != nil || p.get("hard") != "bad" {
		t.Error(err)
	}
	p.untouched()
}

func TestWriteNew(t *testing.T) {
	p := newPlace(t)
	furnish(p)
	exclusive := func(w *sandbox.WriteParams) { w.New = true }
	for _, name := range []string{"file", "dir", "up", "dangling", "pipe", "absolute/file"} {
		if _, err := p.write(name, "bad", exclusive); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	var wg sync.WaitGroup
	results := make(chan error, 20)
	for range cap(results) {
		wg.Go(func() { _, err := p.write("a/b/once", "x", exclusive); results <- err })
	}
	wg.Wait()
	close(results)
	done := 0
	for err := range results {
		switch {
		case err == nil:
			done++
		case !errors.Is(err, fs.ErrExist):
			t.Error(err)
		}
	}
	if done != 1 {
		t.Errorf("it was new %d times", done)
	}
	if all := p.everything(); strings.Contains(all, tmpPrefix) {
		t.Errorf("left behind: %s", all)
	}
}

// A file is replaced if it is what the caller takes it for, and else it stays.
func TestWriteMatch(t *testing.T) {
	p := newPlace(t)
	p.put("f", "old")
	p.ok(os.Symlink("f", filepath.Join(p.dir, "link")))
	matching := func(content string) func(*sandbox.WriteParams) {
		return func(w *sandbox.WriteParams) { w.Match = sandbox.Sum([]byte(content)) }
	}
	before := p.everything()
	for name, was := range map[string]string{"f": "other", "link": "", "missing": "", "no/such/folder/f": ""} {
		if _, err := p.write(name, "new", matching(was)); !errors.Is(err, rpc.ErrChanged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := p.get("f"); got != "old" || p.everything() != before {
		t.Errorf("%q, and %s", got, p.everything())
	}
	for i, name := range []string{"f", "link"} {
		was, is := []string{"old", "newer"}[i], []string{"newer", "newest"}[i]
		if _, err := p.write(name, is, matching(was)); err != nil || p.get("f") != is {
			t.Errorf("%s: %q %v", name, p.get("f"), err)
		}
	}
}

func TestWriteFailsWithoutTrace(t *testing.T) {
	p := newPlace(t)
	p.put("f", "old")
	before := p.everything()
	limit := func(w *sandbox.WriteParams) { w.Limit = 4 }
	for _, name := range []string{"f", "new", "new/folder/f"} {
		if _, err := p.write(name, "12345", limit); !errors.Is(err, rpc.ErrTooBig) {
			t.Errorf("got %v", err)
		}
		broken := iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("12345")))
		if _, err := Write(t.Context(), p.root, sandbox.WriteParams{PathParams: sandbox.PathParams{Path: []byte(name)}}, broken); !errors.Is(err, iotest.ErrTimeout) {
			t.Errorf("got %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		stopped := io.MultiReader(strings.NewReader("12"), readFunc(func([]byte) (int, error) { cancel(); return 0, nil }))
		if _, err := Write(ctx, p.root, sandbox.WriteParams{PathParams: sandbox.PathParams{Path: []byte(name)}}, stopped); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	if after := p.everything(); after != before || p.get("f") != "old" {
		t.Errorf("left behind: %s", after)
	}
	if _, err := p.write("f", "1234", limit); err != nil {
		t.Error(err)
	}
	if _, err := p.write("f", "1234", func(w *sandbox.WriteParams) { w.Limit = -1 }); !errors.Is(err, rpc.ErrInvalid) {
		t.Error(err)
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(b []byte) (int, error) { return f(b) }

// A half-written file is never visible.
func TestWriteInOneGo(t *testing.T) {
	p := newPlace(t)
	p.put("f", strings.Repeat("a", 100<<10))
	seen := ""
	r := io.MultiReader(strings.NewReader(strings.Repeat("b", 70<<10)),
		readFunc(func([]byte) (int, error) { seen = p.get("f"); return 0, io.EOF }))
	_, err := Write(t.Context(), p.root, sandbox.WriteParams{PathParams: sandbox.PathParams{Path: []byte("f")}}, r)
	if err != nil || strings.Trim(seen, "a") != "" || len(seen) != 100<<10 {
		t.Errorf("saw %d bytes, %v", len(seen), err)
	}
	if got := p.get("f"); strings.Trim(got, "b") != "" || len(got) != 70<<10 {
		t.Errorf("%d bytes", len(got))
	}
}

func TestMkdir(t *testing.T) {
	p := newPlace(t)
	furnish(p)
	for name, want := range map[string]error{
		"a/b/c": nil, "dir": nil, "": nil, "/workspace/x": nil, "absolute/new": nil, "dangling": nil,
		"file": fs.ErrExist, "pipe": fs.ErrExist, "file/x": fs.ErrNotExist, "up": rpc.ErrEscapes, "folder-out/x": rpc.ErrEscapes, "../x": rpc.ErrEscapes,
	} {
		err := Mkdir(p.root, []byte(name))
		if !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
	for _, name := range []string{"a/b/c", "x", "dir/deep/new", "nothing"} {
		if info, err := os.Lstat(filepath.Join(p.dir, name)); err != nil || !info.IsDir() {
			t.Errorf("%s: %v", name, err)
		}
	}
	p.untouched()
}

func TestRemove(t *testing.T) {
	p := newPlace(t)
	furnish(p)
	for _, name := range []string{"up", "folder-out", "pipe", "dir", "/workspace/file", "loop"} {
		if err := Remove(p.root, []byte(name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := Remove(p.root, []byte(name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for name, want := range map[string]error{"": rpc.ErrInvalid, "/workspace": rpc.ErrInvalid, "home": nil, "..": rpc.ErrEscapes, "slash/etc": rpc.ErrEscapes} {
		if err := Remove(p.root, []byte(name)); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
	p.untouched()
}

// The runner's folder in a container is not changed for those who ask, by whatever path.
func TestFolderOfTheRunner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := errors.Join(os.MkdirAll(dir+"/.deckhand/run", 0o755), os.Mkdir(dir+"/workspace", 0o755), os.Symlink("/.deckhand", dir+"/workspace/link")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	all := At(root, "/")
	for _, p := range []string{"/.deckhand/x", "/.deckhand/run/x", "/workspace/link/x", "/workspace/../.deckhand/x", "/.deckhand"} {
		for _, tree := range []Tree{all, all.Exact()} {
			if _, err := tree.Write(t.Context(), sandbox.WriteParams{PathParams: sandbox.PathParams{Path: []byte(p)}}, strings.NewReader("x")); err == nil {
				t.Errorf("%s was written", p)
			}
			if err := tree.Mkdir([]byte(p + "/y")); err == nil {
				t.Errorf("%s/y was made", p)
			}
		}
		if err := all.Remove([]byte(p)); err == nil {
			t.Errorf("%s was removed", p)
		}
	}
	if _, err := all.Write(t.Context(), sandbox.WriteParams{PathParams: sandbox.PathParams{Path: []byte("/workspace/.deckhand/x")}}, strings.NewReader("x")); err == nil {
		return
	}
	t.Error("a folder of the same name in the workspace cannot be written")
}

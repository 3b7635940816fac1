package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
)

func hello(context.Context, *rpc.Call) (any, error) { return sandbox.Info{Boot: "b"}, nil }

func read(root *os.Root, name string) (string, error) {
	var b bytes.Buffer
	_, err := Read(root, sandbox.ReadParams{PathParams: sandbox.InWorkspace(name)}, &b)
	return b.String(), err
}

// furnish makes one of each kind of thing that can lie in a workspace.
func furnish(p *place) {
	p.put("file", "in")
	p.put("dir/deep/file", "deep")
	p.link("dir", "relative")
	p.link("/workspace/dir/deep", "absolute")
	p.link("/workspace", "home")
	p.link("deep/../deep/file", "dir/dots")
	p.link("../secret", "up")
	p.link("dir/../../secret", "dir-up")
	p.link(filepath.Join(p.outer, "secret"), "host")
	p.link("/workspace/../secret", "sly")
	p.link("/workspace-other/x", "sibling")
	p.link("/", "slash")
	p.link("../other", "folder-out")
	p.link("nothing", "dangling")
	p.link("loop2", "loop")
	p.link("loop", "loop2")
	p.ok(syscall.Mkfifo(filepath.Join(p.dir, "pipe"), 0o666))
	p.ok(os.Mkdir(filepath.Join(p.dir, "empty"), 0o755))
}

func TestPaths(t *testing.T) {
	p := newPlace(t)
	furnish(p)
	for path, want := range map[string]any{
		"file": "in", "./file": "in", "//workspace//file": "in", "/workspace/file": "in", "/workspace/./dir/../file": "in",
		"dir/deep/file": "deep", "dir/../file": "in", "relative/deep/file": "deep", "absolute/file": "deep", "home/file": "in",
		"home/home/home/dir/deep/file": "deep", "dir/dots": "deep", "relative/../file": "in", "file/": "in",
		"": rpc.ErrInvalid, ".": rpc.ErrInvalid, "/workspace": rpc.ErrInvalid, "dir": rpc.ErrInvalid, "pipe": rpc.ErrInvalid,
		"..": rpc.ErrEscapes, "../secret": rpc.ErrEscapes, "dir/../../secret": rpc.ErrEscapes, "/": rpc.ErrEscapes,
		"/secret": rpc.ErrEscapes, "/workspace/../secret": rpc.ErrEscapes, "/workspaces": rpc.ErrEscapes, "/workspace2/file": rpc.ErrEscapes,
		"/etc/passwd": rpc.ErrEscapes, p.outer + "/secret": rpc.ErrEscapes, "/../workspace/file": rpc.ErrEscapes,
		"up": rpc.ErrEscapes, "dir-up": rpc.ErrEscapes, "host": rpc.ErrEscapes, "sly": rpc.ErrEscapes, "sibling": rpc.ErrEscapes,
		"slash/etc/passwd": rpc.ErrEscapes, "folder-out/file": rpc.ErrEscapes, "absolute/../../../secret": rpc.ErrEscapes,
		"fi\x00le": rpc.ErrInvalid, "loop": rpc.ErrInvalid, "loop/x": rpc.ErrInvalid, strings.Repeat("a/", 3000): rpc.ErrInvalid,
		strings.Repeat("a", 300): rpc.ErrInvalid, strings.Repeat("dir/../", 550) + "file": rpc.ErrInvalid,
		"nothing": fs.ErrNotExist, "dangling": fs.ErrNotExist, "nothing/x": fs.ErrNotExist, "nothing/../file": fs.ErrNotExist, "file/x": fs.ErrNotExist,
	} {
		got, err := read(p.root, path)
		switch want := want.(type) {
		case string:
			if err != nil || got != want {
				t.Errorf("%.40q: got %q, %v; want %q", path, got, err, want)
			}
		case error:
			if !errors.Is(err, want) || got != "" {
				t.Errorf("%.40q: got %q, %v; want %v", path, got, err, want)
			}
			if err != nil && !strings.Contains(path, p.outer) && strings.Contains(err.Error(), p.outer) {
				t.Errorf("%.40q: the error tells where the workspace lies: %v", path, err)
			}
		}
	}
}

// A path that leads somewhere inside must not be the way to something outside,
// whatever it is made of.
func FuzzPath(f *testing.F) {
	for _, s := range []string{"file", "/workspace/home/up", "dir/../..", "\xff\x00", "slash//etc", "loop", "pipe", "home/../dir", "a/./b//../c"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, path []byte) {
		p := newPlace(t)
		furnish(p)
		got, err := read(p.root, string(path))
		if strings.Contains(got, secret) {
			t.Fatalf("%q leads out", path)
		}
		if err == nil && got != "in" && got != "deep" {
			t.Fatalf("%q is %q", path, got)
		}
		if _, err := Stat(p.root, path); err != nil && strings.Contains(err.Error(), p.outer) && !bytes.Contains(path, []byte(p.outer)) {
			t.Fatal(err)
		}
		_, _ = List(p.root, path)
		_, _ = Write(t.Context(), p.root, sandbox.WriteParams{PathParams: sandbox.PathParams{Path: path}}, strings.NewReader("new"))
		_ = Mkdir(p.root, path)
		_ = Remove(p.root, path)
		p.untouched()
	})
}

func TestStatDoesNotFollow(t *testing.T) {
	p := newPlace(t)
	furnish(p)
	for path, want := range map[string]fs.FileMode{
		"file": 0, "dir": fs.ModeDir, "": fs.ModeDir, "/workspace": fs.ModeDir, "up": fs.ModeSymlink, "loop": fs.ModeSymlink,
		"pipe": fs.ModeNamedPipe, "home/up": fs.ModeSymlink,
	} {
		f, err := Stat(p.root, []byte(path))
		if err != nil || f.Mode.Type() != want {
			t.Errorf("%q: got %v, %v; want %v", path, f.Mode, err, want)
		}
	}
	f, err := Stat(p.root, []byte("up"))
	if err != nil || string(f.Link) != "../secret" || string(f.Name) != "up" {
		t.Errorf("got %+v, %v", f, err)
	}
	f, err = Stat(p.root, []byte("/workspace/dir/deep/file"))
	if err != nil || f.Size != 4 || f.Mode != 0o644 || string(f.Name) != "file" || f.Time.IsZero() {
		t.Errorf("got %+v, %v", f, err)
	}
}

// everyName has each byte that a name can have.
func everyName() []string {
	var all []string
	for b := 1; b < 256; b++ {
		if b != '/' {
			all = append(all, "n"+string([]byte{byte(b)}), string([]byte{byte(b)})+"n")
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestListAnyName(t *testing.T) {
	p := newPlace(t)
	for _, name := range everyName() {
		p.put(name, name)
	}
	files, err := List(p.root, nil)
	p.ok(err)
	var got []string
	for _, f := range files {
		got = append(got, string(f.Name))
		if text, err := read(p.root, string(f.Name)); err != nil || text != string(f.Name) {
			t.Errorf("%q: read %q, %v", f.Name, text, err)
		}
	}
	if !slices.Equal(got, everyName()) {
		t.Errorf("got %q", got)
	}
}

func TestList(t *testing.T) {
	p := newPlace(t)
	furnish(p)
	for path, want := range map[string]error{"file": rpc.ErrInvalid, "pipe": rpc.ErrInvalid, "nothing": fs.ErrNotExist, "up": rpc.ErrEscapes, "folder-out": rpc.ErrEscapes, "slash": rpc.ErrEscapes} {
		if _, err := List(p.root, []byte(path)); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", path, err, want)
		}
	}
	files, err := List(p.root, []byte("absolute"))
	if err != nil || len(files) != 1 || string(files[0].Name) != "file" {
		t.Errorf("got %v, %v", files, err)
	}
	if files, err := List(p.root, []byte("empty")); err != nil || files == nil || len(files) != 0 {
		t.Errorf("an empty folder lists as %v, %v; want an empty list", files, err)
	}
}

func TestReadRange(t *testing.T) {
	p := newPlace(t)
	p.put("f", "0123456789")
	for _, c := range []struct {
		offset, length int64
		want           string
	}{{0, 0, "0123456789"}, {3, 0, "3456789"}, {3, 4, "3456"}, {8, 100, "89"}, {10, 0, ""}, {11, 5, ""}, {0, 1, "0"}, {math.MaxInt64, math.MaxInt64, ""}} {
		var b bytes.Buffer
		f, err := Read(p.root, sandbox.ReadParams{PathParams: sandbox.PathParams{Path: []byte("f")}, Offset: c.offset, Length: c.length}, &b)
		if err != nil || b.String() != c.want || f.Size != 10 {
			t.Errorf("%d+%d: got %q, %v, %v; want %q", c.offset, c.length, b.String(), f, err, c.want)
		}
	}
	for _, c := range [][2]int64{{-1, 0}, {0, -1}} {
		if _, err := Read(p.root, sandbox.ReadParams{PathParams: sandbox.PathParams{Path: []byte("f")}, Offset: c[0], Length: c[1]}, io.Discard); !errors.Is(err, rpc.ErrInvalid) {
			t.Errorf("%v: got %v", c, err)
		}
	}
}

// grower makes a file longer with every part that is read of it.
type grower struct{ f *os.File }

func (g grower) Write(b []byte) (int, error) {
	_, err := g.f.Write(make([]byte, 2*len(b)))
	return len(b), err
}

func TestReadEndsThoughTheFileGrows(t *testing.T) {
	p := newPlace(t)
	p.put("log", strings.Repeat("x", 200<<10))
	f, err := os.OpenFile(filepath.Join(p.dir, "log"), os.O_APPEND|os.O_WRONLY, 0)
	p.ok(err)
	defer f.Close()
	if _, err := Read(p.root, sandbox.ReadParams{PathParams: sandbox.PathParams{Path: []byte("log")}}, grower{f}); err != nil {
		t.Error(err)
	}
}

// constant fails if do takes more memory than it needs for one buffer.
func constant(t *testing.T, do func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
		t.Errorf("it took %d bytes of memory", n)
	}
}

func TestReadStreams(t *testing.T) {
	p := newPlace(t)
	p.put("huge", "")
	p.ok(os.Truncate(filepath.Join(p.dir, "huge"), 1<<30))
	constant(t, func() {
		n := &counter{}
		if _, err := Read(p.root, sandbox.ReadParams{PathParams: sandbox.PathParams{Path: []byte("huge")}}, n); err != nil || n.n != 1<<30 {
			t.Errorf("read %d bytes, %v", n.n, err)
		}
	})
}

type counter struct{ n int64 }

func (c *counter) Write(b []byte) (int, error) { c.n += int64(len(b)); return len(b), nil }

// swap exchanges a folder of the workspace with a link that leads out, over and
// over until the test is done with it.
func (p *place) swap() (stop func()) {
	p.put("a/file", "in")
	p.link("../other", "b")
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		at := func(n string) string { return filepath.Join(p.dir, n) }
		for {
			select {
			case <-done:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, at("a"), unix.AT_FDCWD, at("b"), unix.RENAME_EXCHANGE)
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

func TestSwappedWhileUsed(t *testing.T) {
	p := newPlace(t)
	stop := p.swap()
	var in, out int
	for i := range 3000 {
		text, err := read(p.root, "a/file")
		switch {
		case err == nil && text == "in":
			in++
		case text != "":
			t.Fatalf("read %q", text)
		default:
			out++
		}
		name := fmt.Sprintf("a/new%d", i%10)
		_, _ = Write(t.Context(), p.root, sandbox.WriteParams{PathParams: sandbox.PathParams{Path: []byte(name)}}, strings.NewReader("x"))
		_ = Mkdir(p.root, []byte("a/sub/sub"))
		_, _ = List(p.root, []byte("a"))
		_ = Remove(p.root, []byte(name))
		if i%100 == 0 {
			var b bytes.Buffer
			_ = Archive(t.Context(), p.root, sandbox.ArchiveParams{Format: sandbox.Tar}, &b)
			if bytes.Contains(b.Bytes(), []byte(secret)) {
				t.Fatal("the archive has what lies outside")
			}
		}
	}
	stop()
	p.untouched()
	if in == 0 || out == 0 {
		t.Logf("the race was hardly tried: %d times inside, %d times out", in, out)
	}
}

func TestUsage(t *testing.T) {
	p := newPlace(t)
	p.put("a/big", strings.Repeat("x", 100<<10))
	p.put("b", "small")
	p.ok(os.Link(filepath.Join(p.dir, "a/big"), filepath.Join(p.dir, "a/same")))
	p.ok(os.Link(filepath.Join(p.dir, "a/big"), filepath.Join(p.dir, "again")))
	p.link(p.outer, "out")
	p.put("holes", "")
	p.ok(os.Truncate(filepath.Join(p.dir, "holes"), 1<<40))
	var want int64
	for _, name := range []string{".", "a", "a/big", "b", "out", "holes"} {
		var st unix.Stat_t
		p.ok(unix.Lstat(filepath.Join(p.dir, name), &st))
		want += st.Blocks * 512
	}
	if got, err := Usage(t.Context(), p.root); err != nil || got != want || want < 100<<10 {
		t.Errorf("got %d, %v; want %d", got, err, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Usage(ctx, p.root); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// Data hidden deep down must count, too.
func TestUsageTooDeep(t *testing.T) {
	p := newPlace(t)
	p.ok(os.WriteFile(filepath.Join(p.dir, "file"), []byte("folders take no room in memory"), 0o600))
	dir, err := unix.Open(p.dir, unix.O_DIRECTORY, 0)
	p.ok(err)
	for range maxDepth + 50 {
		p.ok(unix.Mkdirat(dir, "d", 0o755))
		next, err := unix.Openat(dir, "d", unix.O_DIRECTORY, 0)
		p.ok(err)
		unix.Close(dir)
		dir = next
	}
	unix.Close(dir)
	if n, err := Usage(t.Context(), p.root); !errors.Is(err, rpc.ErrTooBig) || n == 0 {
		t.Errorf("got %d, %v", n, err)
	}
	var b bytes.Buffer
	p.ok(Archive(t.Context(), p.root, sandbox.ArchiveParams{Format: sandbox.Tar}, &b))
	if got := unpackTar(t, &b); got[noteName].text == "" {
		t.Error("the archive does not say that it lacks something")
	}
}

func TestUsageStaysOnTheMount(t *testing.T) {
	root, err := os.OpenRoot("/")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	d, err := At(root, "/").folder(".")
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	self, err := d.self()
	if err != nil {
		t.Fatal(err)
	}
	u := &usage{dev: uint64(self.Dev)}
	u.mount, _ = mountID(d.fd(), "")
	proc, err := d.lstat("proc")
	if err != nil {
		t.Fatal(err)
	}
	if u.sameMount(d, "proc", &proc) {
		t.Error("/proc counts to the disk")
	}
	if !u.sameMount(d, ".", &self) {
		t.Error("the folder itself does not count")
	}
}

// What /proc shows of the runner is not for those who look at files, by no name.
func TestRunnersOwnFiles(t *testing.T) {
	root, err := os.OpenRoot("/")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	dir := t.TempDir()
	if err := os.Symlink("/proc/thread-self/environ", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	tree := At(root, "/")
	me := strconv.Itoa(os.Getpid())
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil || len(tasks) == 0 {
		t.Fatal(tasks, err)
	}
	for _, path := range []string{
		"/proc/self/environ", "/proc/self", "/proc/thread-self/maps", "/proc/1/environ", "/proc/./1//cmdline", "/proc/sys/../self/status", "/proc/" + me + "/environ",
		"/proc/" + tasks[len(tasks)-1].Name() + "/environ", "/proc/self/root/etc/hostname", "/proc/self/cwd", dir + "/link",
	} {
		var out bytes.Buffer
		if _, err := tree.Read(sandbox.ReadParams{PathParams: sandbox.PathParams{Path: []byte(path)}}, &out); !errors.Is(err, fs.ErrPermission) || out.Len() > 0 {
			t.Errorf("read %s: %v", path, err)
		}
		if _, err := tree.List([]byte(path)); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("list %s: %v", path, err)
		}
	}
	for _, path := range []string{"/proc/stat", "/proc/sys/kernel/ostype", "/proc/cpuinfo"} {
		if f, _, err := tree.Open([]byte(path)); err != nil {
			t.Errorf("%s: %v", path, err)
		} else {
			f.Close()
		}
	}
}

// A folder that becomes a link or a file and back while it is looked at gives one of the answers that such
// a folder may have, and never an unexpected one.
func TestSwappedFolder(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.Mkdir(in("a"), 0o755), os.WriteFile(in("a/f"), []byte("x"), 0o644), os.Mkdir(in("b"), 0o755), os.WriteFile(in("b/f"), []byte("y"), 0o644)); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Rename(in("a"), in("away"))
			_ = os.Symlink("b", in("a"))
			_ = os.Remove(in("a"))
			_ = os.WriteFile(in("a"), nil, 0o644)
			_ = os.Remove(in("a"))
			_ = os.Rename(in("away"), in("a"))
		}
	}()
	tree := At(root, sandbox.Workspace)
	for range 2000 {
		_, errStat := tree.Stat([]byte("a"))
		_, errList := tree.List([]byte("a"))
		_, errRead := tree.Read(sandbox.ReadParams{PathParams: sandbox.PathParams{Path: []byte("a/f")}}, io.Discard)
		for what, err := range map[string]error{"stat": errStat, "list": errList, "read": errRead} {
			if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, rpc.ErrInvalid) && !errors.Is(err, rpc.ErrEscapes) {
				t.Fatalf("%s: %v", what, err)
			}
		}
	}
	close(stop)
	<-ended
}

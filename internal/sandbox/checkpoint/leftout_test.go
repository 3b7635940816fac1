package checkpoint

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox"
)

// large puts a file that checkpoints leave out at a path.
func (r *rig) large(name string) {
	r.t.Helper()
	must(r.t, os.RemoveAll(r.at(name)))
	f, err := os.Create(r.at(name))
	must(r.t, err)
	defer f.Close()
	if err := unix.Fallocate(int(f.Fd()), 0, 0, MaxFile+1<<20); err != nil {
		r.t.Skip("SKIPPED: this file system cannot allocate a file:", err)
	}
}

// A file that is too large for checkpoints, in the place of a stored file or folder, is listed, and the others are restored.
func TestUndoReplacedByLargeFile(t *testing.T) {
	t.Parallel()
	start := func() *rig {
		r := newRig(t)
		r.write(map[string]string{"Makefile": "0", "src/a": "0", "src/b/c": "0", "other": "0"})
		return r
	}
	for _, own := range []sandbox.Own{sandbox.RefuseOwn, sandbox.KeepOwn, sandbox.OverwriteOwn} {
		r := start()
		turn := r.span(func() { r.large("Makefile"); r.large("src"); r.large("new"); r.write(map[string]string{"other": "1"}) })
		got := r.undo(own, turn)
		if fmt.Sprint(got.Files, got.Kept) != "[Makefile src] [Makefile src]" {
			t.Errorf("%q: %+v", own, got)
		}
		if own == sandbox.RefuseOwn {
			r.has("refused", map[string]string{"other": "1"})
			continue
		}
		r.has("restored", map[string]string{"other": "0"})
		if info, err := os.Stat(r.at("src")); err != nil || info.Size() < MaxFile {
			t.Errorf("%v, %v", info, err)
		}
	}
	r := start() // a later turn removes them
	one := r.span(func() { r.large("Makefile"); r.large("src") })
	two := r.span(func() {
		must(t, os.Remove(r.at("src")))
		must(t, os.Remove(r.at("Makefile")))
		r.write(map[string]string{"Makefile": "2"})
	})
	if got := r.undo(sandbox.RefuseOwn, one, two); len(got.Files)+len(got.Kept) > 0 {
		t.Errorf("%+v", got)
	}
	r.has("restored", map[string]string{"Makefile": "0", "src/a": "0", "src/b/c": "0"})
	r = start() // a new folder that the repository ignores
	one = r.span(func() { must(t, os.RemoveAll(r.at("src"))) })
	two = r.span(func() { r.write(map[string]string{".git/HEAD": "", ".gitignore": "/src/", "src/a": "EVIL"}) })
	if got := r.undo(sandbox.RefuseOwn, one, two); fmt.Sprint(got.Files, got.Kept) != "[src] [src]" {
		t.Errorf("%+v", got)
	}
}

// A socket in the place of a stored file or folder is removed.
func TestUndoReplacedBySocket(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write(map[string]string{"Makefile": "0", "src/a": "0", "src/b/c": "0"})
	turn := r.span(func() {
		for _, name := range []string{"Makefile", "src"} {
			must(t, os.RemoveAll(r.at(name)))
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			must(t, err)
			defer unix.Close(fd)
			dir, err := os.Open(r.w.Dir) // the path may be too long for the address of a socket
			must(t, err)
			must(t, unix.Bind(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name)}))
			dir.Close()
		}
	})
	if info, err := os.Lstat(r.at("src")); err != nil || info.Mode()&os.ModeSocket == 0 {
		t.Fatalf("%v, %v", info, err)
	}
	got := r.undo(sandbox.RefuseOwn, turn)
	if len(got.Files)+len(got.Kept) > 0 {
		t.Errorf("%+v", got)
	}
	r.has("restored", map[string]string{"Makefile": "0", "src/a": "0", "src/b/c": "0"})
	if next := r.take(); next.Changed != 0 {
		t.Errorf("%+v", next)
	}
}

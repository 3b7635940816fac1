package privatefiles

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// What one process finds serves the next: it looks only where something has
// changed, and everywhere once a day.
func TestKept(t *testing.T) {
	before := settled
	settled = -time.Hour // the folders of this test are new
	t.Cleanup(func() { settled = before })
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "kept")
	at := func(name string) string { return filepath.Join(dir, name) }
	put := func(name string, mode os.FileMode) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(at(name)), 0o755), os.WriteFile(at(name), []byte("x"), mode), os.Chmod(at(name), mode)); err != nil {
			t.Fatal(err)
		}
	}
	// process is a new one: it knows what the file says.
	process := func() *Watch {
		return &Watch{roots: []string{dir}, ranges: os.Getuid() == 0, fd: -1, kept: kept{path: file}}
	}
	finds := func(w *Watch, want string) {
		t.Helper()
		m, _, err := w.Now(t.Context(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, path := range m.Paths {
			names = append(names, strings.TrimPrefix(path, dir+"/"))
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != want {
			t.Errorf("found %q, want %q", got, want)
		}
	}
	put("a/open", 0o644)
	put("a/private", 0o600)
	put("b/c/odd\n\"name\"/key", 0o600)
	put("d/e/f", 0o644)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	odd := "b/c/odd\n\"name\"/key"
	finds(process(), "a/private "+odd)
	finds(process(), "a/private "+odd)
	put("d/e/new", 0o600)
	put("g/h/i", 0o600)
	if err := errors.Join(os.Rename(at("a/private"), at("a/moved")), os.Chmod(at("b/c"), 0o700)); err != nil {
		t.Fatal(err)
	}
	finds(process(), "a/moved b/c d/e/new g/h/i")
	if err := errors.Join(os.RemoveAll(at("g")), os.Chmod(at("b/c"), 0o755)); err != nil {
		t.Fatal(err)
	}
	finds(process(), "a/moved "+odd+" d/e/new")

	// Only a look at everything sees this.
	put("a/open", 0o600)
	w := process()
	finds(w, "a/moved "+odd+" d/e/new")
	w.load()
	w.kept.whole = w.kept.whole.Add(-keptFor)
	if err := w.save(); err != nil {
		t.Fatal(err)
	}
	finds(process(), "a/moved a/open "+odd+" d/e/new")

	// A file that is not ours, or is half written, is as good as none.
	for _, content := range []string{"", "1 0 x\n", w.key() + "\nyesterday\n", w.key() + "\n" + time.Now().Format(time.RFC3339Nano) + "\nbroken\n"} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		finds(process(), "a/moved a/open "+odd+" d/e/new")
	}

	// A change that is too young for its stamp is looked at again.
	settled = time.Hour
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	finds(process(), "a/moved a/open "+odd+" d/e/new")
	put("a/open", 0o644)
	finds(process(), "a/moved "+odd+" d/e/new")
}

package privatefiles

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What only its owner may read is found, and what tells nothing is not.
func TestSearch(t *testing.T) {
	dir := t.TempDir()
	put := func(name, content string, mode os.FileMode) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), mode), os.Chmod(file, mode)); err != nil {
			t.Fatal(err)
		}
	}
	put("open", "x", 0o644)
	put("private", "x", 0o600)
	put("group", "x", 0o640)
	put("lock", "", 0o600)
	put("closed/f", "x", 0o644)
	put("closed/g", "x", 0o600)
	if err := errors.Join(os.Chmod(filepath.Join(dir, "closed"), 0o700), os.Chmod(dir, 0o755), os.Symlink("private", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	w := Of([]string{dir}, "/nowhere", os.Getuid() == 0, "")
	t.Cleanup(w.close)
	w.ctx, w.log = t.Context(), slog.New(slog.DiscardHandler)
	finds := func(look func() (bool, error), want string) {
		t.Helper()
		if _, err := look(); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, path := range w.found().Paths {
			names = append(names, filepath.Base(path))
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != want {
			t.Errorf("found %q, want %q", got, want)
		}
	}
	finds(w.begin, "closed group private")
	if again, err := w.changed(); again || err != nil || w.fd < 0 {
		t.Errorf("nothing has changed: %v, %v", again, err)
	}
	// What appears, or is private all of a sudden, is found without another search.
	put("new", "x", 0o600)
	put("below/a/b/c", "x", 0o600)
	put("lock", "no lock any more", 0o600)
	put("open", "x", 0o640)
	finds(w.changed, "c closed group lock new open private")
	if err := errors.Join(os.Rename(filepath.Join(dir, "below/a"), filepath.Join(dir, "moved")), os.Remove(filepath.Join(dir, "new")), os.Chmod(filepath.Join(dir, "closed"), 0o755), os.Chmod(filepath.Join(dir, "open"), 0o644)); err != nil {
		t.Fatal(err)
	}
	finds(w.changed, "c g group lock private")
	put("moved/b/d", "x", 0o600)
	finds(w.changed, "c d g group lock private")
	if !slices.Contains(w.found().Paths, filepath.Join(dir, "moved/b/c")) {
		t.Errorf("found %v", w.found().Paths)
	}
	// Without the kernel's help it looks through everything.
	w.giveUp(errors.New("no watches"))
	put("moved/b/e", "x", 0o600)
	finds(w.changed, "c d e g group lock private")
	for i := range Most {
		put("many/"+string(rune('a'+i%26))+strings.Repeat("x", i), "x", 0o600)
	}
	if _, err := w.changed(); err != nil || !w.found().Many {
		t.Errorf("with many: %v", err)
	}
}

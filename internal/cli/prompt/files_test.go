package prompt

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestRank(t *testing.T) {
	t.Parallel()
	names := []string{"docs/", "docs/model.md", "internal/model/model.go", "main.go", "m.txt", "other"}
	if got := Rank(names, "mo"); !slices.Equal(got, []string{"docs/model.md", "internal/model/model.go", "main.go"}) {
		t.Errorf("%v", got)
	}
	if got := Rank(names, "MAI"); !slices.Equal(got, []string{"main.go"}) {
		t.Errorf("%v", got)
	}
	if got := Rank(names, "imgo"); !slices.Equal(got, []string{"internal/model/model.go"}) { // letters in order
		t.Errorf("%v", got)
	}
}

func TestFilesOfAFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{".gitignore": "out/\n*.log\n", "a.go": "", "x.log": "", "out/made": "", "sub/b.go": "", ".git/config": ""} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/", filepath.Join(dir, "root")); err != nil {
		t.Fatal(err)
	}
	if got := Files(dir); !slices.Equal(got, []string{".gitignore", "a.go", "root", "sub/", "sub/b.go"}) {
		t.Errorf("%q", got)
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	names := []string{"model", "undo", "plan", "compact", "commands", "q"}
	for typed, want := range map[string]string{"modle": "model", "udno": "undo", "comp": "compact", "nonsense": "", "": "model", "xy": "", "pln": "plan"} {
		if got := Nearest(names, typed); got != want {
			t.Errorf("%q: %q, want %q", typed, got, want)
		}
	}
}

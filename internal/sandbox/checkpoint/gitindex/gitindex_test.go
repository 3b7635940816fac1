package gitindex

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

var statTime = time.Unix(1e9, 0)

// The index of each version and object format lists the tracked files; a refresh does not change its sum, staging does.
func TestParse(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED: there is no git")
	}
	for _, args := range [][]string{{"sha1", "2"}, {"sha1", "3"}, {"sha1", "4"}, {"sha256", "2"}, {"sha256", "4"}} {
		dir := t.TempDir()
		git := func(args ...string) {
			t.Helper()
			cmd := exec.CommandContext(t.Context(), "git", args...)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("git %q: %v\n%s", args, err, out)
			}
		}
		write := func(name, text string) {
			t.Helper()
			p := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		read := func() Index {
			t.Helper()
			b, err := os.ReadFile(filepath.Join(dir, ".git/index"))
			if err != nil {
				t.Fatal(err)
			}
			x, ok := Parse(b)
			if !ok {
				t.Fatalf("%q: cannot read the index", args)
			}
			for n := range len(b) { // never panics
				Parse(b[:n])
			}
			return x
		}
		git("init", "-q", "--object-format="+args[0])
		git("config", "index.version", args[1])
		for _, name := range []string{"a", "b/c/d", "b/c/e", "b/long name that is stored", "z/y"} {
			write(name, name)
		}
		git("add", ".")
		one := read()
		if got := one.Folders(); len(got) != 3 || !got["b"] || !got["b/c"] || !got["z"] || len(one.paths) != 5 || string(one.paths[2]) != "b/c/e" {
			t.Errorf("%q: %v, %q", args, got, one.paths)
		}
		if err := os.Chtimes(filepath.Join(dir, "a"), statTime, statTime); err != nil {
			t.Fatal(err)
		}
		git("status")
		if read().Sum != one.Sum {
			t.Errorf("%q: a refresh changes the entries", args)
		}
		write("a", "staged")
		git("add", "a")
		two := read()
		git("update-index", "--skip-worktree", "a")
		if three := read(); two.Sum == one.Sum || two.Sum == three.Sum {
			t.Errorf("%q: staging does not change the entries", args)
		}
		git("update-index", "--split-index")
		if b, err := os.ReadFile(filepath.Join(dir, ".git/index")); err != nil {
			t.Fatal(err)
		} else if _, ok := Parse(b); ok {
			t.Errorf("%q: a split index", args)
		}
	}
	if _, ok := Parse(nil); ok {
		t.Error("nothing is an index")
	}
}

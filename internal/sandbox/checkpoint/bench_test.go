package checkpoint

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deckhand/internal/sandbox"
)

// manyFiles is how many files the workspace of a benchmark has.
const manyFiles = 20_000

// many makes a workspace with many files of a few kilobytes.
func many(b *testing.B, dir string) {
	b.Helper()
	text := strings.Repeat("the quick brown fox jumps over the lazy dog\n", 60)
	for i := range manyFiles {
		d := filepath.Join(dir, fmt.Sprintf("pkg%d/mod%d", i%40, i%400))
		must(b, os.MkdirAll(d, 0o755))
		must(b, os.WriteFile(filepath.Join(d, fmt.Sprintf("file%d.go", i)), []byte(fmt.Sprint(i, text)), 0o644))
	}
}

func git(b *testing.B, dir string, args ...string) {
	b.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "gc.auto=0"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
}

func diskUse(b *testing.B, dir string) (n int64) {
	b.Helper()
	must(b, filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
		return nil
	}))
	return n
}

// BenchmarkCheckpoint compares the first checkpoint of 20,000 files, the next one after one file changed, one after
// nothing changed, and the undo of a restore with what git stash and a plain copy take for the same.
func BenchmarkCheckpoint(b *testing.B) {
	base := b.TempDir()
	w := Workspace{Dir: filepath.Join(base, "work")}
	many(b, w.Dir)
	change := func(i int) {
		must(b, os.WriteFile(filepath.Join(w.Dir, "pkg7/mod7/file7.go"), fmt.Appendf(nil, "changed %d %d", i, time.Now().UnixNano()), 0o644))
	}
	b.Run("first", func(b *testing.B) {
		var bytes int64
		for b.Loop() {
			b.StopTimer()
			s := Open(filepath.Join(b.TempDir(), "store"))
			b.StartTimer()
			t, err := s.Take(b.Context(), w, time.Now())
			must(b, err)
			bytes = t.Bytes
		}
		b.ReportMetric(float64(bytes), "bytes")
	})
	s := Open(filepath.Join(base, "store"))
	first, err := s.Take(b.Context(), w, time.Now())
	must(b, err)
	b.Run("unchanged", func(b *testing.B) {
		for b.Loop() {
			_, err := s.Take(b.Context(), w, time.Now())
			must(b, err)
		}
	})
	b.Run("one-file-changed", func(b *testing.B) {
		var bytes int64
		for i := 0; b.Loop(); i++ {
			change(i)
			t, err := s.Take(b.Context(), w, time.Now())
			must(b, err)
			bytes = t.Bytes
		}
		b.ReportMetric(float64(bytes), "bytes")
		b.ReportMetric(100*float64(bytes)/float64(first.Bytes), "%-of-first")
	})
	b.Run("undo-one-file", func(b *testing.B) {
		change(-1)
		at, err := s.Take(b.Context(), w, time.Now())
		must(b, err)
		change(-2)
		for b.Loop() {
			r, err := s.Restore(b.Context(), w, sandbox.RestoreParams{Number: at.Number})
			must(b, err)
			at = r.Undo
		}
	})
	b.Run("undo-1000-files", func(b *testing.B) {
		at, err := s.Take(b.Context(), w, time.Now())
		must(b, err)
		for i := range 1000 {
			must(b, os.WriteFile(filepath.Join(w.Dir, fmt.Sprintf("pkg%d/mod%d/file%d.go", i%40, i%400, i)), fmt.Appendf(nil, "x %d", i), 0o644))
		}
		for b.Loop() {
			r, err := s.Restore(b.Context(), w, sandbox.RestoreParams{Number: at.Number})
			must(b, err)
			at = r.Undo
		}
	})
	b.Run("copy", func(b *testing.B) {
		var bytes int64
		for i := 0; b.Loop(); i++ {
			change(i)
			to := filepath.Join(base, fmt.Sprintf("copy%d", i))
			if out, err := exec.Command("cp", "-a", w.Dir, to).CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, out)
			}
			b.StopTimer()
			bytes = diskUse(b, to)
			must(b, os.RemoveAll(to))
			b.StartTimer()
		}
		b.ReportMetric(float64(bytes), "bytes")
	})
	b.Run("git-stash", func(b *testing.B) {
		git(b, w.Dir, "init", "-q")
		git(b, w.Dir, "add", "-A")
		git(b, w.Dir, "commit", "-q", "-m", "x")
		for i := 0; b.Loop(); i++ {
			change(i)
			git(b, w.Dir, "stash", "push", "-q", "--include-untracked")
			git(b, w.Dir, "stash", "apply", "-q")
		}
	})
}

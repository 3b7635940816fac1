package checkpoint

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What is noticed of a workspace adds up to what a look through all of it finds.
func TestWatched(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		r := newRig(t)
		files(t, r.w.Dir, map[string]string{"a/1": "1", "a/2": "2", "b/3": "3", "c/d/4": "4", "5": "5"})
		for i := range maxUnwatched {
			files(t, r.w.Dir, map[string]string{fmt.Sprint("more/", i): "unchanged"})
		}
		r.take()
		r.take() // now it is known to be large enough to be watched
		random := rand.New(rand.NewPCG(seed, 1))
		partial := 0
		for step := range 40 {
			for range 1 + random.IntN(3) {
				disturb(r.w.Dir, random)
			}
			before := r.cache.watch
			got := r.take()
			if before != nil && r.cache.watch == before {
				partial++
			}
			fresh := Open(filepath.Join(t.TempDir(), "fresh"))
			all, err := fresh.Take(t.Context(), r.w, time.Now())
			must(t, err)
			want, _, err := fresh.load(all.Number)
			must(t, err)
			have, _, err := Open(r.dir).load(got.Number)
			must(t, err)
			if d := diff(have, want); len(d) > 0 || got.Files != all.Files {
				t.Fatalf("seed %d, step %d: %d differences, the first at %q; %d files, want %d", seed, step, len(d), d[0].path(), got.Files, all.Files)
			}
		}
		if partial == 0 {
			t.Errorf("seed %d: the whole workspace was looked through each time", seed)
		}
	}
}

// disturb does something to a workspace.
func disturb(dir string, random *rand.Rand) {
	name := func() string {
		return filepath.Join(dir, []string{"a", "b", "c/d", "", "new"}[random.IntN(5)], fmt.Sprint(random.IntN(6)))
	}
	switch random.IntN(14) {
	case 0:
		_ = os.Mkdir(name(), 0o755)
	case 1:
		_ = os.Remove(name())
	case 2:
		_ = os.Rename(name(), name())
	case 3:
		_ = os.Symlink("a/1", name())
	case 4:
		_ = os.Chmod(name(), 0o600)
	case 5:
		_ = os.Link(name(), name())
	case 6:
		_ = os.Rename(filepath.Join(dir, "b"), filepath.Join(dir, "new"))
	case 7:
		_ = os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "b"))
	case 8:
		_ = os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("new\n"), 0o644)
	default:
		_ = os.WriteFile(name(), []byte(strings.Repeat("x", random.IntN(5000))), 0o644)
	}
}

package checkpoint

import (
	"os"
	"runtime"
	"testing"
)

// An empty workspace is not read again until it changes, and a change is noticed even if its time is hidden.
func TestEmptyWorkspace(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	one := r.take()
	for vacant(r.w.Dir) == (vacancy{}) { // it has just been made
		runtime.Gosched()
	}
	r.take()
	if !r.cache.vacant.still(r.w.Dir) {
		t.Error("the workspace is not known to be empty")
	}
	if again := r.take(); again.Number != one.Number || again.Changed != 0 || again.Files != 0 {
		t.Errorf("nothing changed, and yet: %+v", again)
	}
	info, err := os.Stat(r.w.Dir)
	must(t, err)
	files(t, r.w.Dir, map[string]string{"a": "1"})
	must(t, os.Chtimes(r.w.Dir, info.ModTime(), info.ModTime()))
	if got := r.take(); got.Changed != 1 || got.Files != 1 {
		t.Errorf("a new file: %+v", got)
	}
	must(t, os.Remove(r.at("a")))
	if got := r.take(); got.Changed != 1 || got.Files != 0 {
		t.Errorf("it is gone: %+v", got)
	}
}

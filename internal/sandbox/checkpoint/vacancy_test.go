package checkpoint

import (
	"os"
	"runtime"
	"testing"
	"time"
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

// Checkpoint 1 may be created after files were. It is verified at the last time at which the workspace is known to have been empty.
func TestBeginEmpty(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	now := time.Now()
	for _, c := range []struct{ at, want time.Time }{
		{time.Time{}, time.Unix(0, 0)}, // before the first use
		{now.Add(-2 * time.Hour), now.Add(-2 * time.Hour)},
		{now.Add(-3 * time.Hour), now.Add(-2 * time.Hour)},
		{now.Add(-time.Hour), now.Add(-time.Hour)},
	} {
		must(t, r.BeginEmpty(c.at))
		if got := r.verified(1); !got.Equal(c.want) {
			t.Errorf("empty at %s: verified at %s, want %s", c.at, got, c.want)
		}
	}
	files(t, r.w.Dir, map[string]string{"a": "1"})
	got := r.take()
	if got.Number != 2 || got.Previous != 1 || got.Changed != 1 || !got.Verified.Equal(now.Add(-time.Hour)) {
		t.Errorf("%+v", got)
	}
	must(t, r.BeginEmpty(now.Add(time.Hour)))
	if got := r.verified(2); got.After(time.Now()) {
		t.Errorf("the state with a file is verified at a time at which there was none: %s", got)
	}
}

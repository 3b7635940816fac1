package local

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// found is what a first driver found in the system, for the drivers of the suite.
var found = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "found")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	d, err := New(Options{Dir: dir, Runner: runnerFile})
	if err != nil {
		return nil, err
	}
	defer d.Close()
	d.base.done.Wait()
	return os.ReadFile(filepath.Join(dir, baseDir, maskedFile))
})

// RunnerVariable names the runner of this package's own tests for a test program
// that cannot build it.
func RunnerVariable() string { return runnerEnv + "=" + runnerFile }

// Recall spares a new driver the search through the system, which takes a
// second and finds the same for all tests.
func Recall(t *testing.T, dir string) {
	t.Helper()
	cache := filepath.Join(dir, baseDir, maskedFile)
	if _, err := os.Stat(cache); err == nil {
		return
	}
	b, err := found()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(cache), 0o755)
	}
	if err == nil {
		err = os.WriteFile(cache, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

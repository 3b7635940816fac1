package whole

import (
	"os"
	"path/filepath"
	"testing"
)

func TestKeptFilesArePruned(t *testing.T) {
	dir := t.TempDir()
	k, err := Open(dir, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	other := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(other, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	var names []string
	for range maxKeptFiles + 5 {
		w := k.Create()
		w.Add([]byte("x"))
		w.Close()
		names = append(names, w.Name)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != maxKeptFiles+1 {
		t.Errorf("%d files are left, error %v", len(files), err)
	}
	if _, err := os.Stat(names[len(names)-1]); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error("a foreign file was removed")
	}
}

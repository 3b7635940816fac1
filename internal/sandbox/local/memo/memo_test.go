package memo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	decoded := 0
	files := Files[string]{Decode: func(b []byte) (string, error) { decoded++; return string(b), nil }}
	read := func() string {
		t.Helper()
		got, err := files.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	replace := func(content string) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path+".new", []byte(content), 0o600), os.Rename(path+".new", path)); err != nil {
			t.Fatal(err)
		}
	}
	// Each version is seen at once, although all have the same length.
	for i := range 500 {
		want := fmt.Sprintf("%03d", i)
		replace(want)
		if got := read(); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
	for info, _ := os.Stat(path); time.Since(info.ModTime()) <= 2*racyTime; {
		read() // it is too young to be kept
	}
	read()
	decoded = 0
	for range 10 {
		read()
	}
	if decoded != 0 {
		t.Errorf("an unchanged file was decoded %d times", decoded)
	}
	replace("abc")
	if got := read(); got != "abc" {
		t.Errorf("got %s after a change", got)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := files.Read(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v after the removal", err)
	}
}

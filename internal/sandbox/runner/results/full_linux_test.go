package results

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// On a disk that others have filled, commands are still begun, finished and forgotten: those
// that delete files. A result that does not fit is known to this runner.
func TestKeepsRoomOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("NOT TESTED on a full disk: mounting needs root: %v", err)
	}
	defer func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) }()
	s := open(t, filepath.Join(dir, "results"))
	filler := filepath.Join(dir, "filler")
	fill := func() {
		t.Helper()
		f, err := os.OpenFile(filler, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for err == nil {
			_, err = f.Write(make([]byte, 4096))
		}
	}
	for i := range 100 {
		fill() // again each time: what a command gave back is taken by others
		id := strconv.Itoa(i)
		s.is(t, id, false, New, "")
		if i == 50 {
			if err := s.Finish(id, strings.Repeat("x", 2*kept)); err == nil {
				t.Error("a result has room that there is not")
			}
			s.is(t, id, true, Done, `"`+strings.Repeat("x", 2*kept)+`"`)
		} else if err := s.Finish(id, "a result"); err != nil {
			t.Fatalf("command %d: %v", i, err)
		}
		if err := s.Ack(id); err != nil {
			t.Fatalf("command %d: %v", i, err)
		}
	}
	s.is(t, "last", false, New, "")
	if err := s.Finish("last", 1); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	open(t, filepath.Join(dir, "results")).is(t, "last", true, Done, "1")
}

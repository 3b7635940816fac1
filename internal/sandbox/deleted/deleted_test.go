package deleted

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A file that was deleted while it is open counts; one that is in memory only does not.
func TestBytes(t *testing.T) {
	const size = 1 << 20
	self := []string{fmt.Sprintf("/proc/%d", os.Getpid())}
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	inMemory := os.NewFile(uintptr(fd), "memory")
	defer inMemory.Close()
	before := Bytes(self)
	for _, file := range []*os.File{f, inMemory} {
		if _, err := file.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	if got := Bytes(self) - before; got != 0 {
		t.Errorf("%d bytes are counted before anything is deleted", got)
	}
	if err := os.Remove(f.Name()); err != nil {
		t.Fatal(err)
	}
	if got := Bytes(self) - before; got < size || got > size+64<<10 {
		t.Errorf("%d bytes of deleted files, want those of one", got)
	}
}

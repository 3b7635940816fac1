package runner

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A new owner is remembered on a full disk, too: it may be the one that has files deleted.
func TestFenceOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("NOT TESTED on a full disk: mounting needs root: %v", err)
	}
	defer func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) }()
	r := &Runner{config: Config{State: dir}}
	if err := r.admit(9); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 2<<20), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	if err := r.admit(10); err != nil {
		t.Fatal(err)
	}
	next := &Runner{config: Config{State: dir}}
	if err := next.readFence(); err != nil || next.fence != 10 {
		t.Errorf("the next runner knows %d, %v", next.fence, err)
	}
	if err := next.admit(9); err == nil {
		t.Error("the owner before is admitted")
	}
}

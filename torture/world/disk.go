//go:build linux

package world

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// diskSize is the size of the disk of a server.
const diskSize = 1 << 30

// fillerName is the file that fills a disk.
const fillerName = "filler"

// newDisk mounts a small disk in memory.
func newDisk(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=755", diskSize)); err != nil {
		return fmt.Errorf("mount a small disk: %w", err)
	}
	return nil
}

// FillDisk uses all space that is left on the disk of the server.
func (s *Server) FillDisk() error {
	f, err := os.Create(filepath.Join(filepath.Dir(s.Dir), fillerName))
	if err != nil {
		return err
	}
	defer f.Close()
	var at int64
	for size := int64(64 << 20); size >= 4096; {
		err := syscall.Fallocate(int(f.Fd()), 0, at, size)
		switch {
		case err == nil:
			at += size
		case errors.Is(err, syscall.ENOSPC):
			size /= 2
		case !errors.Is(err, syscall.EINTR):
			return err
		}
	}
	return nil
}

// DrainDisk gives the space back.
func (s *Server) DrainDisk() error {
	err := os.Remove(filepath.Join(filepath.Dir(s.Dir), fillerName))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

//go:build unix

// Package keylock locks the files of the master key of a data directory, for processes that may change them.
package keylock

import (
	"errors"
	"os"
	"syscall"
)

// Lock prevents other processes and goroutines from changing the key files at the same
// time. The kernel releases it if the process dies.
func Lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, syscall.EROFS) {
		return func() {}, nil // read-only: the key files cannot change
	}
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, &os.PathError{Op: "flock", Path: path, Err: err}
	}
	return func() { f.Close() }, nil
}

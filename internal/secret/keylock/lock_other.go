//go:build !unix

// Package keylock locks the files of the master key of a data directory, for processes that may change them.
package keylock

import "sync"

var keyFiles sync.Mutex

// Lock guards the key files within this process only: there is no portable file lock.
func Lock(string) (unlock func(), err error) {
	keyFiles.Lock()
	return keyFiles.Unlock, nil
}

//go:build !unix

package secret

import "sync"

var keyFiles sync.Mutex

// lock guards the key files within this process only: there is no portable file lock.
func lock(string) (unlock func(), err error) {
	keyFiles.Lock()
	return keyFiles.Unlock, nil
}

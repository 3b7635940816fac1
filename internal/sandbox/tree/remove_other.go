//go:build !linux

package tree

import "os"

// Remove removes a folder with all that is in it. Links are removed, not followed. What does not exist is removed. There are no
// local sandboxes on this system, so the contents are not untrusted.
func Remove(path string) error { return os.RemoveAll(path) }

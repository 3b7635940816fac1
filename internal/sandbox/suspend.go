package sandbox

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// SuspendedFile is the file in the state folder of a suspended sandbox with what its next
// runner continues with.
const SuspendedFile = "suspended"

// Suspend asks the runner to end so that the next one can continue. If something runs or would
// be lost, it refuses; see Refusal. On success the connection ends: ErrLost.
func (s *Sandbox) Suspend(ctx context.Context) error {
	return s.peer.Call(ctx, "suspend", 0, nil, nil)
}

// Suspended reports whether the next runner with this state folder continues where the last
// one ended.
func Suspended(state string) bool {
	_, err := os.Lstat(filepath.Join(state, SuspendedFile))
	return err == nil
}

// Discard has the next runner with this state folder begin anew.
func Discard(state string) error {
	err := os.Remove(filepath.Join(state, SuspendedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

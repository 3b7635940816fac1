package runner

import (
	"context"
	"path/filepath"

	"deckhand/internal/sandbox/deleted"
	"deckhand/internal/sandbox/rpc"
)

// unlinked counts the bytes of files that were deleted and are still open.
func (r *Runner) unlinked(context.Context, *rpc.Call) (any, error) {
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	return deleted.Bytes(processes), nil
}

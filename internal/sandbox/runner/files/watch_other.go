//go:build !linux

package files

import (
	"context"
	"errors"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
)

// watch is only implemented on Linux, where all runners are.
func (*Files) watch(context.Context, *rpc.Call, Tree, sandbox.PathParams) (any, error) {
	return nil, errors.ErrUnsupported
}

//go:build !linux

package reserve

import (
	"errors"
	"os"
)

// allocate is only implemented on Linux.
func allocate(*os.File, int64) error { return errors.ErrUnsupported }

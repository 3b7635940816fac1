package box

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Guard hardens a runner inside a container: the same system call filter as in a sandbox of the
// local driver, and no process inside may trace the runner or use its descriptors.
func Guard() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up new privileges: %w", err)
	}
	if err := filterCalls(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("closing the runner's memory: %w", err)
	}
	return nil
}

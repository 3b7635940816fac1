package process

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Group returns attributes that start a process in a group of its own. It gets a signal to stop when the thread that started it ends.
func Group() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

// Adopt makes this process the parent of what its children leave behind, so that
// sandboxes, which outlive their server, still count as its own.
func Adopt() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

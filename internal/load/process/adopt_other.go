//go:build !linux

package process

import (
	"errors"
	"syscall"
)

// Group returns attributes that start a process in a group of its own.
func Group() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// Adopt fails: only Linux can account for the processes of a server.
func Adopt() error {
	return errors.New("processor time and memory can only be measured on Linux")
}

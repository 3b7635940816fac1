package confine

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox"
)

// Own gives the runner's folders to sandbox.RunnerOwner if the runner is root, so that its capabilities are the only way into them: what
// it starts is root too, but has none. home has the private folders and the runner's program; it stays readable. Without
// the capabilities, which containers of older servers lack, nothing changes.
func Own(home string, private ...string) error {
	for _, dir := range private {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	if os.Getuid() != 0 || !has(unix.CAP_CHOWN) || !has(unix.CAP_DAC_OVERRIDE) || !has(unix.CAP_SETPCAP) {
		return nil
	}
	for _, dir := range private {
		if err := give(dir, 0o700); err != nil {
			return err
		}
	}
	// A program that is mounted read-only cannot be changed anyway.
	if err := os.Chown(home+"/runner", sandbox.RunnerOwner, sandbox.RunnerOwner); err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.EROFS) {
		return err
	}
	if err := give(home, 0o755); err != nil {
		return err
	}
	return keepOnly(unix.CAP_DAC_OVERRIDE)
}

// give changes mode and owner of a folder. A folder that has this owner already was given at an earlier start.
func give(dir string, mode os.FileMode) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid == sandbox.RunnerOwner {
		return nil
	}
	if err := os.Chmod(dir, mode); err != nil {
		return err
	}
	return os.Chown(dir, sandbox.RunnerOwner, sandbox.RunnerOwner)
}

var capVersion = unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}

// has reports whether the calling thread has a capability.
func has(capability uint) bool {
	header, sets := capVersion, [2]unix.CapUserData{}
	err := unix.Capget(&header, &sets[0])
	return err == nil && sets[capability/32].Effective&(1<<(capability%32)) != 0
}

// keepOnly drops all capabilities of this process but one, and all that what it starts could have.
func keepOnly(capability uint) error {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if held, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0); err != nil || held == 0 {
			continue // also one that this kernel does not have
		}
		if _, _, e := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0, 0, 0, 0); e != 0 {
			return fmt.Errorf("dropping capabilities: %w", e)
		}
	}
	header, sets := capVersion, [2]unix.CapUserData{}
	sets[capability/32] = unix.CapUserData{Effective: 1 << (capability % 32), Permitted: 1 << (capability % 32)}
	_, _, e := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&sets[0])), 0)
	if e != 0 {
		return fmt.Errorf("dropping capabilities: %w", e)
	}
	return nil
}

// dropCapabilities drops all capabilities of the calling thread and of what it starts.
func dropCapabilities() error {
	header, sets := capVersion, [2]unix.CapUserData{}
	if err := unix.Capset(&header, &sets[0]); err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	return nil
}

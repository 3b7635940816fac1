package pg

import "golang.org/x/sys/unix"

// setUserTimeout makes the kernel end a connection whose packets are not acknowledged. If that fails, the limits of callers remain.
func setUserTimeout(fd int) {
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unackedLimit.Milliseconds()))
}

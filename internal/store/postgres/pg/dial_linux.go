package pg

import "golang.org/x/sys/unix"

// limitSilence makes the kernel end a connection whose packets are not confirmed. If that fails, the limits of callers remain.
func limitSilence(fd int) {
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silence.Milliseconds()))
}

// Package sockpath reaches Unix sockets in directories of any depth. The path of a
// socket is limited to 107 bytes, so it is named through an open directory.
package sockpath

import (
	"context"
	"fmt"
	"net"
	"os"
)

// In returns the path of a socket in an open directory, valid until dir is closed.
func In(dir *os.File, name string) string { return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name) }

// Listen listens on a socket in a directory. Closing the listener leaves the file.
func Listen(dir, name string) (net.Listener, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	l, err := net.Listen("unix", In(d, name))
	if err != nil {
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // the path is invalid by then
	return l, nil
}

// Dial connects to a socket in a directory.
func Dial(ctx context.Context, dir, name string) (net.Conn, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	var dialer net.Dialer
	return dialer.DialContext(ctx, "unix", In(d, name))
}

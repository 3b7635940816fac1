package machine

import (
	"fmt"
	"net"
	"os"
)

// NotifyReady tells systemd that the service is ready, if it was started by a unit of Type=notify. Programs that are started later
// cannot do so.
func NotifyReady() error {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return nil
	}
	os.Unsetenv("NOTIFY_SOCKET")
	conn, err := net.Dial("unixgram", socket)
	if err == nil {
		defer conn.Close()
		_, err = conn.Write([]byte("READY=1"))
	}
	if err != nil {
		return fmt.Errorf("cannot tell systemd that the server is ready: %w", err)
	}
	return nil
}

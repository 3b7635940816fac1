package ports

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strconv"
	"syscall"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
)

// connectTimeout is for a listener whose queue is full: on loopback nothing
// else takes time.
const connectTimeout = 10 * time.Second

// Handlers are the operations on ports: "ports" and, as plain connections, "dial".
func Handlers() (map[string]rpc.Handler, map[string]rpc.RawHandler) {
	calls := map[string]rpc.Handler{"ports": func(context.Context, *rpc.Call) (any, error) { return served("/proc/net", sandbox.BrowserFolder) }}
	raw := map[string]rpc.RawHandler{"dial": dial}
	return calls, raw
}

// dial connects the caller to a port.
func dial(ctx context.Context, c *rpc.RawCall) {
	var p sandbox.PortParams
	if err := c.Into(&p); err != nil {
		c.Refuse(err)
		return
	}
	conn, err := connect(ctx, p.Port)
	if err != nil {
		c.Refuse(err)
		return
	}
	if err := c.Accept(); err != nil {
		_ = conn.Close()
		_ = c.Close()
		return
	}
	join(ctx, c.Conn, conn)
}

// connect tries loopback in both its forms: many programs listen on one alone.
func connect(ctx context.Context, port int) (net.Conn, error) {
	if port < 1 || port > 65535 {
		return nil, fmt.Errorf("%w: %d is not a port; ports are 1 to 65535", rpc.ErrInvalid, port)
	}
	if port == sandbox.ProxyPort {
		return nil, fmt.Errorf("%w: port %d is the sandbox's own way out", rpc.ErrInvalid, port)
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err == nil {
		return conn, nil
	}
	if six, err6 := d.DialContext(ctx, "tcp6", net.JoinHostPort("::1", strconv.Itoa(port))); err6 == nil {
		return six, nil
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, silent(port)
	}
	return nil, fmt.Errorf("port %d in the sandbox does not answer: %w", port, err)
}

// silent is a port without a listener. It matches fs.ErrNotExist with errors.Is, but its text
// does not speak of files.
type silent int

func (p silent) Error() string {
	return fmt.Sprintf("nothing in the sandbox listens on port %d; start a server there first", int(p))
}

func (p silent) Is(target error) bool { return target == fs.ErrNotExist }

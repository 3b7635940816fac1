// Package counted makes connections that count as a use of what they lead to.
package counted

import (
	"errors"
	"net"
)

// Conn ends a use with the connection.
type Conn struct {
	net.Conn
	// Release ends the use. It may be called twice.
	Release func()
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	defer c.Release()
	return c.Conn.Close()
}

// CloseWrite says that nothing more is sent, while the other side may still send.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

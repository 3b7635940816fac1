package outbound

import (
	"errors"
	"net"
)

// conn is a connection whose errors do not name addresses. Users read these errors, and the address that a name resolves
// to, our own address and that of the name server describe a network which is not theirs.
type conn struct{ net.Conn }

func (c conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	return n, withoutAddresses(err)
}

func (c conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	return n, withoutAddresses(err)
}

// CloseWrite ends one direction of the connection.
func (c conn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return c.Conn.Close()
}

// withoutAddresses returns an error of the net package without the addresses in it. Its kind and its cause stay, so that
// callers can still tell a refused connection from a missing host.
func withoutAddresses(err error) error {
	if err == nil {
		return nil
	}
	if blocked, ok := errors.AsType[*BlockedError](err); ok {
		return blocked
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		bare := *dns
		bare.Server, bare.UnwrapErr = "", nil
		switch {
		case dns.IsNotFound:
			bare.Err = "no such host"
		case dns.IsTimeout:
			bare.Err = "no response from the name server"
		default:
			bare.Err = "the name cannot be resolved right now"
		}
		return &bare
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		bare := *op
		bare.Source, bare.Addr = nil, nil
		return &bare
	}
	return err
}

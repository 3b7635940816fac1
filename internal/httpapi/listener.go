package httpapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"deckhand/internal/httpapi/rest"
)

// net/http answers a request that it cannot parse itself, as plain text and before any
// handler sees it. The listeners here put our error shape in the place of that answer.

// handshakeTime bounds a TLS handshake.
const handshakeTime = 10 * time.Second

// Listen wraps a listener of plain HTTP.
func Listen(l net.Listener) net.Listener { return &plainListener{l} }

type plainListener struct{ net.Listener }

func (l *plainListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &errorConn{Conn: c}, nil
}

// ListenTLS wraps a listener of TLS. Connections that speak HTTP/2 are handed to
// net/http as they are: it must see a *tls.Conn, and reports errors within the protocol.
// The handshake is made here because only then is it known what a client speaks.
func ListenTLS(l net.Listener, c *tls.Config) net.Listener {
	t := &tlsListener{Listener: l, config: c, ready: make(chan net.Conn), failed: make(chan error, 1)}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.tasks.Go(t.accept)
	return t
}

type tlsListener struct {
	net.Listener
	config *tls.Config
	ready  chan net.Conn
	failed chan error
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

func (l *tlsListener) accept() {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			var temporary interface{ Temporary() bool }
			if errors.As(err, &temporary) && temporary.Temporary() && l.ctx.Err() == nil {
				select {
				case <-time.After(10 * time.Millisecond):
				case <-l.ctx.Done():
				}
				continue
			}
			l.failed <- err
			return
		}
		l.tasks.Go(func() { l.shake(c) })
	}
}

func (l *tlsListener) shake(raw net.Conn) {
	ctx, cancel := context.WithTimeout(l.ctx, handshakeTime)
	defer cancel()
	c := tls.Server(raw, l.config)
	if err := c.HandshakeContext(ctx); err != nil {
		var other tls.RecordHeaderError
		if errors.As(err, &other) && other.Conn != nil && looksLikeHTTP(other.RecordHeader) {
			_, _ = other.Conn.Write(badRequest(http.StatusBadRequest, "This port uses HTTPS. Use an https:// URL."))
		}
		raw.Close()
		return
	}
	var out net.Conn = c
	if c.ConnectionState().NegotiatedProtocol != "h2" {
		out = &errorTLSConn{errorConn{Conn: c}, c}
	}
	select {
	case l.ready <- out:
	case <-l.ctx.Done():
		c.Close()
	}
}

func looksLikeHTTP(header [5]byte) bool {
	switch string(header[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO", "DELET", "PATCH":
		return true
	}
	return false
}

func (l *tlsListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.ready:
		return c, nil
	case err := <-l.failed:
		l.failed <- err
		return nil, err
	}
}

func (l *tlsListener) Close() error {
	err := l.Listener.Close()
	l.cancel()
	l.tasks.Wait()
	return err
}

// errorConn replaces the answers that net/http makes by itself.
type errorConn struct{ net.Conn }

// madeUp are the headers of such an answer. Answers of handlers have others, at least
// a date.
const madeUp = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"

func (c *errorConn) Write(b []byte) (int, error) {
	rest, ok := bytes.CutPrefix(b, []byte("HTTP/1.1 "))
	if !ok || len(rest) < 3 || rest[0] != '4' && rest[0] != '5' {
		return c.Conn.Write(b)
	}
	line, _, ok := bytes.Cut(rest, []byte(madeUp))
	status, err := strconv.Atoi(string(rest[:3]))
	if !ok || err != nil || bytes.Contains(line, []byte("\r\n")) {
		return c.Conn.Write(b)
	}
	if _, err := c.Conn.Write(badRequest(status, "")); err != nil {
		return 0, err
	}
	return len(b), nil
}

// CloseWrite lets net/http end an answer before the client has sent everything.
func (c *errorConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// ReadFrom lets the kernel send files.
func (c *errorConn) ReadFrom(r io.Reader) (int64, error) { return io.Copy(c.Conn, r) }

type errorTLSConn struct {
	errorConn
	tls *tls.Conn
}

// ConnectionState tells net/http that the connection is a TLS connection.
func (c *errorTLSConn) ConnectionState() tls.ConnectionState { return c.tls.ConnectionState() }

// badRequest is a whole answer in our error shape, for a request that has no handler.
func badRequest(status int, msg string) []byte {
	if msg == "" {
		switch status {
		case http.StatusRequestHeaderFieldsTooLarge:
			msg = "The request headers are too large. The limit is 64 KiB."
		case http.StatusNotImplemented:
			msg = "The transfer encoding is not supported."
		case http.StatusHTTPVersionNotSupported:
			msg = "The HTTP version is not supported."
		default:
			msg = "The request is not valid HTTP. Check its path, headers and length."
		}
	}
	body := rest.BadRequest(msg)
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nX-Request-Id: %s\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
		status, http.StatusText(status), len(body), requestID())
	b.Write(body)
	return b.Bytes()
}

package egress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// authority is whom a CONNECT is for.
func authority(r *http.Request) (host, uint16, error) {
	text := r.URL.Host
	if text == "" || r.URL.Path != "" || r.URL.User != nil {
		return host{}, 0, misuse("CONNECT must name a host and a port")
	}
	h, err := parseHost(r.URL.Hostname())
	if err != nil {
		return host{}, 0, misuse(clip(r.URL.Hostname(), 100) + ": " + err.Error())
	}
	port, err := parsePort(r.URL.Port())
	if err != nil {
		return host{}, 0, misuse("CONNECT must name a host and a port: " + err.Error())
	}
	return h, port, nil
}

// connect opens a tunnel.
func (p *Proxy) connect(w http.ResponseWriter, e *exchange) {
	upstream, err := p.dial(e.ctx, "tcp", e.host.with(e.port))
	if err != nil {
		if cause := context.Cause(e.ctx); cause != nil {
			err = cause
		}
		why := explain(err, e.host, e.port)
		e.note(why.verdict, why.reason)
		p.refuseTunnel(w, why)
		return
	}
	defer upstream.Close()
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		e.note(Failed, "the tunnel cannot be opened: "+err.Error())
		return
	}
	defer conn.Close()
	c := upstream.(*counted)
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		e.note(Allowed, "the client went away")
		return
	}
	c.by.Store(e)
	// What came with the request is in the buffer. The rest is read from the
	// connection itself: for the buffer, the end of it is the end of the request.
	early, _ := buffered.Reader.Peek(buffered.Reader.Buffered())
	e.tunnel(io.MultiReader(bytes.NewReader(early), conn), c)
}

func (p *Proxy) refuseTunnel(w http.ResponseWriter, why *refusal) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	_, _ = io.WriteString(conn, why.raw())
	conn.Close()
}

// tunnel copies both ways until both sides are done. A side that only stops
// sending still receives.
func (e *exchange) tunnel(from io.Reader, upstream *counted) {
	client := e.line
	stop := context.AfterFunc(e.ctx, func() { client.Close(); upstream.Close() })
	defer stop()
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		if err := e.outward(from, upstream); err != nil {
			e.ending(err)
			client.Close()
			upstream.Close()
			return
		}
		_ = upstream.CloseWrite()
	}()
	if err := pass(client, upstream); err != nil {
		e.ending(err)
		client.Close()
		upstream.Close()
	} else {
		_ = client.CloseWrite()
	}
	<-finished
}

// ending notes why a tunnel broke. That a connection is cut off rather than
// closed is how many clients and servers part; it is told, and no failure.
func (e *exchange) ending(err error) {
	var why *refusal
	if errors.As(err, &why) {
		e.note(why.verdict, why.reason)
		return
	}
	e.note(Allowed, "the connection was cut off")
}

// outward copies what the client sends, after a look at how it begins.
func (e *exchange) outward(from io.Reader, upstream *counted) error {
	if e.rules.mode == Allowlist {
		if err := e.greet(from, upstream); err != nil {
			return err
		}
	}
	return pass(upstream, from)
}

// greet passes on the first bytes once they are known to ask for nobody else.
func (e *exchange) greet(from io.Reader, upstream *counted) error {
	var first []byte
	buf := buffers.Get()
	defer buffers.Put(buf)
	for {
		n, readErr := from.Read(buf)
		first = append(first, buf[:n]...)
		state, name := parseHello(first)
		if state == unfinished && len(first) > maxHello {
			state = broken
		}
		switch {
		case state == broken:
			_, _ = e.line.Write(alert)
			return refuse(fmt.Sprintf(`the TLS connection to %s begins in a way that cannot be read, so egress policy "allowlist" does not let it through`, e.host.with(e.port)))
		case state == greeting && !e.named(name):
			_, _ = e.line.Write(alert)
			return refuse(fmt.Sprintf(`the TLS connection to %s asks for another host, %.100q, so egress policy "allowlist" does not let it through`, e.host.with(e.port), name))
		case state != unfinished || readErr != nil:
			if len(first) > 0 {
				if _, err := upstream.Write(first); err != nil {
					return err
				}
			}
			if readErr == io.EOF {
				return nil
			}
			return readErr
		}
	}
}

// named says whether a TLS client that asks for this name asks for our host.
func (e *exchange) named(name string) bool {
	if name == "" {
		return true
	}
	h, err := parseHost(strings.ToLower(name))
	return err == nil && h == e.host
}

// pass copies until the end.
func pass(to io.Writer, from io.Reader) error {
	buf := buffers.Get()
	defer buffers.Put(buf)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

package egress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// authority returns the destination of a CONNECT.
func authority(r *http.Request) (host, uint16, error) {
	text := r.URL.Host
	if text == "" || r.URL.Path != "" || r.URL.User != nil {
		return host{}, 0, misuse("CONNECT must name a host and a port")
	}
	h, err := parseHost(r.URL.Hostname())
	if err != nil {
		return host{}, 0, misuse(storable(r.URL.Hostname(), 100) + ": " + err.Error())
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
	from := io.MultiReader(bytes.NewReader(early), conn)
	if e.rules.mode != Allowlist {
		e.tunnel(from, c)
		return
	}
	first, kind, err := e.greet(from, c)
	switch {
	case err != nil:
		e.ending(err)
	case kind == plainHTTP:
		c.Close()
		p.inspect(e, first, from)
	default:
		e.tunnel(io.MultiReader(bytes.NewReader(first), from), c)
	}
}

// inspect serves what a client sends through a tunnel as requests of their own:
// each is for the tunnel's host, or refused.
func (p *Proxy) inspect(e *exchange, first []byte, from io.Reader) {
	e.end() // the requests are recorded one by one
	inner := &line{Conn: replayed{e.line, io.MultiReader(bytes.NewReader(first), from)}, box: e.line.box, call: e.line.call,
		inside: &destination{e.host, e.port}, ended: make(chan struct{})}
	select {
	case p.next <- inner:
		<-inner.ended
	case <-p.ctx.Done():
	}
	inner.Close()
	if inner.upstream != nil {
		inner.upstream.CloseIdleConnections()
	}
}

// replayed is a connection of which something was read already.
type replayed struct {
	*line
	from io.Reader
}

func (r replayed) Read(b []byte) (int, error) { return r.from.Read(b) }

// destination is what a tunnel was opened to.
type destination struct {
	host host
	port uint16
}

// request returns the destination of a request inside the tunnel: the tunnel's host, which it
// must name.
func (d *destination) request(r *http.Request) (host, uint16, error) {
	if r.Method == http.MethodConnect || r.URL.Host != "" || r.URL.Scheme != "" {
		return d.host, d.port, misuse("there is no proxy inside a tunnel: ask " + d.host.with(d.port) + " itself")
	}
	name, portText, err := net.SplitHostPort(r.Host)
	if err != nil {
		name, portText = strings.TrimSuffix(strings.TrimPrefix(r.Host, "["), "]"), "80"
	}
	h, errHost := parseHost(strings.ToLower(name))
	port, errPort := parsePort(portText)
	// Clients leave out the port that goes with the scheme, some leave out any.
	if errHost != nil || errPort != nil || h != d.host || err == nil && port != d.port {
		return d.host, d.port, refuse(fmt.Sprintf(`the request inside the tunnel to %s asks for another host, %.100q, so egress policy "allowlist" does not allow it`, d.host.with(d.port), r.Host))
	}
	r.URL.Scheme, r.URL.Host = "http", d.host.with(d.port)
	return d.host, d.port, nil
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
		if err := pass(upstream, from); err != nil {
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

// greet reads the first bytes of the client until they are known to name no other host, and
// returns them. Nothing is sent before.
func (e *exchange) greet(from io.Reader, upstream io.Closer) (first []byte, kind opening, err error) {
	stop := context.AfterFunc(e.ctx, func() { e.line.Close(); upstream.Close() })
	defer stop()
	buf := buffers.Get()
	defer buffers.Put(buf)
	for {
		n, readErr := from.Read(buf)
		first = append(first, buf[:n]...)
		kind, name := parseOpening(first)
		switch {
		case kind == unfinished && readErr == io.EOF && len(first) == 0:
			return nil, kind, nil // it has nothing to say
		case kind == unfinished && readErr == nil && len(first) <= maxHello:
			continue
		case kind == unfinished && readErr != nil && readErr != io.EOF:
			return nil, kind, readErr
		case kind == plainHTTP, kind == secureShell && e.rules.explicit(e.host, e.port):
			return first, kind, nil
		case kind == greeting && e.named(name):
			return first, kind, nil
		}
		if first[0] == recordHandshake {
			_, _ = e.line.Write(alert)
		}
		return nil, kind, refuse(fmt.Sprintf(`%s, so egress policy "allowlist" does not allow it`, e.unlike(kind, name)))
	}
}

// unlike says what is wrong with how a tunnel begins.
func (e *exchange) unlike(kind opening, name string) string {
	at := e.host.with(e.port)
	switch {
	case kind == greeting && name == "":
		return "the TLS connection to " + at + " does not say which host it is for (SNI)"
	case kind == greeting:
		return fmt.Sprintf("the TLS connection to %s asks for another host, %.100q", at, name)
	case kind == secureShell:
		return "the tunnel to " + at + " carries SSH, for which the list must name the port"
	case kind == broken, kind == unfinished:
		return "the connection to " + at + " begins in a way that cannot be read"
	}
	return "the tunnel to " + at + " carries neither TLS nor HTTP"
}

// named says whether a TLS client that asks for this name asks for our host. A
// host that is listed by its address has no name to ask for.
func (e *exchange) named(name string) bool {
	if name == "" {
		return e.host.addr.IsValid()
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

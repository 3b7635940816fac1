package egress

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"strings"
	"sync"
	"time"
)

// The bounds of a host's side.
const (
	maxAnswerHead = 256 << 10
	keptUpstream  = 30 * time.Second
	keptPerLine   = 8
)

// target returns the destination of a plain request. The Host header is ignored if the request
// line has a host.
func target(r *http.Request) (host, uint16, error) {
	switch {
	case r.URL.Scheme == "" || r.URL.Host == "":
		return host{}, 0, misuse("this is the sandbox's proxy to the outside, not a web server; programs find it by the variables http_proxy and https_proxy")
	case r.URL.Scheme == "https":
		return host{}, 0, misuse("ask for https with CONNECT: this proxy does not speak TLS in place of its client")
	case r.URL.Scheme != "http":
		return host{}, 0, misuse("this proxy can be asked for http and https only")
	}
	h, err := parseHost(r.URL.Hostname())
	if err != nil {
		return host{}, 0, misuse(storable(r.URL.Hostname(), 100) + ": " + err.Error())
	}
	port := uint16(80)
	if text := r.URL.Port(); text != "" {
		if port, err = parsePort(text); err != nil {
			return host{}, 0, misuse(err.Error())
		}
	}
	return h, port, nil
}

// exchangeKey is where a request's context holds its exchange.
type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange { return ctx.Value(exchangeKey{}).(*exchange) }

// plain serves a request in absolute form.
func (p *Proxy) plain(w http.ResponseWriter, r *http.Request, e *exchange) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		r.Header.Del("Upgrade") // other protocols could carry requests that are not checked
	}
	if r.Body != nil {
		r.Body = &upload{r.Body, e}
	}
	// What the host leaves out is not ours to add.
	w.Header()["Date"], w.Header()["Content-Type"] = nil, nil
	p.forward.ServeHTTP(w, r.WithContext(context.WithValue(e.ctx, exchangeKey{}, e)))
}

// forwarder does what every proxy does with a request: headers that are for one
// connection only, 100 Continue, trailers, WebSocket.
func (p *Proxy) forwarder() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite:        rewrite,
		Transport:      through{p},
		ModifyResponse: arrived,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			e := exchangeOf(r.Context())
			if cause := context.Cause(r.Context()); cause != nil {
				err = cause
			}
			why := explain(err, e.host, e.port)
			e.note(why.verdict, why.reason)
			why.answer(w, r)
		},
		FlushInterval: -1,
		BufferPool:    buffers,
		ErrorLog:      p.quiet,
	}
}

// rewrite makes the request that is sent to the host.
func rewrite(pr *httputil.ProxyRequest) {
	e := exchangeOf(pr.In.Context())
	out := pr.Out
	out.URL.Host, out.URL.User = e.host.with(e.port), nil
	if out.Host = out.URL.Host; e.port == 80 {
		out.Host = strings.TrimSuffix(out.Host, ":80")
	}
	// These are put back: a sandbox may say of itself what it likes.
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if v, ok := pr.In.Header[name]; ok {
			out.Header[name] = v
		}
	}
	out.URL.RawQuery = pr.In.URL.RawQuery
	out.Trailer = pr.In.Trailer // the same map: it is filled when the body has been read
	pr.Out = e.counting(out)
}

// counting makes the connection that a request gets count for its exchange.
func (e *exchange) counting(r *http.Request) *http.Request {
	return r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) {
			conn := i.Conn
			if t, ok := conn.(*tls.Conn); ok {
				conn = t.NetConn()
			}
			if c, ok := conn.(*counted); ok {
				c.by.Store(e)
			}
		},
	}))
}

// through sends a request over the connections of its own line.
type through struct{ p *Proxy }

func (t through) RoundTrip(r *http.Request) (*http.Response, error) {
	l := exchangeOf(r.Context()).line
	if l.upstream == nil { // requests of a line come one after the other
		one := new(http.Protocols)
		one.SetHTTP1(true)
		l.upstream = &http.Transport{
			DialContext:            t.p.dial,
			Protocols:              one,
			DisableCompression:     true,
			ExpectContinueTimeout:  time.Second,
			IdleConnTimeout:        keptUpstream,
			MaxIdleConns:           keptPerLine,
			MaxResponseHeaderBytes: maxAnswerHead,
		}
	}
	return l.upstream.RoundTrip(r)
}

// arrived sees the head of an answer before the client does.
func arrived(resp *http.Response) error {
	ctx := resp.Request.Context()
	e := exchangeOf(ctx)
	e.answering.Store(true)
	if err := context.Cause(ctx); err != nil { // cancelled just now, before the first byte of the answer
		e.answering.Store(false)
		return err
	}
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols:
	case resp.Body == http.NoBody && e.uploaded.Load():
		e.end()
	default:
		resp.Body = &download{resp.Body, e}
	}
	return nil
}

// upload is a request's body.
type upload struct {
	io.ReadCloser
	e *exchange
}

func (u *upload) Read(b []byte) (int, error) {
	n, err := u.ReadCloser.Read(b)
	if err == io.EOF {
		u.e.uploaded.Store(true)
	}
	return n, err
}

// download is an answer's body. The exchange is over with its last byte, so
// that a client that has it all finds its request recorded.
type download struct {
	io.ReadCloser
	e *exchange
}

func (d *download) Read(b []byte) (int, error) {
	n, err := d.ReadCloser.Read(b)
	switch {
	case err == io.EOF && d.e.uploaded.Load():
		d.e.end()
	case err != nil && err != io.EOF:
		if cause := context.Cause(d.e.ctx); cause != nil {
			err = cause
		}
		why := explain(err, d.e.host, d.e.port)
		d.e.note(why.verdict, why.reason)
	}
	return n, err
}

// buffers are what bodies and tunnels are copied with.
var buffers = &bufferPool{}

const bufferSize = 32 << 10

type bufferPool struct{ pool sync.Pool }

func (p *bufferPool) Get() []byte {
	if b, ok := p.pool.Get().(*[bufferSize]byte); ok {
		return b[:]
	}
	return new([bufferSize]byte)[:]
}

func (p *bufferPool) Put(b []byte) { p.pool.Put((*[bufferSize]byte)(b)) }

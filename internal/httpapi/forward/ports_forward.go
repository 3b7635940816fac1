package forward

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"

	"deckhand/internal/httpapi/rest"
	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	"deckhand/internal/workspace"
)

// forwarder carries requests to ports of sandboxes. Nothing is kept open between
// two of them: a connection is a use of its sandbox, which would not end.
func (d *Handlers) forwarder() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite:        d.outgoing,
		ModifyResponse: d.Incoming,
		ErrorHandler:   d.unreached,
		FlushInterval:  -1, // what an application sends in pieces is meant to arrive in pieces
		ErrorLog:       slog.NewLogLogger(d.Logger.Handler(), slog.LevelDebug),
		Transport: &http.Transport{
			DisableKeepAlives:  true,
			DisableCompression: true,
			DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
				id, port, err := splitTarget(addr)
				if err != nil {
					return nil, err
				}
				return d.Workspaces.Dial(ctx, id, port)
			},
		},
	}
}

// splitTarget takes apart the address that the transport dials: the conversation
// stands where others have a host.
func splitTarget(addr string) (session.ID, int, error) {
	id, number, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, err
	}
	port, err := strconv.Atoi(number)
	return session.ID(id), port, err
}

// Serve answers a request to a name below the domain of the forwarded ports. found is
// told whose port it is before anything is answered.
func (d *Handlers) Serve(w http.ResponseWriter, r *http.Request, label string, port int, found func(id string)) {
	if port == 0 || r.Method == http.MethodConnect {
		say(w, http.StatusNotFound, "Unknown host name.")
		return
	}
	if strings.Contains(strings.Join(r.Header["Via"], ","), d.Via) { // the sandbox shares our network, and the port is ours
		say(w, http.StatusLoopDetected, "This port belongs to Deckhand itself.")
		return
	}
	id, err := d.Find(r, label, port)
	if err != nil {
		d.unreached(w, r, err)
		return
	}
	found(string(id))
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(d.Life.Closing, func() { cancel(rest.ErrClosing) })()
	r = r.WithContext(ctx)
	to := *r.URL
	to.Scheme, to.Host = "http", net.JoinHostPort(string(id), strconv.Itoa(port))
	r.URL = &to
	clear(w.Header()) // the answer's headers are the application's affair
	d.proxy.ServeHTTP(w, r)
}

// outgoing makes the request that the application gets: as it came, without what
// is between the person and us. The name stays, so that addresses that the
// application makes of it, and its own checks of where a request comes from, hold.
func (d *Handlers) outgoing(p *httputil.ProxyRequest) {
	out := p.Out
	out.Host, out.URL.RawQuery = p.In.Host, p.In.URL.RawQuery
	out.Header.Set("X-Forwarded-Host", p.In.Host)
	out.Header.Set("X-Forwarded-Proto", "http")
	if p.In.TLS != nil || p.In.Header.Get("X-Forwarded-Proto") == "https" {
		out.Header.Set("X-Forwarded-Proto", "https")
	}
	out.Header.Add("Via", "1.1 "+d.Via)
	out.Header.Del("X-Session-Api-Key")
	for name, values := range out.Header {
		for _, v := range values {
			if rest.KeyForm.MatchString(v) && name != "Cookie" {
				out.Header.Del(name)
			}
		}
	}
	var cookies []string
	for _, c := range strings.Split(strings.Join(out.Header["Cookie"], ";"), ";") {
		if name, _, _ := strings.Cut(c, "="); !rest.IsLogin(name) && strings.TrimSpace(c) != "" {
			cookies = append(cookies, strings.TrimSpace(c))
		}
	}
	if out.Header.Del("Cookie"); len(cookies) > 0 {
		out.Header.Set("Cookie", strings.Join(cookies, "; "))
	}
}

// Incoming allows only Deckhand's pages to show the application's in a frame. An
// address is a permission, so it is not told to the sites that a page links to.
func (d *Handlers) Incoming(res *http.Response) error {
	h := res.Header
	h.Add("Content-Security-Policy", "frame-ancestors 'self' "+strings.Join(d.ownOrigins(res.Request.Host), " "))
	if origin := res.Request.Header.Get("Origin"); d.FrontEnd && origin != "" && h.Get("Access-Control-Allow-Origin") == "" && d.ownPage(origin, res.Request.Host) {
		// It looks whether the application answers before it shows it.
		h.Set("Access-Control-Allow-Origin", origin)
		h.Add("Vary", "Origin")
	}
	if h.Get("Referrer-Policy") == "" {
		h.Set("Referrer-Policy", "same-origin")
	}
	cookies := h["Set-Cookie"]
	delete(h, "Set-Cookie")
	for _, line := range cookies {
		if name, _, _ := strings.Cut(line, "="); !rest.IsLogin(name) {
			h.Add("Set-Cookie", line)
		}
	}
	return nil
}

// ownPage reports whether an Origin header is that of our pages.
func (d *Handlers) ownPage(origin, host string) bool {
	_, name, _ := strings.Cut(origin, "://")
	for _, own := range d.ownOrigins(host) {
		if own == origin || own == name {
			return true
		}
	}
	return false
}

// ownOrigins are the origins of our pages, for a browser that reaches a forwarded
// port by this name.
func (d *Handlers) ownOrigins(host string) []string {
	scheme, at, names := d.Forwarding.Scheme, d.Forwarding.Port, slices.Sorted(maps.Keys(d.Guard.Hosts))
	switch {
	case d.Guard.Origin != "":
		return []string{d.Guard.Origin}
	case d.Forwarding.Domain == rest.LocalDomain:
		scheme, names = "*", []string{rest.LocalDomain, "127.0.0.1"}
		_, at, _ = net.SplitHostPort(host)
	}
	var out []string
	for _, name := range names {
		if at != "" {
			name = net.JoinHostPort(name, at)
		}
		if scheme != "*" {
			name = scheme + "://" + name
		}
		out = append(out, name)
	}
	return out
}

// unreached says why the application did not answer.
func (d *Handlers) unreached(w http.ResponseWriter, r *http.Request, err error) {
	status, text := http.StatusBadGateway, "The application did not respond or closed the connection."
	var f *rest.Fault
	switch {
	case errors.As(err, &f):
		status, text = f.Status, f.Msg
		maps.Copy(w.Header(), f.Header)
	case errors.Is(context.Cause(r.Context()), rest.ErrClosing):
		status, text = http.StatusServiceUnavailable, "The server is stopping. Try again."
	case errors.Is(err, workspace.ErrAsleep), errors.Is(err, sandbox.ErrLost), errors.Is(err, sandbox.ErrGone):
		text = "The sandbox is not running. Start the conversation and the application, then try again."
	case errors.Is(err, session.ErrNotFound):
		status, text = http.StatusNotFound, "Unknown host name. The conversation may have been deleted; otherwise get its current URLs from web-hosts."
	case errors.Is(err, fs.ErrNotExist):
		text = "No process in the sandbox listens on this port."
	case errors.Is(err, context.Canceled): // the client is gone
	default:
		d.Logger.DebugContext(r.Context(), "sandbox port did not respond", "error", err)
	}
	say(w, status, text)
}

// say answers in the server's own words, for people and programs alike.
func say(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n"))
}

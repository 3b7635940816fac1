package httpapi

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"deckhand/internal/httpapi/forward"
	"deckhand/internal/httpapi/git"
	"deckhand/internal/httpapi/legacy"
	"deckhand/internal/httpapi/rest"
	"deckhand/internal/httpapi/status"
)

// recorder remembers what was answered.
type recorder struct {
	http.ResponseWriter
	id     string // of the request
	status int
	route  string
	who    string
	family rest.Family
	stream bool
	// port is that of a sandbox that the request was for.
	port int
	// session is the conversation that was made.
	session string
	// detached is a stream that goes on after the handler.
	detached func()
}

func (w *recorder) WriteHeader(status int) {
	if w.status < http.StatusOK { // what comes before the answer is not it
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController through.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Hijack is for WebSocket libraries that ask for the interface itself. A stream
// that is detached has a status already.
func (w *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.status == 0 {
		w.status = http.StatusSwitchingProtocols
	}
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// Detachable and Detach implement rest.Detacher.
func (w *recorder) Detachable() bool  { _, ok := w.ResponseWriter.(http.Hijacker); return ok }
func (w *recorder) Detach(run func()) { w.detached = run }

// goOn runs a detached stream to its end, and then ends its request. What net/http
// needs for a request is let go, which is the purpose of detaching.
func (d *Handler) goOn(w *recorder, r *http.Request, begin time.Time, end func(status int)) {
	run := w.detached
	w.detached, w.ResponseWriter, w.session = nil, nil, r.PathValue("conversation_id")
	r = (&http.Request{Method: r.Method, URL: &url.URL{Path: r.URL.Path}}).WithContext(r.Context())
	d.streams.Start(func() {
		defer func() {
			if p := recover(); p != nil {
				d.Logger.ErrorContext(r.Context(), "panic in a stream", "request", w.id, "panic", p, "stack", string(debug.Stack()))
			}
			end(w.status)
			d.finished(w, r, w.id, time.Since(begin))
		}()
		run()
	})
}

// ServeHTTP is where every request comes in and every answer goes out.
func (d *Handler) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	d.described()
	begin := time.Now()
	id := requestID()
	w := &recorder{ResponseWriter: rw, id: id}
	d.pending.Add(1)
	h := rw.Header()
	h["X-Request-Id"] = []string{id}
	h["X-Content-Type-Options"] = nosniff
	h["Cache-Control"] = noStore
	h["Content-Security-Policy"] = inert
	h["Cross-Origin-Resource-Policy"] = sameOrigin
	end := func(int) {}
	if d.Telemetry.Trace != nil {
		var ctx context.Context
		ctx, end = d.Telemetry.Trace(r.Context(), r.Method)
		r = r.WithContext(ctx)
	}
	defer func() {
		p := recover()
		if p != nil && p != http.ErrAbortHandler {
			d.Logger.ErrorContext(r.Context(), "panic in a request", "request", id, "panic", p, "stack", string(debug.Stack()))
			if w.status == 0 {
				status.Of(errors.New("panic")).Write(w, w.family)
				p = nil
			}
		}
		if !w.stream {
			d.pending.Add(-1)
		}
		if w.detached != nil {
			d.goOn(w, r, begin, end)
			return
		}
		end(w.status)
		d.finished(w, r, id, time.Since(begin))
		if p != nil { // half an answer must not look like a whole one
			panic(http.ErrAbortHandler)
		}
	}()
	if label, port, below := d.Forwarding.LabelOf(r.Host); below && !d.guard.Hosts[rest.CanonicalHost(r.Host)] { // it is not for us
		d.forward(w, r, label, port)
		return
	}
	if f := d.guard.Admit(h, r); f != nil {
		f.Write(w, rest.Plain)
		return
	}
	if d.guard.Preflight(w, r) {
		return
	}
	if d.guard.AtPrefix(w, r) {
		return
	}
	r = d.guard.Below(r)
	if unclean(r) {
		d.noRoute(w, r)
		return
	}
	d.mux.ServeHTTP(w, git.FoldRepository(r))
}

var (
	nosniff = []string{"nosniff"}
	noStore = []string{"no-store"}
	// inert is the policy of every answer that has no other: opened by itself it runs and loads nothing.
	inert = []string{"default-src 'none'; frame-ancestors 'none'"}
	// sameOrigin keeps what we answer out of other sites' pages, as pictures and scripts too.
	sameOrigin = []string{"same-origin"}
)

func requestID() string {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// finished logs and counts. Health checks are counted only.
func (d *Handler) finished(w *recorder, r *http.Request, id string, took time.Duration) {
	if d.Telemetry.Observe != nil {
		route := w.route
		if route == "" {
			route = "none"
		}
		d.Telemetry.Observe(Finished{Route: route, Method: knownMethod(r.Method), Status: w.status, Took: took, Stream: w.stream})
	}
	level := slog.LevelInfo
	switch {
	case w.port > 0: // what an application answers is its own affair
	case healthy[w.route]: // a failure has its own line
		level = slog.LevelDebug
	case w.status >= 500:
		level = slog.LevelError
	default:
		d.lastUsed.Store(time.Now().UnixNano())
	}
	if !d.Logger.Enabled(r.Context(), level) {
		return
	}
	where := slog.String("path", rest.KeyForm.ReplaceAllLiteralString(r.URL.Path, "dh_…"))
	if w.port > 0 { // an application may put its own secrets into its paths
		where = slog.Int("port", w.port)
	}
	attrs := []slog.Attr{
		slog.String("request", id), slog.String("method", knownMethod(r.Method)), where, slog.Int("status", w.status), slog.Float64("took_ms", float64(took.Microseconds())/1000),
		slog.String("client", rest.ClientHost(r)),
	}
	if via := r.Header.Get("X-Forwarded-For"); via != "" { // as a proxy says; without one, anyone can
		attrs = append(attrs, slog.String("forwarded_for", via[:min(len(via), 100)]))
	}
	if w.who != "" {
		attrs = append(attrs, slog.String("user", w.who))
	}
	s := r.PathValue("conversation_id")
	if s == "" {
		s = w.session
	}
	if s != "" {
		attrs = append(attrs, slog.String("session", s))
	}
	d.Logger.LogAttrs(r.Context(), level, "request", attrs...)
}

// healthy are the routes that machines and polling clients request without user activity.
var healthy = map[string]bool{"/alive": true, "/health": true, "/ready": true, "/metrics": true, "/api/admin/health": true, "/socket.io": true, "/socket.io/{$}": true}

// knownMethod keeps what a client invents out of logs and metrics.
func knownMethod(m string) string {
	switch m {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS":
		return m
	}
	return "OTHER"
}

// unclean paths would be redirected by the mux; we have no such links, so they are unknown.
func unclean(r *http.Request) bool {
	p := r.URL.Path
	return strings.Contains(p, "//") || strings.Contains(p, "/./") || strings.Contains(p, "/../") ||
		strings.HasSuffix(p, "/.") || strings.HasSuffix(p, "/..")
}

// noRoute answers for paths and methods that are not in the table: strangers learn nothing.
func (d *Handler) noRoute(w *recorder, r *http.Request) {
	if p := r.URL.Path; p == "/socket.io" || p == "/socket.io/" { // the protocol has its own word for a wrong method
		w.route = "/socket.io/{$}"
		d.legacy.ServeSocketIO(w, r)
		return
	}
	if d.Legacy.FrontEnd != nil && d.serveFrontEnd(w, r) {
		return
	}
	_, f := d.identify(w, r)
	if d.mistyped(r) && (f == nil || f.Status == http.StatusUnauthorized) {
		_ = d.pages.WriteMissing(w, r, f)
		return
	}
	if f != nil {
		f.Write(w, rest.Plain)
		return
	}
	if takes := d.methods(r); len(takes) > 0 && !unclean(r) {
		rest.NoMethod(knownMethod(r.Method), takes).Write(w, rest.Plain)
		return
	}
	rest.NoPath().Write(w, rest.Plain)
}

// methods are what the path takes instead.
func (d *Handler) methods(r *http.Request) []string {
	var out []string
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		try := r.Clone(r.Context())
		try.Method = m
		if _, pattern := d.mux.Handler(try); pattern != "" && pattern != anything {
			out = append(out, m)
		}
	}
	return out
}

// handler puts one route behind the key, the limits and the retry memory.
func (d *Handler) handler(r *rest.Route) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		w := rw.(*recorder)
		w.route, w.family, w.stream = r.Path, r.Family, r.Stream
		req = rest.ForLog(req, w.id)
		if r.Stream {
			d.pending.Add(-1)
		}
		if d.Telemetry.NameTrace != nil {
			d.Telemetry.NameTrace(req.Context(), r.Method+" "+r.Path)
		}
		if err := d.answer(w, req, r); err != nil {
			f := status.For(req.Context(), err)
			if f.Status >= 500 {
				d.Logger.ErrorContext(req.Context(), "request failed", "request", w.id, "route", r.Path, "error", err)
			}
			switch {
			case w.status != 0: // it is too late
			case f.Status == http.StatusUnauthorized && r.Tag == rest.TagPages && rest.WantsPage(req):
				_ = d.pages.WriteLogin(w, req, f.Status) // a person, who can do something about it
			default:
				f.Write(w, r.Family)
			}
		}
	})
}

func (d *Handler) answer(w *recorder, req *http.Request, r *rest.Route) (err error) {
	c := &rest.Call{HTTP: req}
	if !r.Public {
		var f *rest.Fault
		if c, f = d.identify(w, req); f != nil {
			return f
		}
		if r.Admin && !c.Who.Admin {
			return rest.NeedsAdmin()
		}
		if d.legacy.FromPage(c) {
			defer func() { err = legacy.WithMessage(err) }()
		}
	}
	if passed, err := d.elsewhere(w, req, r, c.Who.User); passed || err != nil {
		return err
	}
	if r.Upload {
		return r.Serve(d.schemas, w, req, c)
	}
	if hasBody(req.Method) || r.Body {
		limit := int64(rest.MaxBody)
		if r.Public {
			limit = rest.MaxPublicBody
		}
		body, release, err := d.intake.ReadBody(w, req, c.Who.User, limit)
		defer release()
		if err != nil {
			return err
		}
		c.Raw = body
	}
	defer func() { w.session = c.Session }() // known when it was made
	if key := req.Header["Idempotency-Key"]; len(key) > 0 && req.Method == http.MethodPost && !r.Public {
		return d.Retries.Once(w, c, key, func(w http.ResponseWriter) error { return r.Serve(d.schemas, w, req, c) })
	}
	return r.Serve(d.schemas, w, req, c)
}

func hasBody(method string) bool {
	return method == http.MethodPost || method == http.MethodPatch || method == http.MethodPut
}

// GuardHost refuses requests to names that are not ours, for handlers outside the API.
func (d *Handler) GuardHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !d.guard.HostAllowed(r.Host) {
			http.Error(w, "host name not allowed", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// identify finds out who is asking, and notes it for the log.
func (d *Handler) identify(w *recorder, r *http.Request) (*rest.Call, *rest.Fault) {
	c, f := d.guard.Identify(w.Header(), r)
	if c != nil {
		w.who = c.Who.User
	}
	return c, f
}

// forward answers a request for a port of a sandbox. No other request gets there, and
// none of these gets to our own routes.
func (d *Handler) forward(w *recorder, r *http.Request, label string, port int) {
	w.route, w.port, w.stream = forward.Route, port, true
	d.pending.Add(-1)
	if d.Server.Peers != nil && d.Server.Peers.Port(w, r, label, port, func() bool { return d.Access.Gate.AllowFailure(r.RemoteAddr).OK }) {
		return
	}
	d.ports.Serve(w, r, label, port, func(id string) { w.session = id })
}

// mistyped is true where a person opened an address that is not there.
func (d *Handler) mistyped(r *http.Request) bool {
	return !d.pages.PlainLogin() && r.Method == http.MethodGet && rest.WantsPage(r) && !unclean(r) && !strings.ContainsFunc(r.URL.Path, misread) && len(d.methods(r)) == 0
}

// misread are characters that browsers take for a slash, or leave out: with them a path can become another site's address.
func misread(c rune) bool { return c == '\\' || c <= ' ' }

// frontEndRoute is what logs and metrics call a legacy front end.
const frontEndRoute = "/{front_end...}"

// serveFrontEnd lets a legacy front end answer for a path that no route has, and says whether it did.
func (d *Handler) serveFrontEnd(w *recorder, r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || unclean(r) || d.taken[rest.FirstPart(r.URL.Path)] {
		return false
	}
	w.route = frontEndRoute
	return d.legacy.ServeFrontEnd(w, r)
}

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
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"deckhand/api"
)

// recorder remembers what was answered.
type recorder struct {
	http.ResponseWriter
	id     string // of the request
	status int
	route  string
	who    string
	family family
	stream bool
	// port is that of a sandbox that the request was for.
	port int
	// session is the conversation that was made.
	session string
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

// Hijack is for WebSocket libraries that ask for the interface itself.
func (w *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.status = http.StatusSwitchingProtocols
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// ServeHTTP is where every request comes in and every answer goes out.
func (d *Door) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
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
	if d.Trace != nil {
		var ctx context.Context
		ctx, end = d.Trace(r.Context(), r.Method)
		r = r.WithContext(ctx)
	}
	defer func() {
		p := recover()
		if p != nil && p != http.ErrAbortHandler {
			d.Logger.Error("panic in a request", "request", id, "panic", p, "stack", string(debug.Stack()))
			if w.status == 0 {
				translate(errors.New("panic")).write(w, w.family)
				p = nil
			}
		}
		if !w.stream {
			d.pending.Add(-1)
		}
		end(w.status)
		d.finished(w, r, id, time.Since(begin))
		if p != nil { // half an answer must not look like a whole one
			panic(http.ErrAbortHandler)
		}
	}()
	if label, port, below := d.Forwarding.labelOf(r.Host); below && !d.hosts[canonicalHost(r.Host)] { // it is not for us
		d.forward(w, r, label, port)
		return
	}
	if f := d.admit(h, r); f != nil {
		f.write(w, plain)
		return
	}
	if d.preflight(w, r) {
		return
	}
	if d.atPrefix(w, r) {
		return
	}
	r = d.below(r)
	if unclean(r) {
		d.noRoute(w, r)
		return
	}
	d.mux.ServeHTTP(w, foldRepository(r))
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
func (d *Door) finished(w *recorder, r *http.Request, id string, took time.Duration) {
	if d.Observe != nil {
		route := w.route
		if route == "" {
			route = "none"
		}
		d.Observe(Finished{Route: route, Method: knownMethod(r.Method), Status: w.status, Took: took, Stream: w.stream})
	}
	level := slog.LevelInfo
	switch {
	case w.port > 0: // what an application answers is its own affair
	case w.status >= 500:
		level = slog.LevelError
	case healthy[w.route]:
		level = slog.LevelDebug
	default:
		d.lastUsed.Store(time.Now().UnixNano())
	}
	if !d.Logger.Enabled(r.Context(), level) {
		return
	}
	where := slog.String("path", keyForm.ReplaceAllLiteralString(r.URL.Path, "dh_…"))
	if w.port > 0 { // an application may put its own secrets into its paths
		where = slog.Int("port", w.port)
	}
	attrs := []slog.Attr{
		slog.String("request", id), slog.String("method", knownMethod(r.Method)), where, slog.Int("status", w.status), slog.Duration("took", took),
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

// keyForm is what a key looks like, for when somebody writes one where its id belongs.
var keyForm = regexp.MustCompile(`dh_[A-Za-z0-9_-]{43}|dhp_[A-Za-z0-9_.-]{43,}`)

// healthy are routes that are asked without anybody doing anything: by machines, and
// by clients that poll.
var healthy = map[string]bool{"/alive": true, "/health": true, "/ready": true, "/metrics": true, "/socket.io": true, "/socket.io/{$}": true}

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
func (d *Door) noRoute(w *recorder, r *http.Request) {
	if p := r.URL.Path; p == "/socket.io" || p == "/socket.io/" { // the protocol has its own word for a wrong method
		w.route = "/socket.io/{$}"
		d.sockets.server.ServeHTTP(w, r)
		return
	}
	if d.FrontEnd != nil && d.serveFrontEnd(w, r) {
		return
	}
	_, f := d.identify(w, r)
	if d.mistyped(r) && (f == nil || f.status == http.StatusUnauthorized) {
		_ = d.writeMissing(w, r, f)
		return
	}
	if f != nil {
		f.write(w, plain)
		return
	}
	if takes := d.methods(r); len(takes) > 0 && !unclean(r) {
		f := fail(http.StatusMethodNotAllowed, api.CodeBadRequest, "Method "+knownMethod(r.Method)+" is not allowed. Allowed: "+strings.Join(takes, ", ")+".")
		f.header = http.Header{"Allow": {strings.Join(takes, ", ")}}
		f.write(w, plain)
		return
	}
	fail(http.StatusNotFound, api.CodeNotFound, "Path not found. See /docs for all paths.").write(w, plain)
}

// methods are what the path takes instead.
func (d *Door) methods(r *http.Request) []string {
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
func (d *Door) handler(r *route) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		w := rw.(*recorder)
		w.route, w.family, w.stream = r.path, r.family, r.stream
		if r.stream {
			d.pending.Add(-1)
		}
		if d.NameTrace != nil {
			d.NameTrace(req.Context(), r.method+" "+r.path)
		}
		if err := d.answer(w, req, r); err != nil {
			f := translate(err)
			if f.status >= 500 {
				d.Logger.Error("request failed", "request", w.id, "route", r.path, "error", err)
			}
			switch {
			case w.status != 0: // it is too late
			case f.status == http.StatusUnauthorized && r.tag == tagPages && wantsPage(req):
				_ = d.writeLogin(w, req, f.status) // a person, who can do something about it
			default:
				f.write(w, r.family)
			}
		}
	})
}

func (d *Door) answer(w *recorder, req *http.Request, r *route) (err error) {
	c := &call{http: req}
	if !r.public {
		var f *fault
		if c, f = d.identify(w, req); f != nil {
			return f
		}
		if r.admin && !c.who.Admin {
			return fail(http.StatusForbidden, api.CodeForbidden, "This operation requires an admin key.")
		}
		if d.legacyPage(c) {
			defer func() { err = withMessage(err) }()
		}
	}
	if r.upload {
		return r.serve(d, w, req, c)
	}
	if hasBody(req.Method) || r.body {
		limit := int64(maxBody)
		if r.public {
			limit = maxPublicBody
		}
		body, release, err := d.readBody(w, req, c.who.User, limit)
		defer release()
		if err != nil {
			return err
		}
		c.raw = body
	}
	defer func() { w.session = c.session }() // known when it was made
	if key := req.Header["Idempotency-Key"]; len(key) > 0 && req.Method == http.MethodPost && !r.public {
		return d.once(w, req, r, c, key)
	}
	return r.serve(d, w, req, c)
}

func hasBody(method string) bool {
	return method == http.MethodPost || method == http.MethodPatch || method == http.MethodPut
}

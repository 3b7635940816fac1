package httpapi

import (
	"errors"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"deckhand/api"
	"deckhand/internal/access"
)

// cookieName is the browser's login. Over TLS it has a prefix by which browsers take it from
// this very host alone: else what runs in a sandbox, on a neighbouring name, could log a
// visitor in as somebody else.
const (
	cookieName = "deckhand_session"
	ownPrefix  = "__Host-"
)

// loginOf is the login that a browser sends. One without the prefix counts only where it
// cannot have it: without TLS, and below a path of a host that others use too.
func (d *Door) loginOf(r *http.Request) (*http.Cookie, error) {
	if d.prefix != "" {
		return r.Cookie(cookieName)
	}
	if own, err := r.Cookie(ownPrefix + cookieName); err == nil {
		return own, nil
	}
	if overTLS(r) || strings.HasPrefix(d.origin, "https:") && strings.EqualFold(r.Host, strings.TrimPrefix(d.origin, "https://")) {
		return nil, http.ErrNoCookie
	}
	return r.Cookie(cookieName)
}

// isLogin tells our cookie from those of others, by its name.
func isLogin(name string) bool {
	return strings.TrimPrefix(strings.TrimSpace(name), ownPrefix) == cookieName
}

// admit looks at where the request is addressed to and where it comes from,
// before anything else: a web page of somebody else must not reach us through
// its visitor's browser.
func (d *Door) admit(h http.Header, r *http.Request) *fault {
	if !d.hostAllowed(r.Host) {
		return fail(http.StatusMisdirectedRequest, api.CodeForbidden,
			"Host name not allowed. The operator can allow it with --allow-host.")
	}
	origins := r.Header["Origin"]
	if len(origins) == 0 {
		return nil
	}
	if !d.originAllowed(r, origins) {
		return fail(http.StatusForbidden, api.CodeForbidden,
			"Origin not allowed. The operator can allow it with --allow-origin.")
	}
	if d.origins[origins[0]] {
		h["Access-Control-Allow-Origin"] = origins
		h["Vary"] = []string{"Origin"}
		h["Access-Control-Expose-Headers"] = []string{"X-Request-Id, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Idempotency-Replayed, " + ignoredHeader}
	}
	return nil
}

// preflight answers a browser that asks, for a page of an allowed origin, whether it may ask.
func (d *Door) preflight(w http.ResponseWriter, r *http.Request) bool {
	origins := r.Header["Origin"]
	if r.Method != http.MethodOptions || len(origins) != 1 || !d.origins[origins[0]] {
		return false
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "GET, POST, PATCH, PUT, DELETE")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-Session-API-Key")
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// GuardHost refuses requests to names that are not ours, for handlers beside the door.
func (d *Door) GuardHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !d.hostAllowed(r.Host) {
			http.Error(w, "host name not allowed", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostAllowed: an address cannot be rebound by DNS, a name can.
func (d *Door) hostAllowed(host string) bool {
	host = canonicalHost(host)
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return d.hosts[host]
}

// canonicalHost is a Host header without port, brackets and a final dot, in lower case.
func canonicalHost(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

func (d *Door) originAllowed(r *http.Request, origins []string) bool {
	if len(origins) != 1 {
		return false
	}
	return d.origins[origins[0]] || d.ownOrigin(r, origins)
}

// ownOrigin tells pages of this server from those of origins that may merely call.
func (d *Door) ownOrigin(r *http.Request, origins []string) bool {
	if len(origins) != 1 {
		return false
	}
	if d.origin != "" && origins[0] == d.origin {
		return true
	}
	u, err := url.Parse(origins[0])
	return err == nil && (u.Scheme == "https" || u.Scheme == "http" && r.TLS == nil) && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

// identify finds out who is asking, and whether they may ask so often.
func (d *Door) identify(w *recorder, r *http.Request) (*call, *fault) {
	c := &call{http: r}
	var err error
	switch key, bearer := presented(r); {
	case key != "":
		c.bearer = bearer
		c.who, err = d.Gate.Authenticate(r.Context(), key)
		if c.who.Page && !strings.HasPrefix(r.URL.Path, "/api/conversations/") {
			err = access.ErrUnauthorized // a page may read this key, and whoever reads it shall not get far
		}
	default:
		c.browser = true
		c.who, err = d.browser(r)
	}
	switch {
	case errors.Is(err, access.ErrUnauthorized):
		if a := d.Gate.AllowFailure(r.RemoteAddr); !a.OK {
			return nil, tooMany(a, "Too many requests with an invalid or missing key.")
		}
		f := unauthorized()
		f.header = http.Header{"Www-Authenticate": {`Bearer realm="deckhand"`}}
		return nil, f
	case err != nil:
		d.Logger.Error("cannot read keys", "error", err)
		return nil, fail(http.StatusServiceUnavailable, api.CodeUnavailable, "Keys cannot be checked at the moment. Try again.")
	}
	w.who = c.who.User
	if d.Unlimited {
		return c, nil
	}
	a := d.Gate.Allow(c.who.KeyID, time.Now())
	h := w.Header()
	h["Ratelimit-Limit"] = []string{itoa(int64(a.Limit))}
	h["Ratelimit-Remaining"] = []string{itoa(int64(a.Remaining))}
	h["Ratelimit-Reset"] = []string{seconds(a.Reset)}
	if !a.OK {
		return nil, tooMany(a, "Too many requests with this key.")
	}
	if a := d.Gate.AllowUser(c.who.User, time.Now()); !a.OK {
		return nil, tooMany(a, "Too many requests from this user across all keys.")
	}
	return c, nil
}

// presented is the key a request carries in a header. Never in the address: those end up in logs.
func presented(r *http.Request) (key string, bearer bool) {
	if v := r.Header["X-Session-Api-Key"]; len(v) > 0 && v[0] != "" {
		return v[0], false
	}
	if v := r.Header["Authorization"]; len(v) > 0 {
		if scheme, token, ok := strings.Cut(v[0], " "); ok && strings.EqualFold(scheme, "Bearer") {
			return strings.TrimSpace(token), true
		}
	}
	return "", false
}

// browser accepts the login cookie, for requests of our own pages only. Browsers
// send it along with those of other ports' pages too, and not all of them say
// Sec-Fetch-Site; but all of them say Origin when a page opens a WebSocket or
// changes something.
func (d *Door) browser(r *http.Request) (access.Identity, error) {
	cookie, err := d.loginOf(r)
	if err != nil || d.csrf.Check(r) != nil {
		return access.Identity{}, access.ErrUnauthorized
	}
	if origins := r.Header["Origin"]; len(origins) > 0 && !d.ownOrigin(r, origins) {
		return access.Identity{}, access.ErrUnauthorized
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
	default:
		return access.Identity{}, access.ErrUnauthorized
	}
	return d.Gate.Session(r.Context(), cookie.Value)
}

func tooMany(a access.Decision, msg string) *fault {
	f := fail(http.StatusTooManyRequests, api.CodeRateLimited, msg+" Try again in "+seconds(a.RetryAfter)+" s.")
	f.header = http.Header{"Retry-After": {seconds(a.RetryAfter)}, "Ratelimit-Limit": {itoa(int64(a.Limit))},
		"Ratelimit-Remaining": {itoa(int64(a.Remaining))}, "Ratelimit-Reset": {seconds(a.Reset)}}
	return f
}

func seconds(d time.Duration) string { return itoa(int64(math.Ceil(max(d.Seconds(), 0)))) }

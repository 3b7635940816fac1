package rest

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"deckhand/api"
	"deckhand/internal/access"
)

// CookieName is the name of the login cookie. Over TLS it has a prefix that binds it to this
// host: otherwise a program in a sandbox, on a neighbouring name, could log a visitor in as
// another user.
const (
	CookieName = "deckhand_session"
	OwnPrefix  = "__Host-"
)

// LoginOf is the login that a browser sends. One without the prefix counts only where it
// cannot have it: without TLS, and below a path of a host that others use too.
func (g *Guard) LoginOf(r *http.Request) (*http.Cookie, error) {
	if g.Prefix != "" {
		return r.Cookie(CookieName)
	}
	if own, err := r.Cookie(OwnPrefix + CookieName); err == nil {
		return own, nil
	}
	if overTLS(r) || strings.HasPrefix(g.Origin, "https:") && strings.EqualFold(r.Host, strings.TrimPrefix(g.Origin, "https://")) {
		return nil, http.ErrNoCookie
	}
	return r.Cookie(CookieName)
}

// IsLogin tells our cookie from those of others, by its name.
func IsLogin(name string) bool {
	return strings.TrimPrefix(strings.TrimSpace(name), OwnPrefix) == CookieName
}

// Admit checks the host and the origin of a request before anything else: a foreign web page
// must not reach the server through its visitor's browser.
func (g *Guard) Admit(h http.Header, r *http.Request) *Fault {
	if !g.HostAllowed(r.Host) {
		return Fail(http.StatusMisdirectedRequest, api.CodeForbidden,
			"Host name not allowed. The operator can allow it with --allow-host.")
	}
	origins := r.Header["Origin"]
	if len(origins) == 0 || publicFile(r) {
		return nil
	}
	if !g.originAllowed(r, origins) {
		return Fail(http.StatusForbidden, api.CodeForbidden,
			"Origin not allowed. The operator can allow it with --allow-origin.")
	}
	if g.origins[origins[0]] {
		h["Access-Control-Allow-Origin"] = origins
		h["Vary"] = []string{"Origin"}
		h["Access-Control-Expose-Headers"] = []string{"X-Request-Id, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Idempotency-Replayed, Deckhand-Event-Version, " + ignoredHeader}
	}
	return nil
}

// publicFile reports a request for a file of the page by a frame without an origin, as the one that draws diagrams.
// These files are the same for everyone, and the response allows no foreign page to read them.
func publicFile(r *http.Request) bool {
	return r.Method == http.MethodGet && r.Header.Get("Origin") == "null" && strings.HasPrefix(r.URL.Path, "/ui/")
}

// Preflight answers a browser that asks, for a page of an allowed origin, whether it may ask.
func (g *Guard) Preflight(w http.ResponseWriter, r *http.Request) bool {
	origins := r.Header["Origin"]
	if r.Method != http.MethodOptions || len(origins) != 1 || !g.origins[origins[0]] {
		return false
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "GET, POST, PATCH, PUT, DELETE")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-Session-API-Key")
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// HostAllowed reports whether requests may name the host: an address cannot be rebound by DNS, a name can.
func (g *Guard) HostAllowed(host string) bool {
	host = CanonicalHost(host)
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return g.Hosts[host]
}

// CanonicalHost is a Host header without port, brackets and a final dot, in lower case.
func CanonicalHost(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

func (g *Guard) originAllowed(r *http.Request, origins []string) bool {
	if len(origins) != 1 {
		return false
	}
	return g.origins[origins[0]] || g.ownOrigin(r, origins)
}

// ownOrigin tells pages of this server from those of origins that may merely call.
func (g *Guard) ownOrigin(r *http.Request, origins []string) bool {
	if len(origins) != 1 {
		return false
	}
	if g.Origin != "" && origins[0] == g.Origin {
		return true
	}
	u, err := url.Parse(origins[0])
	return err == nil && (u.Scheme == "https" || u.Scheme == "http" && r.TLS == nil) && u.Host != "" && strings.EqualFold(u.Host, r.Host)
}

// Identify finds out who is asking, and whether they may ask so often. If they may not, it says both.
// h are the headers of the answer.
func (g *Guard) Identify(h http.Header, r *http.Request) (*Call, *Fault) {
	c := &Call{HTTP: r}
	var err error
	switch key, bearer := Presented(r); {
	case key != "":
		c.Bearer = bearer
		c.Who, err = g.gate.Authenticate(r.Context(), key)
		if c.Who.Page && !strings.HasPrefix(r.URL.Path, "/api/conversations/") {
			err = access.ErrUnauthorized // pages can read this key, so it is limited to conversations
		}
	default:
		c.Browser = true
		c.Who, err = g.Browser(r)
	}
	switch {
	case errors.Is(err, access.ErrUnauthorized):
		if a := g.gate.AllowFailure(r.RemoteAddr); !a.OK {
			return nil, TooMany(a, "Too many requests with an invalid or missing key.")
		}
		f := Unauthorized()
		f.Header = http.Header{"Www-Authenticate": {`Bearer realm="deckhand"`}}
		return nil, f
	case err != nil:
		g.logger.ErrorContext(r.Context(), "cannot read keys", "error", err)
		return nil, Fail(http.StatusServiceUnavailable, api.CodeUnavailable, "Keys cannot be checked at the moment. Try again.")
	}
	if g.unlimited || IsRouted(r) {
		return c, nil
	}
	a := g.gate.Allow(c.Who.KeyID, time.Now())
	h["Ratelimit-Limit"] = []string{strconv.FormatInt(int64(a.Limit), 10)}
	h["Ratelimit-Remaining"] = []string{strconv.FormatInt(int64(a.Remaining), 10)}
	h["Ratelimit-Reset"] = []string{seconds(a.Reset)}
	if !a.OK {
		return c, TooMany(a, "Too many requests with this key.")
	}
	if a := g.gate.AllowUser(c.Who.User, time.Now()); !a.OK {
		return c, TooMany(a, "Too many requests from this user across all keys.")
	}
	return c, nil
}

// Presented is the key a request carries in a header. Never in the address: those end up in logs.
func Presented(r *http.Request) (key string, bearer bool) {
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

// Browser accepts the login cookie, for requests of our own pages only. Browsers
// send it along with those of other ports' pages too, and not all of them say
// Sec-Fetch-Site; but all of them say Origin when a page opens a WebSocket or
// changes something.
func (g *Guard) Browser(r *http.Request) (access.Identity, error) {
	cookie, err := g.LoginOf(r)
	if err != nil || g.csrf.Check(r) != nil {
		return access.Identity{}, access.ErrUnauthorized
	}
	if origins := r.Header["Origin"]; len(origins) > 0 && !g.ownOrigin(r, origins) {
		return access.Identity{}, access.ErrUnauthorized
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
	default:
		return access.Identity{}, access.ErrUnauthorized
	}
	return g.gate.Session(r.Context(), cookie.Value)
}

// FirstPart is what stands between the first two slashes.
func FirstPart(path string) string {
	part, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return part
}
